// The position of a line in its log. Spec/format/line.md, LINE-3.

/// The number of a line in one log: from 1, increasing by 1, never reused once acknowledged.
public struct Position: RawRepresentable, Hashable, Comparable, Sendable, Strideable,
    CustomStringConvertible
{
    /// The number. 0 means "before the first line".
    public let rawValue: UInt64

    /// Creates a position from its number.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    /// Creates a position from its number.
    public init(_ value: UInt64) { rawValue = value }

    /// The position before the first line.
    public static let zero = Position(0)

    /// The position that follows this one.
    public var next: Position { Position(rawValue + 1) }

    /// Orders by number.
    public static func < (lhs: Position, rhs: Position) -> Bool { lhs.rawValue < rhs.rawValue }
    /// The signed difference of two positions.
    public func distance(to other: Position) -> Int {
        Int(Int64(bitPattern: other.rawValue &- rawValue))
    }
    /// The position `n` lines further, at least 0.
    public func advanced(by n: Int) -> Position {
        n >= 0
            ? Position(rawValue + UInt64(n))
            : Position(rawValue - min(rawValue, UInt64(n.magnitude)))
    }
    /// The decimal number.
    public var description: String { String(rawValue) }
}
