// The lines that compaction removed from a segment: one skippable frame per compaction, with one record
// per line, sorted by id. Stored between the last LZ4 frame and the footer. Spec/format/segment.md, SEG-8.

/// Two hashes of an event's content. They show whether an event that arrives with a removed id is the
/// removed event.
package struct ContentHashes: Hashable, Sendable {
    /// The hash of everything but lane and time.
    package var withoutTime: UInt32
    /// The hash of everything but the lane.
    package var withTime: UInt32

    package init(withoutTime: UInt32, withTime: UInt32) {
        self.withoutTime = withoutTime
        self.withTime = withTime
    }
}

/// The record of one removed line.
package struct RemovedID: Hashable, Sendable {
    package var id: UInt128
    /// The position of the removed line, which is never reused.
    package var position: Position
    package var hashes: ContentHashes

    package init(id: UInt128, position: Position, hashes: ContentHashes) {
        self.id = id
        self.position = position
        self.hashes = hashes
    }
}

/// A list of removed ids whose digest has been verified.
///
/// Every 64th id and 16 bits of a hash of each are in memory. A lookup computes the range of the list to read from
/// the file, and nearly always that there is none: otherwise each new id would be looked up in a file for each
/// compacted segment.
package struct RemovedIDs: Sendable {
    /// The time of the compaction, in milliseconds since 1970.
    package let removedAt: Int64
    /// The number of records in the list.
    package let count: Int
    /// Every 64th id.
    private let fences: [UInt128]
    /// The mark of each id.
    private let marks: [UInt16]

    /// Bytes before the records: magic, size, time, count, reserved.
    package static let prefixBytes = 24
    package static let recordBytes = 28
    package static let digestBytes = 8
    /// The time after which a removed id expires: 90 days.
    package static let millisecondsKept: Int64 = 90 * 24 * 60 * 60 * 1_000
    fileprivate static let fenceSpacing = 64
    /// The size from which encoded bytes are passed on.
    private static let portionBytes = 64 * 1024

    fileprivate init(removedAt: Int64, fences: [UInt128], marks: [UInt16]) {
        self.removedAt = removedAt
        count = marks.count
        self.fences = fences
        self.marks = marks
    }

    /// Bits of an id that differ where its others are equal, as in ids of one moment.
    fileprivate static func mark(of id: UInt128) -> UInt16 {
        let folded = UInt64(truncatingIfNeeded: id ^ id >> 64)
        return UInt16(truncatingIfNeeded: (folded &* 0x9E37_79B9_7F4A_7C15) >> 48)
    }

    /// The size of a list on disk.
    package static func encodedBytes(count: Int) -> Int {
        prefixBytes + count * recordBytes + digestBytes
    }

    /// True if the list's ids have expired and count as unknown.
    package func isExpired(now: Int64) -> Bool {
        let (age, isHuge) = now.subtractingReportingOverflow(removedAt)
        return isHuge ? now > removedAt : age >= Self.millisecondsKept
    }

    // MARK: Writing

    /// Encodes a list as a whole skippable frame. O(n log n).
    ///
    /// - Parameter base: the first position of the segment; records store the distance from it.
    package static func encode(
        _ records: [RemovedID], base: Position, removedAt: Int64
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        let sorted = records.sorted { $0.id < $1.id }
        encode(sorted: sorted, base: base, removedAt: removedAt) { bytes += $0 }
        return bytes
    }

    /// Encodes a list in portions from records sorted by id. O(n); memory for one portion.
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

    // MARK: Lookup

    /// The range of the list, as offsets from its start, that contains the record of `id` if there is one:
    /// whole records, at most 64. Nil if the list certainly lacks the id: for all but one absent id in a
    /// thousand. O(log n).
    package func recordRange(of id: UInt128) -> Range<Int>? {
        let low = fences.partitioningIndex { $0 > id }
        guard low > 0 else { return nil }
        let first = (low - 1) * Self.fenceSpacing
        let end = min(count, low * Self.fenceSpacing)
        guard marks[first..<end].contains(Self.mark(of: id)) else { return nil }
        return Self.prefixBytes + first * Self.recordBytes..<Self.prefixBytes + end
            * Self.recordBytes
    }

    /// Finds the record of an id in a range of whole records. O(log n).
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

    /// The positions of the removed lines in a range of whole records, in the order of their ids.
    package static func positions(in records: RawSpan, base: Position) -> [Position] {
        (0..<records.byteCount / recordBytes).map { record($0, of: records, base: base).position }
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

/// A reader of a list in pieces, so that the list never is in memory as a whole: the prefix, whole records
/// in portions of any size, the digest.
package struct RemovedIDsReader {
    private let removedAt: Int64
    private let count: Int
    private let base: Position
    private let through: Position
    private var digest = XXH64()
    private var fences: [UInt128] = []
    private var marks: [UInt16] = []
    private var last: UInt128?

    /// The size of the whole list.
    package var encodedBytes: Int { RemovedIDs.encodedBytes(count: count) }
    /// The number of records that have not been read.
    package var remaining: Int { count - marks.count }

    /// Begins with the 24 bytes of the prefix.
    ///
    /// - Parameters:
    ///   - base: the first position of the segment.
    ///   - through: the last position that the segment covers.
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

    /// Reads the next records.
    ///
    /// - Throws: `FormatError` (`malformed`) if they are not in order or their positions are outside the
    ///   segment.
    package mutating func update(records: RawSpan) throws(FormatError) {
        digest.update(records)
        for number in 0..<records.byteCount / RemovedIDs.recordBytes {
            let record = RemovedIDs.record(number, of: records, base: base)
            guard last.map({ $0 < record.id }) ?? true, record.position >= base,
                record.position <= through
            else {
                throw FormatError(
                    .malformed, "a list of removed ids is out of order or leaves the segment")
            }
            if marks.count % RemovedIDs.fenceSpacing == 0 { fences.append(record.id) }
            marks.append(RemovedIDs.mark(of: record.id))
            last = record.id
        }
    }

    /// Checks the digest and returns the list.
    ///
    /// - Throws: `FormatError` (`checksum`).
    package func finish(digest bytes: RawSpan) throws(FormatError) -> RemovedIDs {
        guard bytes.byteCount == RemovedIDs.digestBytes, remaining == 0,
            digest.value() == bytes.integer(at: 0)
        else { throw FormatError(.checksum, "the digest of a list of removed ids does not match") }
        return RemovedIDs(removedAt: removedAt, fences: fences, marks: marks)
    }
}
