// A last-writer-wins register: makes a view independent of the order in which events arrive.
// Spec/model/views.md, VIEW-1.

/// A last-writer-wins value: the event with the greatest LWW timestamp sets it.
public struct Register<Value: Sendable & Hashable>: Sendable, Hashable {
    /// The value.
    public let value: Value
    /// The LWW timestamp of the event that set it.
    public let lwwTimestamp: LWWTimestamp

    /// Creates a register that one event has set.
    @inlinable
    public init(_ value: Value, _ lwwTimestamp: LWWTimestamp) {
        self.value = value
        self.lwwTimestamp = lwwTimestamp
    }

    /// Sets the value if the event's LWW timestamp is greater than the register's.
    @inlinable
    public mutating func set(_ value: Value, _ lwwTimestamp: LWWTimestamp) {
        guard lwwTimestamp > self.lwwTimestamp else { return }
        self = Register(value, lwwTimestamp)
    }
}

extension Register: Codable where Value: Codable {}

extension Optional {
    /// Sets the register, creating it if nothing has set it yet.
    @inlinable
    public mutating func set<Value>(_ value: Value, _ lwwTimestamp: LWWTimestamp)
    where Wrapped == Register<Value> {
        if self == nil {
            self = Register(value, lwwTimestamp)
        } else {
            self?.set(value, lwwTimestamp)
        }
    }
}
