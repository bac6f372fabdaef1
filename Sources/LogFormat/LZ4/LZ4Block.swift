// Decodes LZ4 blocks in Swift where the package is built without LibLZ4, and on systems other than Linux and
// macOS. Below BlockDecompressor.
// Spec/format/block-and-frame.md, BLK-3 and BLK-4.

/// The LZ4 block format. https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
package enum LZ4Block {
    /// The greatest offset of a match, in bytes.
    package static let offsetMax = 65_535

    /// The bytes of plaintext that liblz4 takes as the history of a block.
    static let historyBytesMax = offsetMax + 1

    /// Decodes a block.
    ///
    /// Reads nothing outside `source`, writes nothing outside the `capacity` bytes from `start`, and reads
    /// of `target` only the bytes before `start` and those it has written. O(n).
    ///
    /// - Parameters:
    ///   - source: the block's data.
    ///   - target: the frame's plaintext so far, then at least `capacity` bytes. The content of those that
    ///     the block does not fill is undefined afterwards.
    ///   - start: the number of plaintext bytes so far.
    ///   - capacity: the maximum of bytes that the block may decode to.
    /// - Returns: the number of decoded bytes; nil if the block is malformed or exceeds `capacity`.
    package static func decode(
        _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer,
        at start: Int, capacity: Int
    ) -> Int? {
        precondition(
            start >= 0 && capacity >= 0 && start + capacity <= target.count,
            "the capacity exceeds the target")
        guard let input = source.baseAddress, let output = target.baseAddress else { return nil }
        let (inputEnd, outputEnd) = (source.count, start + capacity)
        var (read, written) = (0, start)
        while read < inputEnd {
            let token = input.load(fromByteOffset: read, as: UInt8.self)
            read &+= 1
            var literals = Int(token >> 4)
            if literals == 15 {
                guard let more = length(input, &read, inputEnd) else { return nil }
                literals &+= more
            }
            guard literals <= inputEnd &- read, literals <= outputEnd &- written else { return nil }
            if literals <= 16, inputEnd &- read >= 16, outputEnd &- written >= 16 {
                copy16(input + read, output + written)
            } else {
                (output + written).copyMemory(from: input + read, byteCount: literals)
            }
            read &+= literals
            written &+= literals
            if read == inputEnd { return written &- start }
            guard inputEnd &- read >= 2 else { return nil }
            let offset = Int(
                UInt16(littleEndian: input.loadUnaligned(fromByteOffset: read, as: UInt16.self)))
            read &+= 2
            var matched = Int(token & 15)
            if matched == 15 {
                guard let more = length(input, &read, inputEnd) else { return nil }
                matched &+= more
            }
            matched &+= 4
            guard offset > 0, offset <= written, matched <= outputEnd &- written else { return nil }
            copyMatch(output, offset, matched, outputEnd, &written)
        }
        // A block that ends after a match is malformed.
        return nil
    }

    /// True if a match of a block that liblz4 has decoded has the offset 0, which liblz4 accepts and which makes
    /// zero bytes of plaintext. O(n).
    static func hasZeroOffset(_ source: UnsafeRawBufferPointer) -> Bool {
        guard let input = source.baseAddress else { return false }
        var read = 0
        while read < source.count {
            let token = input.load(fromByteOffset: read, as: UInt8.self)
            read += 1
            var literals = Int(token >> 4)
            if literals == 15 { literals += length(input, &read, source.count) ?? 0 }
            read += literals
            guard read + 2 <= source.count else { return false }
            if input.loadUnaligned(fromByteOffset: read, as: UInt16.self) == 0 { return true }
            read += 2
            if token & 15 == 15 { _ = length(input, &read, source.count) }
        }
        return false
    }

    /// Reads the extension bytes of a length; nil where the block ends in them.
    @inline(__always)
    private static func length(
        _ input: UnsafeRawPointer, _ read: inout Int, _ end: Int
    ) -> Int? {
        var length = 0
        while read < end {
            let byte = input.load(fromByteOffset: read, as: UInt8.self)
            read &+= 1
            length &+= Int(byte)
            if byte < 255 { return length }
        }
        return nil
    }

    /// Copies a match. A match that overlaps its own output repeats it.
    @inline(__always)
    private static func copyMatch(
        _ output: UnsafeMutableRawPointer, _ offset: Int, _ count: Int, _ end: Int,
        _ written: inout Int
    ) {
        let (from, to) = (output + (written &- offset), output + written)
        var done = 0
        if offset >= 16, end &- written >= (count &+ 15) & ~15 {
            while done < count {
                copy16(from + done, to + done)
                done &+= 16
            }
        } else if offset >= 8, end &- written >= (count &+ 7) & ~7 {
            while done < count {
                to.storeBytes(
                    of: from.loadUnaligned(fromByteOffset: done, as: UInt64.self),
                    toByteOffset: done, as: UInt64.self)
                done &+= 8
            }
        } else if offset >= count {
            to.copyMemory(from: from, byteCount: count)
        } else {
            while done < count {
                to.storeBytes(
                    of: from.load(fromByteOffset: done, as: UInt8.self), toByteOffset: done,
                    as: UInt8.self)
                done &+= 1
            }
        }
        written &+= count
    }

    @inline(__always)
    private static func copy16(_ from: UnsafeRawPointer, _ to: UnsafeMutableRawPointer) {
        to.storeBytes(
            of: from.loadUnaligned(as: SIMD16<UInt8>.self), as: SIMD16<UInt8>.self)
    }
}
