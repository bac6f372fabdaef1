// Fixed-width little-endian numbers, the only integers that format 1 uses outside its bit streams.
// Readers spend most of their time here, so other targets may inline most of these methods.

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

extension RawSpan {
    /// Reads a little-endian integer. The caller has checked that the span contains its bytes.
    @inlinable
    package func integer<T: FixedWidthInteger & BitwiseCopyable>(
        at offset: Int, as type: T.Type = T.self
    ) -> T {
        precondition(
            offset >= 0 && offset <= byteCount - MemoryLayout<T>.size, "read outside the span")
        return T(littleEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: T.self))
    }

    /// The byte at an offset.
    @inlinable @inline(__always)
    package func byte(at offset: Int) -> UInt8 {
        precondition(offset >= 0 && offset < byteCount, "read outside the span")
        return unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
    }

    /// The offset of the first occurrence of `byte` at or after `start`, or nil. O(n), by the C library's
    /// `memchr`, which compares up to 32 bytes at a time; a loop over words took an eighth of a scan.
    package func offset(of byte: UInt8, from start: Int = 0) -> Int? {
        guard start < byteCount else { return nil }
        precondition(start >= 0, "read outside the span")
        return withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress,
                let found = memchr(base + start, Int32(byte), bytes.count - start)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    /// True if all bytes are ASCII.
    @inlinable
    package var isASCII: Bool {
        var (all, offset) = (UInt64(0), 0)
        while offset <= byteCount - 8 {
            all |= integer(at: offset, as: UInt64.self)
            offset += 8
        }
        while offset < byteCount {
            all |= UInt64(byte(at: offset))
            offset += 1
        }
        return all & 0x8080_8080_8080_8080 == 0
    }

    /// True if the span contains `text` at an offset.
    @inlinable
    package func matches(_ text: StaticString, at offset: Int) -> Bool {
        matches(
            UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount), at: offset
        )
    }

    /// True if the span contains `expected` at an offset.
    package func matches(_ expected: [UInt8], at offset: Int) -> Bool {
        expected.withUnsafeBytes { matches($0, at: offset) }
    }

    /// True if the span contains `expected` at an offset.
    @inlinable
    package func matches(_ expected: UnsafeRawBufferPointer, at offset: Int = 0) -> Bool {
        guard offset >= 0, offset <= byteCount - expected.count else { return false }
        guard expected.count >= 8 else {
            return expected.indices.allSatisfy { byte(at: offset + $0) == expected[$0] }
        }
        func isEqual(at index: Int) -> Bool {
            let word = expected.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            return integer(at: offset + index, as: UInt64.self) == UInt64(littleEndian: word)
        }
        var index = 0
        while index < expected.count - 8 {
            guard isEqual(at: index) else { return false }
            index += 8
        }
        // The last eight bytes, of which some were compared before: byte by byte would take longer.
        return isEqual(at: expected.count - 8)
    }

    /// True if the span is the UTF-8 of `text`.
    @inlinable
    package func isEqual(to text: String) -> Bool {
        text.utf8.count == byteCount
            && text.utf8.withBytes { $0.withUnsafeBytes { matches($0) } }
    }

    /// True if the span orders before `other`, compared byte by byte.
    @inlinable
    package func precedes(_ other: RawSpan) -> Bool {
        let common = min(byteCount, other.byteCount)
        var index = 0
        while index <= common - 8 {
            let (one, two) = (
                integer(at: index, as: UInt64.self), other.integer(at: index, as: UInt64.self)
            )
            // The load puts the first byte into the lowest place; comparing needs it in the highest.
            if one != two { return one.byteSwapped < two.byteSwapped }
            index += 8
        }
        while index < common {
            let (one, two) = (byte(at: index), other.byte(at: index))
            if one != two { return one < two }
            index += 1
        }
        return byteCount < other.byteCount
    }

    /// A copy of the bytes.
    package var array: [UInt8] {
        withUnsafeBytes { Array($0) }
    }

    /// The bytes as text. Invalid UTF-8 becomes U+FFFD.
    package var text: String {
        withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
}

extension Array<UInt8> {
    /// Appends a little-endian integer.
    package mutating func append<T: FixedWidthInteger>(littleEndian value: T) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }

    /// Appends a text.
    package mutating func append(_ text: StaticString) {
        append(
            contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends the bytes of a span.
    package mutating func append(contentsOf span: RawSpan) {
        span.withUnsafeBytes { append(contentsOf: $0) }
    }
}
