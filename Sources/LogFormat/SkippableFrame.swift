// Everything in a segment that is not plaintext hides in a skippable frame of the LZ4 frame format
// (https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md), which the stock tool steps over.
// Spec/format/segment.md.

/// The skippable frames of a segment: eight bytes of magic and size, then the content.
package enum SkippableFrame: UInt32, CaseIterable, Sendable {
    /// At the very start of the file: who wrote it and where it begins.
    case header = 0x184D_2A50
    /// At the end of a live segment: covers exactly the preallocated rest.
    case trailer = 0x184D_2A51
    /// At the end of a sealed segment: counts, indexes and digest.
    case footer = 0x184D_2A52
    /// At the end of a segment whose log was closed in order.
    case closeMark = 0x184D_2A53
    /// Between the last frame and the footer of a compacted segment: ids that were taken out.
    case removedIDs = 0x184D_2A54

    /// Bytes of magic and size.
    package static let prefixBytes = 8

    /// The kind and the content size announced at an offset, if a skippable frame of ours is there.
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

/// The mark that an orderly close leaves: proof that everything before it was synced.
package struct CloseMark: Equatable, Sendable {
    /// The last position in the log.
    package let last: Position
    /// Bytes on disk, prefix included.
    package static let encodedBytes = SkippableFrame.prefixBytes + 12

    package init(last: Position) { self.last = last }

    /// The mark's bytes: prefix, last position, XXH32 of both.
    package func encoded() -> [UInt8] {
        var bytes: [UInt8] = []
        SkippableFrame.closeMark.appendPrefix(contentBytes: 12, to: &bytes)
        bytes.append(littleEndian: last.rawValue)
        bytes.append(littleEndian: XXH32.hash(bytes.span.bytes))
        return bytes
    }

    /// Reads a mark, or nil where there is no valid one.
    package init?(_ bytes: RawSpan, at offset: Int) {
        guard offset <= bytes.byteCount - Self.encodedBytes,
            let frame = SkippableFrame.read(bytes, at: offset), frame.kind == .closeMark,
            frame.contentBytes == 12,
            XXH32.hash(bytes.extracting(offset..<offset + 16)) == bytes.integer(at: offset + 16),
            bytes.integer(at: offset + 8, as: UInt64.self) <= FormatLimit.positionMax
        else { return nil }
        last = Position(bytes.integer(at: offset + 8))
    }
}
