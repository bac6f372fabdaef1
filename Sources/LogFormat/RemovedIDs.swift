// What compaction remembers of the lines it took out of a segment: one skippable frame for each time
// it did, with a record a line, sorted by id. Comes behind the last LZ4 frame, before the footer.
// Spec/format/segment.md, SEG-8.

/// Two hashes of an event's content: enough to tell whether a newcomer is the event it says it is.
package struct ContentHashes: Hashable, Sendable {
    /// Of everything but lane and time.
    package var withoutTime: UInt32
    /// Of everything but the lane.
    package var withTime: UInt32

    package init(withoutTime: UInt32, withTime: UInt32) {
        self.withoutTime = withoutTime
        self.withTime = withTime
    }
}

/// What is remembered of one line.
package struct RemovedID: Hashable, Sendable {
    package var id: UInt128
    /// The place it had, which no other line ever gets.
    package var position: Position
    package var hashes: ContentHashes

    package init(id: UInt128, position: Position, hashes: ContentHashes) {
        self.id = id
        self.position = position
        self.hashes = hashes
    }
}

/// A list of removed ids that was read once and found whole.
///
/// Only every 64th id is held; a lookup says which bytes of the list to read.
package struct RemovedIDs: Sendable {
    /// When the lines were taken out, in milliseconds since 1970.
    package let removedAt: Int64
    /// Records in the list.
    package let count: Int
    /// Every 64th id.
    private let fences: [UInt128]

    /// Bytes before the records: magic, size, time, count, reserved.
    package static let prefixBytes = 24
    package static let recordBytes = 28
    package static let digestBytes = 8
    /// How long an id is remembered: 90 days.
    package static let millisecondsKept: Int64 = 90 * 24 * 60 * 60 * 1_000
    fileprivate static let fenceSpacing = 64
    /// Bytes that are encoded at a time.
    private static let portionBytes = 64 * 1024

    fileprivate init(removedAt: Int64, count: Int, fences: [UInt128]) {
        self.removedAt = removedAt
        self.count = count
        self.fences = fences
    }

    /// Bytes of a list on disk.
    package static func encodedBytes(count: Int) -> Int {
        prefixBytes + count * recordBytes + digestBytes
    }

    /// Whether the list's ids are unknown again.
    package func isExpired(now: Int64) -> Bool {
        let (age, isHuge) = now.subtractingReportingOverflow(removedAt)
        return isHuge ? now > removedAt : age >= Self.millisecondsKept
    }

    // MARK: Writing

    /// The bytes of a list, a whole skippable frame. O(n log n).
    ///
    /// - Parameter base: the first position of the segment; records hold the distance from it.
    package static func encode(
        _ records: [RemovedID], base: Position, removedAt: Int64
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        let sorted = records.sorted { $0.id < $1.id }
        encode(sorted: sorted, base: base, removedAt: removedAt) { bytes += $0 }
        return bytes
    }

    /// The same bytes in portions, of records that are sorted by id. O(n), and memory for a portion.
    package static func encode<E: Error>(
        sorted records: [RemovedID], base: Position, removedAt: Int64,
        write: ([UInt8]) throws(E) -> Void
    ) throws(E) {
        let total = encodedBytes(count: records.count)
        var bytes: [UInt8] = []
        var digest = XXH64()
        SkippableFrame.removedIDs.appendPrefix(
            contentBytes: total - SkippableFrame.prefixBytes, to: &bytes)
        bytes.append(littleEndian: removedAt)
        bytes.append(littleEndian: UInt32(records.count))
        bytes.append(littleEndian: UInt32(0))
        for record in records {
            if bytes.count >= portionBytes {
                digest.update(bytes.span.bytes)
                try write(bytes)
                bytes.removeAll(keepingCapacity: true)
            }
            bytes.append(littleEndian: record.id.byteSwapped)
            bytes.append(littleEndian: UInt32(record.position.rawValue - base.rawValue))
            bytes.append(littleEndian: record.hashes.withoutTime)
            bytes.append(littleEndian: record.hashes.withTime)
        }
        digest.update(bytes.span.bytes)
        bytes.append(littleEndian: digest.value())
        try write(bytes)
    }

    // MARK: Looking up

    /// Which bytes of the list, counted from its first, hold the record of an id if there is one:
    /// whole records, at most 64. Nil if there is none. O(log n).
    package func place(of id: UInt128) -> Range<Int>? {
        let low = fences.partitioningIndex { $0 > id }
        guard low > 0 else { return nil }
        let first = (low - 1) * Self.fenceSpacing
        let end = min(count, low * Self.fenceSpacing)
        return Self.prefixBytes + first * Self.recordBytes..<Self.prefixBytes + end
            * Self.recordBytes
    }

    /// The record of an id among whole records. O(log n).
    package static func find(_ id: UInt128, in records: RawSpan, base: Position) -> RemovedID? {
        var low = 0
        var high = records.byteCount / recordBytes
        while low < high {
            let middle = (low + high) / 2
            let record = record(middle, of: records, base: base)
            if record.id == id { return record }
            if record.id < id { low = middle + 1 } else { high = middle }
        }
        return nil
    }

    fileprivate static func record(
        _ number: Int, of records: RawSpan, base: Position
    ) -> RemovedID {
        let offset = number * recordBytes
        let id: UInt128 = records.integer(at: offset)
        let distance: UInt32 = records.integer(at: offset + 16)
        return RemovedID(
            id: id.byteSwapped, position: Position(base.rawValue &+ UInt64(distance)),
            hashes: ContentHashes(
                withoutTime: records.integer(at: offset + 20),
                withTime: records.integer(at: offset + 24)))
    }
}

/// Reads a list piece by piece, so that none of it need be held: the prefix, whole records in any
/// portions, the digest.
package struct RemovedIDsReader {
    private let removedAt: Int64
    private let count: Int
    private let base: Position
    private let through: Position
    private var digest = XXH64()
    private var fences: [UInt128] = []
    private var seen = 0
    private var last: UInt128?

    /// Bytes of the whole list.
    package var encodedBytes: Int { RemovedIDs.encodedBytes(count: count) }
    /// Records that are still to come.
    package var missing: Int { count - seen }

    /// Begins with the 24 bytes of the prefix.
    ///
    /// - Parameters:
    ///   - base: the first position of the segment.
    ///   - through: the last one it covers.
    /// - Throws: `FormatError` (`malformed`).
    package init(
        prefix bytes: RawSpan, base: Position, through: Position
    ) throws(FormatError) {
        guard let frame = SkippableFrame.read(bytes, at: 0), frame.kind == .removedIDs,
            bytes.byteCount == RemovedIDs.prefixBytes
        else { throw FormatError(.malformed, "no list of removed ids begins here") }
        removedAt = bytes.integer(at: 8)
        count = Int(bytes.integer(at: 16, as: UInt32.self))
        self.base = base
        self.through = through
        guard
            frame.contentBytes
                == RemovedIDs.encodedBytes(count: count) - SkippableFrame.prefixBytes
        else { throw FormatError(.malformed, "a list of removed ids has a wrong size") }
        digest.update(bytes)
    }

    /// Takes in the next records.
    ///
    /// - Throws: `FormatError` (`malformed`) where they are not in order, or not of the segment.
    package mutating func update(records: RawSpan) throws(FormatError) {
        digest.update(records)
        for number in 0..<records.byteCount / RemovedIDs.recordBytes {
            let record = RemovedIDs.record(number, of: records, base: base)
            guard last.map({ $0 < record.id }) ?? true, record.position >= base,
                record.position <= through
            else {
                throw FormatError(.malformed, "a list of removed ids is not in order")
            }
            if seen % RemovedIDs.fenceSpacing == 0 { fences.append(record.id) }
            last = record.id
            seen += 1
        }
    }

    /// Takes in the digest, and gives the list.
    ///
    /// - Throws: `FormatError` (`checksum`).
    package func finish(digest bytes: RawSpan) throws(FormatError) -> RemovedIDs {
        guard bytes.byteCount == RemovedIDs.digestBytes, missing == 0,
            digest.value() == bytes.integer(at: 0)
        else { throw FormatError(.checksum, "the digest of a list of removed ids does not match") }
        return RemovedIDs(removedAt: removedAt, count: count, fences: fences)
    }
}
