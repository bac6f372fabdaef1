// The keys of views. Spec/model/views.md, VIEW-4; Spec/decisions/0006-ids-are-bytes.md.

/// An identifier compared byte by byte. Swift compares strings by what they look like, so two ids
/// that differ only in how an accent is composed would be one key.
public struct EntityID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The identifier.
    public let string: String

    /// Wraps an identifier.
    public init(_ string: String) { self.string = string }

    /// Equal if all bytes are.
    public static func == (lhs: EntityID, rhs: EntityID) -> Bool {
        let (a, b) = (lhs.string.utf8.span, rhs.string.utf8.span)
        guard a.count == b.count else { return false }
        for index in a.indices where a[index] != b[index] { return false }
        return true
    }
    /// Orders by bytes.
    public static func < (lhs: EntityID, rhs: EntityID) -> Bool {
        let (a, b) = (lhs.string.utf8.span, rhs.string.utf8.span)
        for index in 0..<min(a.count, b.count) where a[index] != b[index] {
            return a[index] < b[index]
        }
        return a.count < b.count
    }
    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) {
        string.utf8.span.withUnsafeBytes { hasher.combine(bytes: $0) }
        hasher.combine(UInt8(0xFF))
    }
    /// The identifier.
    public var description: String { string }
}
