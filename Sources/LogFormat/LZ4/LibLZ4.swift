// The block codec of the system's liblz4, with the interface of LZ4Encoder and LZ4Block, and the choice
// between the two. Below BlockCompressor and BlockDecompressor. Spec/format/block-and-frame.md, BLK-3.

#if LIBLZ4
    import CLZ4

    typealias BlockEncoder = LibLZ4Encoder
    typealias BlockDecoder = LibLZ4Block

    /// A compressor of the blocks of one frame, as `LZ4Encoder`.
    ///
    /// The raw streaming interface of liblz4 and not its frame interface: only the former can resume a
    /// frame that an earlier process began.
    package struct LibLZ4Encoder: ~Copyable {
        private let stream: UnsafeMutablePointer<LZ4_stream_t>

        /// Creates an encoder without history.
        package init() {
            guard let stream = LZ4_createStream() else {
                preconditionFailure("liblz4 could not allocate a stream of 16 KiB")
            }
            self.stream = stream
        }

        deinit { LZ4_freeStream(stream) }

        /// Begins a new frame.
        package mutating func reset() { LZ4_resetStream_fast(stream) }

        /// Resumes a frame with the plaintext so far as history. O(history).
        package mutating func load(_ plaintext: UnsafeRawBufferPointer) {
            reset()
            let history = plaintext.suffix(LZ4Block.historyBytesMax)
            guard let base = UnsafeRawBufferPointer(rebasing: history).baseAddress else { return }
            _ = LZ4_loadDict(
                stream, base.assumingMemoryBound(to: CChar.self), Int32(history.count))
        }

        /// The upper bound of the compressed size of `count` bytes of plaintext.
        package static func bound(_ count: Int) -> Int { Int(LZ4_compressBound(Int32(count))) }

        /// Compresses the plaintext from `start` to the end of `plaintext`. O(n).
        ///
        /// - Returns: the number of bytes written.
        package mutating func compress(
            _ plaintext: UnsafeRawBufferPointer, from start: Int,
            into output: UnsafeMutableRawBufferPointer
        ) -> Int {
            let block = UnsafeRawBufferPointer(rebasing: plaintext[start...])
            guard let source = block.baseAddress, let target = output.baseAddress else { return 0 }
            let written = LZ4_compress_fast_continue(
                stream, source.assumingMemoryBound(to: CChar.self),
                target.assumingMemoryBound(to: CChar.self), Int32(block.count),
                Int32(output.count), 1)
            precondition(written > 0, "liblz4 failed on a block within its bound")
            return Int(written)
        }
    }

    /// A decoder of blocks, as `LZ4Block`.
    package enum LibLZ4Block {
        /// Decodes a block, as `LZ4Block.decode(_:into:at:capacity:)`.
        package static func decode(
            _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer,
            at start: Int, capacity: Int
        ) -> Int? {
            precondition(
                start >= 0 && capacity >= 0 && start + capacity <= target.count,
                "the capacity exceeds the target")
            guard let from = source.baseAddress, let base = target.baseAddress else { return nil }
            let to = base + start
            let history = min(start, LZ4Block.historyBytesMax)
            let count = LZ4_decompress_safe_usingDict(
                from.assumingMemoryBound(to: CChar.self), to.assumingMemoryBound(to: CChar.self),
                Int32(source.count), Int32(capacity),
                (to - history).assumingMemoryBound(to: CChar.self), Int32(history))
            // No line has a zero byte, so the tokens of hardly any block are read.
            guard count >= 0, memchr(to, 0, Int(count)) == nil || !LZ4Block.hasZeroOffset(source)
            else { return nil }
            return Int(count)
        }
    }
#else
    typealias BlockEncoder = LZ4Encoder
    typealias BlockDecoder = LZ4Block
#endif
