// What makes a view independent of the order in which events arrive. Spec/views.md, VIEW-1.

/// A value that the event with the greatest stamp has set.
public struct Register<Value: Sendable & Hashable>: Sendable, Hashable {
    /// The value.
    public private(set) var value: Value
    /// The event that set it.
    public private(set) var stamp: Stamp

    /// A register that one event has set.
    public init(_ value: Value, _ stamp: Stamp) {
        self.value = value
        self.stamp = stamp
    }

    /// Sets the value if the event counts more than the one that set it.
    public mutating func set(_ value: Value, _ stamp: Stamp) {
        guard stamp > self.stamp else { return }
        self.value = value
        self.stamp = stamp
    }
}

extension Register: Codable where Value: Codable {}

extension Optional {
    /// Sets the register, creating it if nothing has set it yet.
    public mutating func set<Value>(_ value: Value, _ stamp: Stamp)
    where Wrapped == Register<Value> {
        if self == nil { self = Register(value, stamp) } else { self?.set(value, stamp) }
    }
}
