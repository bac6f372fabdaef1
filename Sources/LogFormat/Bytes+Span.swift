// Spans of arrays and texts where the system's Swift has none: macOS and iOS before 26. The standard
// library's `span` of an array needs new code for arrays of Objective-C only; these hold plain values.

extension Array where Element: BitwiseCopyable {
    /// The elements, as long as the array is not changed. O(1).
    @inlinable
    package var span: Span<Element> {
        @_lifetime(borrow self)
        @inline(__always)
        borrowing get {
            let memory = withUnsafeBufferPointer { $0 }
            return _overrideLifetime(Span(_unsafeElements: memory), borrowing: self)
        }
    }
}

extension String {
    /// The text of bytes that are UTF-8; nil if they are not. O(bytes), without the runtime's look-ups of
    /// `String(validating:as:)`.
    @inlinable
    package init?(utf8 bytes: RawSpan) {
        self.init(unsafeUninitializedCapacity: bytes.byteCount) { text in
            bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(text).copyMemory(from: $0) }
            return bytes.byteCount
        }
        // What is not UTF-8 was replaced.
        guard bytes.isEqual(to: self) else { return nil }
    }
}

extension String.UTF8View {
    /// Calls `body` with the bytes. A text that Objective-C holds is copied.
    @inlinable
    package func withBytes<Result>(_ body: (RawSpan) -> Result) -> Result {
        withContiguousStorageIfAvailable { body($0.span.bytes) } ?? body(Array(self).span.bytes)
    }
}
