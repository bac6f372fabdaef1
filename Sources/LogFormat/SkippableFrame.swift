// Everything in a segment that is not plaintext is stored in skippable frames of the LZ4 frame format
// (https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md), which the stock tool skips.
// Spec/format/segment.md.

/// The skippable frames of a segment: eight bytes of magic and size, then the content.
package enum SkippableFrame: UInt32, CaseIterable, Sendable {
    /// At the start of the file: log, account and first position.
    case header = 0x184D_2A50
    /// At the end of a live segment: covers exactly the preallocated space.
    case trailer = 0x184D_2A51
    /// At the end of a sealed segment: counts, indexes and digest.
    case footer = 0x184D_2A52
    /// At the end of a live segment whose log was closed in order.
    case cleanShutdownMarker = 0x184D_2A53
    /// Between the last frame and the footer of a compacted segment: the ids that compaction removed.
    case removedIDs = 0x184D_2A54

    /// Bytes of magic and size.
    package static let prefixBytes = 8

    /// Reads the kind and the content size at an offset; nil if no frame of these kinds begins there.
    package static func read(
        _ bytes: RawSpan, at offset: Int
    ) -> (kind: SkippableFrame, contentBytes: Int)? {
        guard offset <= bytes.byteCount - prefixBytes,
            let kind = SkippableFrame(rawValue: bytes.integer(at: offset))
        else { return nil }
        return (kind, Int(bytes.integer(at: offset + 4, as: UInt32.self)))
    }

    /// Appends magic and size.
    package func appendPrefix(contentBytes: Int, to bytes: inout [UInt8]) {
        bytes.append(littleEndian: rawValue)
        bytes.append(littleEndian: UInt32(contentBytes))
    }
}

/// The marker that an orderly close leaves: proof that everything before it was synced.
package struct CleanShutdownMarker: Equatable, Sendable {
    /// The last position in the log.
    package let last: Position
    /// The size on disk, prefix included.
    package static let encodedBytes = SkippableFrame.prefixBytes + 12

    package init(last: Position) { self.last = last }

    /// Encodes the marker: prefix, last position, XXH32 of both.
    package func encoded() -> [UInt8] {
        var bytes: [UInt8] = []
        SkippableFrame.cleanShutdownMarker.appendPrefix(contentBytes: 12, to: &bytes)
        bytes.append(littleEndian: last.rawValue)
        bytes.append(littleEndian: XXH32.hash(bytes.span.bytes))
        return bytes
    }

    /// Reads a marker; nil if there is no valid one at `offset`.
    package init?(_ bytes: RawSpan, at offset: Int) {
        guard offset <= bytes.byteCount - Self.encodedBytes,
            let frame = SkippableFrame.read(bytes, at: offset), frame.kind == .cleanShutdownMarker,
            frame.contentBytes == 12,
            XXH32.hash(bytes.extracting(offset..<offset + 16)) == bytes.integer(at: offset + 16),
            bytes.integer(at: offset + 8, as: UInt64.self) <= FormatLimit.positionMax
        else { return nil }
        last = Position(bytes.integer(at: offset + 8))
    }
}
