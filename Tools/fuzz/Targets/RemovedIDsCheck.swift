// A list of removed ids, read in portions as a segment's is. Spec/format/segment.md, SEG-8.

import LogFormat

/// Bit 0 of the mode mends size, count and digest; the other bits are the size of a portion.
struct RemovedIDsCheck {
    let mode: UInt8

    private static let base = Position(1_000)

    func check(_ input: [UInt8]) throws {
        var bytes = input
        guard bytes.count >= RemovedIDs.prefixBytes + RemovedIDs.digestBytes else { return }
        let end = bytes.count - RemovedIDs.digestBytes
        if mode & 1 != 0 {
            let count = (end - RemovedIDs.prefixBytes) / RemovedIDs.recordBytes
            Mending.set(SkippableFrame.removedIDs.rawValue, at: 0, of: &bytes)
            Mending.set(UInt32(bytes.count - SkippableFrame.prefixBytes), at: 4, of: &bytes)
            Mending.set(UInt32(count), at: 16, of: &bytes)
            Mending.set(Mending.digest(bytes, 0..<end), at: end, of: &bytes)
        }
        guard let list = try? read(bytes, end),
            RemovedIDs.encodedBytes(count: list.count) == bytes.count
        else { return }
        let records = bytes.span.bytes.extracting(RemovedIDs.prefixBytes..<end)
        var found: [RemovedID] = []
        for number in 0..<list.count {
            let offset = number * RemovedIDs.recordBytes
            let id = records.integer(at: offset, as: UInt128.self).byteSwapped
            guard let place = list.place(of: id) else {
                throw BrokenProperty(description: "an id of a list has no place in it")
            }
            try expect(place.upperBound <= end, "a place lies behind the list")
            let record = RemovedIDs.find(
                id, in: bytes.span.bytes.extracting(place), base: Self.base)
            guard let record, record.id == id else {
                throw BrokenProperty(description: "an id of a list is not found in it")
            }
            found.append(record)
        }
        let encoded = RemovedIDs.encode(found, base: Self.base, removedAt: list.removedAt)
        try expect(
            encoded.dropFirst(24).dropLast(8) == bytes[24..<end],
            "a list is another after it was written")
    }

    private func read(_ bytes: [UInt8], _ end: Int) throws(FormatError) -> RemovedIDs {
        let span = bytes.span.bytes
        var reader = try RemovedIDsReader(
            prefix: span.extracting(0..<RemovedIDs.prefixBytes), base: Self.base,
            through: Position(Self.base.rawValue + 1_000_000))
        var offset = RemovedIDs.prefixBytes
        let portion = (1 + Int(mode >> 1)) * RemovedIDs.recordBytes
        while reader.missing > 0, offset < end {
            let count = min(portion, reader.missing * RemovedIDs.recordBytes, end - offset)
            try reader.update(records: span.extracting(offset..<offset + count))
            offset += count
        }
        return try reader.finish(digest: span.extracting(end..<bytes.count))
    }
}
