// Compresses the blocks of one frame, each with the plaintext before it as history. Comes after the
// lines were put together and before the segment writer. Spec/format/block-and-frame.md.
//
// liblz4's raw streaming interface and not its frame interface: only the former can go on with a
// frame that an earlier process began (`load`). The history is contiguous: the whole plaintext of
// the frame stays in one buffer, so that a block always finds its 64 KiB right before itself.

import CLZ4

/// The compressor of one frame.
///
/// Owns a buffer of the frame's plaintext. Nothing here fails: a block that does not shrink is
/// stored as it is and still counts as history.

package struct BlockCompressor: ~Copyable {
    private let stream: OpaqueStream
    private let plaintext: UnsafeMutableRawBufferPointer
    private var scratch: [UInt8]

    /// Plaintext bytes of the frame so far.
    package private(set) var plaintextBytes = 0

    private typealias OpaqueStream = UnsafeMutablePointer<LZ4_stream_t>

    /// Creates a compressor for frames of up to `capacity` bytes of plaintext.
    package init(capacity: Int = WriterSizes().runningFramePlaintextBytesMax) {
        guard let stream = LZ4_createStream() else {
            preconditionFailure("liblz4 could not allocate a stream of 16 KiB")
        }
        self.stream = stream
        plaintext = UnsafeMutableRawBufferPointer.allocate(
            byteCount: capacity, alignment: 16)
        let bound = LZ4_compressBound(Int32(FormatLimit.blockBytesMax))
        scratch = [UInt8](repeating: 0, count: Int(bound))
    }

    deinit {
        LZ4_freeStream(stream)
        plaintext.deallocate()
    }

    /// Begins a new frame.
    package mutating func reset() {
        LZ4_resetStream_fast(stream)
        plaintextBytes = 0
    }

    /// Goes on with a frame whose plaintext so far is given: what is compressed next refers to it.
    package mutating func load(framePlaintext: RawSpan) {
        precondition(
            framePlaintext.byteCount <= plaintext.count, "a frame holds less plaintext than this")
        framePlaintext.withUnsafeBytes { plaintext.copyMemory(from: $0) }
        plaintextBytes = framePlaintext.byteCount
        let history = min(plaintextBytes, FormatLimit.historyBytesMax)
        LZ4_resetStream_fast(stream)
        guard history > 0, let base = plaintext.baseAddress else { return }
        let start = (base + plaintextBytes - history).assumingMemoryBound(to: CChar.self)
        _ = LZ4_loadDict(stream, start, Int32(history))
    }

    /// Appends one block (header, data, checksum) that holds `bytes` to `output`. O(n).
    package mutating func append(block bytes: RawSpan, to output: inout [UInt8]) {
        let count = bytes.byteCount
        precondition(
            count > 0 && count <= FormatLimit.blockBytesMax
                && plaintextBytes + count <= plaintext.count, "the block exceeds its frame")
        guard let base = plaintext.baseAddress else { return }
        let start = base + plaintextBytes
        bytes.withUnsafeBytes {
            if let source = $0.baseAddress {
                start.copyMemory(from: source, byteCount: count)
            }
        }
        plaintextBytes += count
        let written = scratch.withUnsafeMutableBytes { scratch -> Int in
            guard let target = scratch.baseAddress else { return 0 }
            return Int(
                LZ4_compress_fast_continue(
                    stream, start.assumingMemoryBound(to: CChar.self),
                    target.assumingMemoryBound(to: CChar.self), Int32(count),
                    Int32(scratch.count), 1))
        }
        // The scratch buffer is as large as liblz4's bound, so 0 cannot come back; were it to, the
        // block is stored and the stream begins afresh rather than being trusted.
        if written <= 0 { LZ4_resetStream_fast(stream) }
        let isStored = written <= 0 || written >= count
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

/// A big commit: a whole frame with its content size, its blocks linked like any other's.
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

    /// The most bytes such a frame of `plaintextBytes` can take on disk.
    package static func encodedBytesMax(plaintextBytes: Int) -> Int {
        let blocks =
            (plaintextBytes + FormatLimit.bigCommitBlockPlaintextBytes - 1)
            / FormatLimit.bigCommitBlockPlaintextBytes
        return FrameHeader.bigCommitBytes + plaintextBytes + blocks * BlockHeader.overheadBytes
    }
}
