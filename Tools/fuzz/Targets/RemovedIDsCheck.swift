// A list of removed ids, read in portions as from a segment. Spec/format/segment.md, SEG-8.

import LogFormat

/// Bit 0 of the mode repairs size, count and digest; the other bits are the size of a portion.
struct RemovedIDsCheck {
    let mode: UInt8

    private static let base = Position(1_000)

    func check(_ input: [UInt8]) throws {
        var bytes = input
        guard bytes.count >= RemovedIDs.prefixBytes + RemovedIDs.digestBytes else { return }
        let end = bytes.count - RemovedIDs.digestBytes
        if mode & 1 != 0 {
            let count = (end - RemovedIDs.prefixBytes) / RemovedIDs.recordBytes
            ChecksumRepair.set(SkippableFrame.removedIDs.rawValue, at: 0, of: &bytes)
            ChecksumRepair.set(UInt32(bytes.count - SkippableFrame.prefixBytes), at: 4, of: &bytes)
            ChecksumRepair.set(UInt32(count), at: 16, of: &bytes)
            ChecksumRepair.set(ChecksumRepair.digest(bytes, 0..<end), at: end, of: &bytes)
        }
        guard let list = try? read(bytes, end),
            RemovedIDs.encodedBytes(count: list.count) == bytes.count
        else { return }
        let records = bytes.span.bytes.extracting(RemovedIDs.prefixBytes..<end)
        var foundRecords: [RemovedID] = []
        for number in 0..<list.count {
            let offset = number * RemovedIDs.recordBytes
            let id = records.integer(at: offset, as: UInt128.self).byteSwapped
            guard let range = list.recordRange(of: id) else {
                throw BrokenProperty(description: "an id of a list has no record range in it")
            }
            try expect(range.upperBound <= end, "a record range ends after the list")
            let record = RemovedIDs.find(
                id, in: bytes.span.bytes.extracting(range), base: Self.base)
            guard let record, record.id == id else {
                throw BrokenProperty(description: "an id of a list is not found in it")
            }
            foundRecords.append(record)
        }
        let encoded = RemovedIDs.encode(foundRecords, base: Self.base, removedAt: list.removedAt)
        try expect(
            encoded.dropFirst(24).dropLast(8) == bytes[24..<end],
            "a list changes when it is written and read")
    }

    private func read(_ bytes: [UInt8], _ end: Int) throws(FormatError) -> RemovedIDs {
        let span = bytes.span.bytes
        var reader = try RemovedIDsReader(
            prefix: span.extracting(0..<RemovedIDs.prefixBytes), base: Self.base,
            through: Position(Self.base.rawValue + 1_000_000))
        var offset = RemovedIDs.prefixBytes
        let portion = (1 + Int(mode >> 1)) * RemovedIDs.recordBytes
        while reader.remaining > 0, offset < end {
            let count = min(portion, reader.remaining * RemovedIDs.recordBytes, end - offset)
            try reader.update(records: span.extracting(offset..<offset + count))
            offset += count
        }
        return try reader.finish(digest: span.extracting(end..<bytes.count))
    }
}
