// Fixed-width little-endian numbers, the only integers format 1 uses outside its bit streams. Readers
// spend most of their time here, so other targets may inline them.

extension RawSpan {
    /// Reads a little-endian integer. The caller has checked that its bytes are there.
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

    /// A copy of the bytes.
    package var array: [UInt8] {
        withUnsafeBytes { Array($0) }
    }
}

extension Array<UInt8> {
    /// Appends a little-endian integer.
    package mutating func append<T: FixedWidthInteger>(littleEndian value: T) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }

    /// Appends the bytes of a span.
    package mutating func append(contentsOf span: RawSpan) {
        span.withUnsafeBytes { append(contentsOf: $0) }
    }
}
