// The end of a sealed segment: the positions that it covers, the offsets of its frames, the index of its
// ids, and a digest of the file before. Found from the end of the file. Spec/format/segment.md, SEG-5.

/// The offset of a frame and the position of its first line.
package struct FrameEntry: Equatable, Sendable {
    package var offset: Int
    package var first: Position

    package init(offset: Int, first: Position) {
        self.offset = offset
        self.first = first
    }
}

/// The footer of a sealed segment.
package struct SegmentFooter: Equatable, Sendable {
    /// The last position that the segment covers; the next segment begins after it.
    package var coveredThrough: Position
    /// The positions of the first and the last line; nil if the segment has none.
    package var lines: ClosedRange<Position>?
    /// The number of lines.
    package var eventCount: UInt64
    /// The times of the oldest and the newest line, in milliseconds since 1970.
    package var times: ClosedRange<Int64>?
    /// The bytes of all lines, newlines included.
    package var plaintextBytes: UInt64
    /// The compaction's fields; nil if no line was removed. The positions of a compacted segment may have
    /// holes.
    package var compaction: Compaction?
    /// Every frame, in order.
    package var frames: [FrameEntry]
    /// The encoded id index.
    package var idIndex: [UInt8]
    /// The XXH64 of the file before the footer.
    package var digest: UInt64

    /// The additional fields in the footer of a compacted segment.
    package struct Compaction: Equatable, Sendable {
        /// States before this position cannot be rebuilt.
        package var through: Position
        /// The size of the lists of removed ids, which end where the footer begins.
        package var removedIDBytes: Int

        package init(through: Position, removedIDBytes: Int) {
            self.through = through
            self.removedIDBytes = removedIDBytes
        }
    }

    /// True if compaction removed lines.
    package var isCompacted: Bool { compaction != nil }

    private static let compactedFlag: UInt32 = 1
    private static let fixedBytes = 80
    private static let compactionBytes = 16
    /// Digest, length and checksum.
    private static let tailBytes = 16

    package init(
        coveredThrough: Position, lines: ClosedRange<Position>?, eventCount: UInt64,
        times: ClosedRange<Int64>?, plaintextBytes: UInt64, compaction: Compaction? = nil,
        frames: [FrameEntry], idIndex: [UInt8], digest: UInt64
    ) {
        self.coveredThrough = coveredThrough
        self.lines = lines
        self.eventCount = eventCount
        self.times = times
        self.plaintextBytes = plaintextBytes
        self.compaction = compaction
        self.frames = frames
        self.idIndex = idIndex
        self.digest = digest
    }

    /// Encodes the footer as a whole skippable frame.
    package func encoded() -> [UInt8] {
        var sparse: [UInt8] = []
        var previous = FrameEntry(offset: 0, first: .zero)
        for frame in frames {
            sparse.append(varint: UInt64(frame.offset - previous.offset))
            sparse.append(varint: frame.first.rawValue - previous.first.rawValue)
            previous = frame
        }
        let content =
            Self.fixedBytes + sparse.count + idIndex.count
            + (isCompacted ? Self.compactionBytes : 0) + Self.tailBytes
        var bytes: [UInt8] = []
        bytes.reserveCapacity(content + SkippableFrame.prefixBytes)
        SkippableFrame.footer.appendPrefix(contentBytes: content, to: &bytes)
        bytes.append(littleEndian: coveredThrough.rawValue)
        bytes.append(littleEndian: lines?.lowerBound.rawValue ?? 0)
        bytes.append(littleEndian: lines?.upperBound.rawValue ?? 0)
        bytes.append(littleEndian: eventCount)
        bytes.append(littleEndian: times?.lowerBound ?? 0)
        bytes.append(littleEndian: times?.upperBound ?? 0)
        bytes.append(littleEndian: plaintextBytes)
        bytes.append(littleEndian: isCompacted ? Self.compactedFlag : 0)
        bytes.append(littleEndian: UInt32(frames.count))
        bytes.append(littleEndian: UInt32(sparse.count))
        bytes.append(littleEndian: UInt32(idIndex.count))
        bytes.append(littleEndian: UInt64(0))
        bytes.append(contentsOf: sparse)
        bytes.append(contentsOf: idIndex)
        if let compaction {
            bytes.append(littleEndian: compaction.through.rawValue)
            bytes.append(littleEndian: UInt64(compaction.removedIDBytes))
        }
        bytes.append(littleEndian: digest)
        bytes.append(littleEndian: UInt32(content + SkippableFrame.prefixBytes))
        bytes.append(littleEndian: XXH32.hash(bytes.span.bytes))
        return bytes
    }

    /// The length of the footer that ends with `bytes`, or nil if the length is impossible.
    package static func length(atEnd bytes: RawSpan) -> Int? {
        guard bytes.byteCount >= 8 else { return nil }
        let length = Int(bytes.integer(at: bytes.byteCount - 8, as: UInt32.self))
        let least = SkippableFrame.prefixBytes + fixedBytes + tailBytes
        guard length >= least, length <= FormatLimit.footerBytesMax else { return nil }
        return length
    }

    /// Reads a footer that fills `bytes` exactly.
    ///
    /// - Throws: `FormatError`: `truncated`, `checksum`, `malformed`.
    package init(_ bytes: RawSpan) throws(FormatError) {
        let least = SkippableFrame.prefixBytes + Self.fixedBytes + Self.tailBytes
        guard bytes.byteCount >= least else {
            throw FormatError(.truncated, "the file ends inside the footer")
        }
        guard
            XXH32.hash(bytes.extracting(0..<bytes.byteCount - 4))
                == bytes.integer(at: bytes.byteCount - 4, as: UInt32.self)
        else { throw FormatError(.checksum, "the footer's checksum does not match") }
        guard let frame = SkippableFrame.read(bytes, at: 0), frame.kind == .footer,
            frame.contentBytes == bytes.byteCount - SkippableFrame.prefixBytes
        else { throw FormatError(.malformed, "the footer's frame has a wrong size") }
        let sparseBytes = Int(bytes.integer(at: 72, as: UInt32.self))
        let idBytes = Int(bytes.integer(at: 76, as: UInt32.self))
        let isCompacted = bytes.integer(at: 64, as: UInt32.self) & Self.compactedFlag != 0
        let compactionBytes = isCompacted ? Self.compactionBytes : 0
        guard least + sparseBytes + idBytes + compactionBytes == bytes.byteCount else {
            throw FormatError(.malformed, "the footer's parts do not fill it")
        }
        coveredThrough = Position(bytes.integer(at: 8))
        let first = Position(bytes.integer(at: 16))
        let last = Position(bytes.integer(at: 24))
        eventCount = bytes.integer(at: 32)
        let oldest: Int64 = bytes.integer(at: 40)
        let newest: Int64 = bytes.integer(at: 48)
        plaintextBytes = bytes.integer(at: 56)
        let frameCount = Int(bytes.integer(at: 68, as: UInt32.self))
        guard frameCount <= sparseBytes, oldest <= newest, first <= last, last <= coveredThrough,
            (eventCount == 0) == (last == .zero),
            coveredThrough.rawValue <= FormatLimit.positionMax
        else { throw FormatError(.malformed, "the footer has impossible values") }
        lines = eventCount == 0 ? nil : first...last
        times = eventCount == 0 ? nil : oldest...newest
        var offset = SkippableFrame.prefixBytes + Self.fixedBytes
        let sparseEnd = offset + sparseBytes
        var frames: [FrameEntry] = []
        frames.reserveCapacity(frameCount)
        var at: UInt64 = 0
        var position: UInt64 = 0
        for _ in 0..<frameCount {
            at &+= try bytes.varint(at: &offset, end: sparseEnd)
            position &+= try bytes.varint(at: &offset, end: sparseEnd)
            guard at <= UInt64(UInt32.max), position <= coveredThrough.rawValue else {
                throw FormatError(.malformed, "the footer names a frame outside the segment")
            }
            frames.append(FrameEntry(offset: Int(at), first: Position(position)))
        }
        guard offset == sparseEnd else {
            throw FormatError(.malformed, "the footer's frame list has a wrong length")
        }
        self.frames = frames
        idIndex = bytes.extracting(sparseEnd..<sparseEnd + idBytes).array
        compaction =
            isCompacted ? try Self.compaction(bytes, at: sparseEnd + idBytes) : nil
        digest = bytes.integer(at: bytes.byteCount - Self.tailBytes)
    }

    private static func compaction(
        _ bytes: RawSpan, at offset: Int
    ) throws(FormatError) -> Compaction {
        let through: UInt64 = bytes.integer(at: offset)
        let removedIDBytes: UInt64 = bytes.integer(at: offset + 8)
        guard through <= FormatLimit.positionMax,
            removedIDBytes <= UInt64(FormatLimit.segmentBytesMax)
        else {
            throw FormatError(.malformed, "the footer has impossible values")
        }
        return Compaction(through: Position(through), removedIDBytes: Int(removedIDBytes))
    }
}
