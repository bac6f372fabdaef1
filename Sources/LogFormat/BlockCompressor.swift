// Compresses the blocks of one frame, each with the plaintext before it as history. Comes between the
// lines of a commit and the segment writer. Spec/format/block-and-frame.md.

/// The compressor of one frame.
///
/// Owns a buffer of the frame's whole plaintext, so that a block's history is directly before it.
/// Nothing here fails: a block that does not shrink is stored uncompressed and still counts as history.
package struct BlockCompressor: ~Copyable {
    private var encoder = BlockEncoder()
    private let plaintext: UnsafeMutableRawBufferPointer
    private var scratch: [UInt8]

    /// Plaintext bytes of the frame so far.
    package private(set) var plaintextBytes = 0

    /// Creates a compressor for frames of up to `capacity` bytes of plaintext.
    package init(capacity: Int = WriterSizes().runningFramePlaintextBytesMax) {
        plaintext = UnsafeMutableRawBufferPointer.allocate(
            byteCount: capacity, alignment: 16)
        scratch = [UInt8](repeating: 0, count: BlockEncoder.bound(FormatLimit.blockBytesMax))
    }

    deinit { plaintext.deallocate() }

    /// Begins a new frame.
    package mutating func reset() {
        encoder.reset()
        plaintextBytes = 0
    }

    /// Resumes a frame: the next blocks refer to `framePlaintext`, its plaintext so far. O(n).
    package mutating func load(framePlaintext: RawSpan) {
        precondition(
            framePlaintext.byteCount <= plaintext.count,
            "the plaintext exceeds the frame's capacity")
        framePlaintext.withUnsafeBytes { plaintext.copyMemory(from: $0) }
        plaintextBytes = framePlaintext.byteCount
        encoder.load(UnsafeRawBufferPointer(rebasing: plaintext[..<plaintextBytes]))
    }

    /// Compresses `bytes` and appends the block (header, data, checksum) to `output`. O(n).
    package mutating func append(block bytes: RawSpan, to output: inout [UInt8]) {
        let count = bytes.byteCount
        precondition(
            count > 0 && count <= FormatLimit.blockBytesMax
                && plaintextBytes + count <= plaintext.count, "the block exceeds its frame")
        let start = plaintextBytes
        bytes.withUnsafeBytes {
            UnsafeMutableRawBufferPointer(rebasing: plaintext[start...]).copyMemory(from: $0)
        }
        plaintextBytes += count
        let frame = UnsafeRawBufferPointer(rebasing: plaintext[..<plaintextBytes])
        let written = scratch.withUnsafeMutableBytes {
            encoder.compress(frame, from: start, into: $0)
        }
        let isStored = written >= count
        let header = BlockHeader(dataBytes: isStored ? count : written, isStored: isStored)
        output.append(littleEndian: header.word)
        let data = output.count
        if isStored {
            output.append(contentsOf: bytes)
        } else {
            output.append(contentsOf: scratch.span.bytes.extracting(0..<written))
        }
        output.append(
            littleEndian: XXH32.hash(output.span.bytes.extracting(data..<output.count)))
    }
}

/// A big commit: a frame of its own that declares its content size, with linked blocks.
package enum BigCommit {
    /// Appends the frame of `plaintext` (more than a block, at most a commit) to `output`. O(n).
    package static func append(_ plaintext: RawSpan, to output: inout [UInt8]) {
        precondition(plaintext.byteCount <= WriterSizes.commitPlaintextBytesMax)
        FrameHeader(contentBytes: plaintext.byteCount).append(to: &output)
        var compressor = BlockCompressor(capacity: plaintext.byteCount)
        var offset = 0
        while offset < plaintext.byteCount {
            let next = min(
                offset + FormatLimit.bigCommitBlockPlaintextBytes, plaintext.byteCount)
            compressor.append(block: plaintext.extracting(offset..<next), to: &output)
            offset = next
        }
    }

    /// The upper bound of the bytes on disk of a big commit with `plaintextBytes`.
    package static func encodedBytesMax(plaintextBytes: Int) -> Int {
        let blocks =
            (plaintextBytes + FormatLimit.bigCommitBlockPlaintextBytes - 1)
            / FormatLimit.bigCommitBlockPlaintextBytes
        return FrameHeader.bigCommitBytes + plaintextBytes + blocks * BlockHeader.overheadBytes
    }
}
