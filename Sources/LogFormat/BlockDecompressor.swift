// Decompresses a frame block by block: the inverse of BlockCompressor. Every length is checked against
// the limits and the bytes present before memory is allocated. Spec/format/block-and-frame.md.

/// The plaintext of one frame, as far as its blocks have been decoded.
package struct BlockDecompressor: Sendable {
    /// The plaintext in the first `plaintextBytes` bytes; the bytes after it are unused.
    package private(set) var storage: [UInt8] = []

    /// Plaintext bytes of the frame so far.
    package private(set) var plaintextBytes = 0

    /// Plaintext bytes that the frame declares; nil for a running frame.
    private var contentBytes: Int?
    private var limit: Int { contentBytes ?? FormatLimit.runningFramePlaintextBytesMax }

    package init() {}

    /// Begins a frame.
    package mutating func begin(_ header: FrameHeader) {
        plaintextBytes = 0
        contentBytes = header.contentBytes
    }

    /// Returns the plaintext of the frame without copying it. The decompressor is empty afterwards.
    package mutating func extractPlaintext() -> [UInt8] {
        var plaintext: [UInt8] = []
        swap(&plaintext, &storage)
        plaintext.removeLast(plaintext.count - plaintextBytes)
        plaintextBytes = 0
        return plaintext
    }

    /// Decodes the block at `offset` of `bytes`. The caller has read the header and checked that data
    /// and checksum are within `bytes`.
    ///
    /// - Returns: the range of `storage` that the block's plaintext fills.
    /// - Throws: `FormatError`: `checksum`, `undecodable`, or `malformed` where the frame would
    ///   exceed its declared size. The plaintext of the blocks before is untouched.
    package mutating func append(
        _ header: BlockHeader, at offset: Int, of bytes: RawSpan
    ) throws(FormatError) -> Range<Int> {
        let data = bytes.extracting(offset + 4..<offset + 4 + header.dataBytes)
        guard XXH32.hash(data) == bytes.integer(at: offset + 4 + header.dataBytes, as: UInt32.self)
        else { throw FormatError(.checksum, "the block's checksum does not match") }
        let capacity = min(FormatLimit.blockBytesMax, limit - plaintextBytes)
        guard capacity > 0, !header.isStored || header.dataBytes <= capacity else {
            throw FormatError(.malformed, "the frame holds more bytes than the limit")
        }
        if plaintextBytes + capacity > storage.count {
            // Most running frames stay far below their limit; a big commit needs its declared size.
            let blocks = (plaintextBytes + capacity - 1) / FormatLimit.blockBytesMax + 1
            let larger = max(
                blocks * FormatLimit.blockBytesMax, min(2 * storage.count, contentBytes ?? 0))
            storage += [UInt8](repeating: 0, count: larger - storage.count)
        }
        let start = plaintextBytes
        let count = data.withUnsafeBytes { source in
            storage.withUnsafeMutableBytes { target in
                Self.decode(source, header, into: target, at: start, capacity: capacity)
            }
        }
        guard count > 0 else { throw FormatError(.undecodable, "the block is not valid LZ4 data") }
        plaintextBytes += count
        return start..<plaintextBytes
    }

    /// The decoded size of a compressed block, computed from its tokens alone, without history. Nil
    /// where they are malformed. https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
    package static func plaintextBytes(ofCompressed data: RawSpan) -> Int? {
        var offset = 0
        var total = 0
        func length(_ nibble: Int) -> Int? {
            guard nibble == 15 else { return nibble }
            var length = nibble
            while offset < data.byteCount {
                let byte = data.byte(at: offset)
                offset += 1
                length += Int(byte)
                if byte < 255 { return length }
            }
            return nil
        }
        while offset < data.byteCount {
            let token = Int(data.byte(at: offset))
            offset += 1
            guard let literals = length(token >> 4) else { return nil }
            offset += literals
            total += literals
            if offset == data.byteCount { return total }
            offset += 2
            guard offset <= data.byteCount, let match = length(token & 15) else { return nil }
            total += match + 4
        }
        return nil
    }

    private static func decode(
        _ source: UnsafeRawBufferPointer, _ header: BlockHeader,
        into target: UnsafeMutableRawBufferPointer, at start: Int, capacity: Int
    ) -> Int {
        guard header.isStored else {
            return BlockDecoder.decode(source, into: target, at: start, capacity: capacity) ?? -1
        }
        UnsafeMutableRawBufferPointer(rebasing: target[start...]).copyMemory(from: source)
        return source.count
    }
}
