// A line's place in its log. Spec/format/line.md, LINE-3.

/// The place of a line in one log: from 1, rising by 1, never reused once acknowledged.
public struct Position: RawRepresentable, Hashable, Comparable, Sendable, Strideable,
    CustomStringConvertible
{
    /// The number itself. 0 means "before the first line".
    public let rawValue: UInt64

    /// Wraps a number.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    /// Wraps a number.
    public init(_ value: UInt64) { rawValue = value }

    /// Before the first line.
    public static let zero = Position(0)

    /// The position of the line after this one.
    public var next: Position { Position(rawValue + 1) }

    /// Orders by place.
    public static func < (lhs: Position, rhs: Position) -> Bool { lhs.rawValue < rhs.rawValue }
    /// The signed number of lines between two places.
    public func distance(to other: Position) -> Int {
        Int(Int64(bitPattern: other.rawValue &- rawValue))
    }
    /// The place `n` lines further. Stops at 0.
    public func advanced(by n: Int) -> Position {
        n >= 0
            ? Position(rawValue + UInt64(n))
            : Position(rawValue - min(rawValue, UInt64(n.magnitude)))
    }
    /// The decimal number.
    public var description: String { String(rawValue) }
}
