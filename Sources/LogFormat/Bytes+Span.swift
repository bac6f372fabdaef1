// Spans of arrays and strings on macOS and iOS before 26, whose Swift runtime has none. The standard
// library's `span` needs new runtime code only for arrays bridged from Objective-C; the element type
// here is a plain value.

extension Array where Element: BitwiseCopyable {
    /// A span over the elements, valid until the array is mutated. O(1).
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
    /// Creates a string from UTF-8; nil if the bytes are not valid UTF-8. O(bytes), without the runtime
    /// lookups of `String(validating:as:)`.
    @inlinable
    package init?(utf8 bytes: RawSpan) {
        self.init(unsafeUninitializedCapacity: bytes.byteCount) { text in
            bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(text).copyMemory(from: $0) }
            return bytes.byteCount
        }
        // The initializer replaced invalid UTF-8, so the string then differs from the bytes.
        guard bytes.isEqual(to: self) else { return nil }
    }
}

extension String.UTF8View {
    /// Calls `body` with the bytes. A string bridged from Objective-C is copied first.
    @inlinable
    package func withBytes<Result>(_ body: (RawSpan) -> Result) -> Result {
        withContiguousStorageIfAvailable { body($0.span.bytes) } ?? body(Array(self).span.bytes)
    }
}
