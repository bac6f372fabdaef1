// What makes a view independent of the order in which events arrive. Spec/model/views.md, VIEW-1.

/// A value that the event with the greatest stamp has set.
public struct Register<Value: Sendable & Hashable>: Sendable, Hashable {
    /// The value.
    public let value: Value
    /// The event that set it.
    public let stamp: Stamp

    /// A register that one event has set.
    @inlinable
    public init(_ value: Value, _ stamp: Stamp) {
        self.value = value
        self.stamp = stamp
    }

    /// Sets the value if the event counts more than the one that set it.
    @inlinable
    public mutating func set(_ value: Value, _ stamp: Stamp) {
        guard stamp > self.stamp else { return }
        self = Register(value, stamp)
    }
}

extension Register: Codable where Value: Codable {}

extension Optional {
    /// Sets the register, creating it if nothing has set it yet.
    @inlinable
    public mutating func set<Value>(_ value: Value, _ stamp: Stamp)
    where Wrapped == Register<Value> {
        if self == nil { self = Register(value, stamp) } else { self?.set(value, stamp) }
    }
}
