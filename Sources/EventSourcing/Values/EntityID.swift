// The keys of views. Spec/model/views.md, VIEW-4; Spec/decisions/0006-ids-are-bytes.md.

/// An identifier compared byte by byte. Swift compares strings by canonical equivalence, so two ids that
/// differ only in the composition of an accent would be one key.
public struct EntityID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The identifier.
    public let string: String

    /// Wraps an identifier.
    public init(_ string: String) { self.string = string }

    /// Whether a text is an identifier: not empty, and without U+0000, at which some databases end a text, so that
    /// two ids would be equal there. O(bytes). Spec/model/events.md, EVT-4.
    public static func isIdentifier(_ text: String) -> Bool {
        !text.isEmpty && !text.utf8.contains(0)
    }

    /// True if all bytes are equal.
    public static func == (lhs: EntityID, rhs: EntityID) -> Bool {
        lhs.string.utf8.withBytes { $0.isEqual(to: rhs.string) }
    }
    /// Orders by bytes.
    public static func < (lhs: EntityID, rhs: EntityID) -> Bool {
        lhs.string.utf8.withBytes { lhs in rhs.string.utf8.withBytes { lhs.precedes($0) } }
    }
    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) {
        string.utf8.withBytes { $0.withUnsafeBytes { hasher.combine(bytes: $0) } }
        hasher.combine(UInt8(0xFF))
    }
    /// The identifier.
    public var description: String { string }
}
