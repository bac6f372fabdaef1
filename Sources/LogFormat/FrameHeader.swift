// The header of an LZ4 frame as this format writes it: linked blocks of at most 64 KiB, a checksum
// on each, and a content size if and only if the frame is one big commit. Spec/format/block-and-frame.md.

/// The header of one LZ4 frame.
package struct FrameHeader: Equatable, Sendable {
    /// Plaintext bytes of the whole frame, declared for a big commit; nil for a running frame.
    package let contentBytes: Int?

    @inlinable package static var magic: UInt32 { 0x184D_2204 }
    /// Bytes of a header without a content size.
    package static let runningBytes = 7
    /// Bytes of a header with a content size.
    package static let bigCommitBytes = 15
    /// The four zero bytes that end a frame.
    package static let endMarkBytes = 4

    // Version 01, linked blocks, block checksums; bit 3 adds the content size.
    private static let flags: UInt8 = 0b0101_0000
    private static let contentSizeFlag: UInt8 = 0b0000_1000
    // Maximum block size 4: 64 KiB.
    private static let blockDescriptor: UInt8 = 0x40

    package init(contentBytes: Int?) { self.contentBytes = contentBytes }

    package var encodedBytes: Int {
        contentBytes == nil ? Self.runningBytes : Self.bigCommitBytes
    }

    /// Appends the header's bytes.
    package func append(to bytes: inout [UInt8]) {
        bytes.append(littleEndian: Self.magic)
        let descriptor = bytes.count
        bytes.append(contentBytes == nil ? Self.flags : Self.flags | Self.contentSizeFlag)
        bytes.append(Self.blockDescriptor)
        if let contentBytes { bytes.append(littleEndian: UInt64(contentBytes)) }
        bytes.append(Self.headerChecksum(bytes.span.bytes.extracting(descriptor..<bytes.count)))
    }

    /// Reads a header.
    ///
    /// - Throws: `FormatError`: `malformed` for a header that this format does not write, `checksum`
    ///   for a wrong header checksum, `truncated` where the bytes end.
    package init(_ bytes: RawSpan, at offset: Int) throws(FormatError) {
        guard offset <= bytes.byteCount - Self.runningBytes else {
            throw FormatError(.truncated, "the file ends inside a frame header")
        }
        guard bytes.integer(at: offset, as: UInt32.self) == Self.magic else {
            throw FormatError(.malformed, "no frame begins here")
        }
        let flags = bytes.byte(at: offset + 4)
        guard flags & ~Self.contentSizeFlag == Self.flags,
            bytes.byte(at: offset + 5) == Self.blockDescriptor
        else { throw FormatError(.malformed, "the frame has flags that this format does not use") }
        let isBig = flags & Self.contentSizeFlag != 0
        let length = isBig ? Self.bigCommitBytes : Self.runningBytes
        guard offset <= bytes.byteCount - length else {
            throw FormatError(.truncated, "the file ends inside a frame header")
        }
        let descriptor = bytes.extracting(offset + 4..<offset + length - 1)
        guard Self.headerChecksum(descriptor) == bytes.byte(at: offset + length - 1) else {
            throw FormatError(.checksum, "the frame header's checksum does not match")
        }
        guard isBig else {
            contentBytes = nil
            return
        }
        let size: UInt64 = bytes.integer(at: offset + 6)
        guard size > 0, size <= UInt64(FormatLimit.commitPlaintextBytesMax) else {
            throw FormatError(
                .malformed,
                "the frame declares \(size) bytes; a commit has 1 to "
                    + "\(FormatLimit.commitPlaintextBytesMax)")
        }
        contentBytes = Int(size)
    }

    private static func headerChecksum(_ descriptor: RawSpan) -> UInt8 {
        UInt8(truncatingIfNeeded: XXH32.hash(descriptor) >> 8)
    }
}

/// The four bytes before a block's data: its size, and whether it is stored uncompressed.
package struct BlockHeader: Equatable, Sendable {
    package let dataBytes: Int
    package let isStored: Bool

    /// Bytes around a block's data: this header and the checksum after it.
    package static let overheadBytes = 8
    private static let storedFlag: UInt32 = 0x8000_0000

    package init(dataBytes: Int, isStored: Bool) {
        self.dataBytes = dataBytes
        self.isStored = isStored
    }

    /// Reads a header; nil for the end mark.
    ///
    /// - Throws: `FormatError` (`malformed`) for a size that no block of this format has.
    package static func read(_ word: UInt32) throws(FormatError) -> BlockHeader? {
        guard word != 0 else { return nil }
        let size = Int(word & ~storedFlag)
        guard size > 0, size <= FormatLimit.blockBytesMax else {
            throw FormatError(
                .malformed,
                "the block declares \(size) bytes; a block has 1 to \(FormatLimit.blockBytesMax)")
        }
        return BlockHeader(dataBytes: size, isStored: word & storedFlag != 0)
    }

    package var word: UInt32 { UInt32(dataBytes) | (isStored ? Self.storedFlag : 0) }
    /// Bytes of the whole block.
    package var blockBytes: Int { dataBytes + Self.overheadBytes }
}
