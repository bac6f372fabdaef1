// The parts of states that are no view's own: text, numbers, times, registers and collections.
// Spec/model/views.md, VIEW-31.

import Foundation
import HashTreeCollections

extension String: StateValue {
    public func write(to state: inout StateWriter) { state.write(self) }
    public init(from state: inout StateReader) throws(EventError) { self = try state.string() }
}

/// A whole number. One of at least 0 takes a byte for each 7 bits, a negative one ten bytes.
extension Int: StateValue {
    public func write(to state: inout StateWriter) { state.write(UInt64(bitPattern: Int64(self))) }
    public init(from state: inout StateReader) throws(EventError) {
        self.init(truncatingIfNeeded: try state.integer())
    }
}

extension Double: StateValue {
    public func write(to state: inout StateWriter) { state.write(self) }
    public init(from state: inout StateReader) throws(EventError) { self = try state.double() }
}

extension Bool: StateValue {
    public func write(to state: inout StateWriter) { state.write(self) }
    public init(from state: inout StateReader) throws(EventError) { self = try state.bool() }
}

extension UUID: StateValue {
    public func write(to state: inout StateWriter) { state.write(self) }
    public init(from state: inout StateReader) throws(EventError) { self = try state.uuid() }
}

extension Timestamp: StateValue {
    public func write(to state: inout StateWriter) { state.write(self) }
    public init(from state: inout StateReader) throws(EventError) { self = try state.time() }
}

extension LWWTimestamp: StateValue {
    public func write(to state: inout StateWriter) { state.write(self) }
    public init(from state: inout StateReader) throws(EventError) {
        self = try state.lwwTimestamp()
    }

    /// True if it is not greater: the last of events is removed like a register.
    public func removeRegisters(through removal: LWWTimestamp) -> Bool { self <= removal }

    public func forEachTimestamp(_ body: (LWWTimestamp) -> Void) { body(self) }
}

extension StateValue where Self: RawRepresentable, RawValue: StateValue {
    @inlinable public func write(to state: inout StateWriter) throws(EventError) {
        try rawValue.write(to: &state)
    }

    @inlinable public init(from state: inout StateReader) throws(EventError) {
        let raw = try RawValue(from: &state)
        guard let value = Self(rawValue: raw) else {
            throw state.fault("a \(Self.self) is none of its cases")
        }
        self = value
    }
}

extension Optional: StateValue where Wrapped: StateValue {
    @inlinable public func write(to state: inout StateWriter) throws(EventError) {
        state.write(self != nil)
        try self?.write(to: &state)
    }

    @inlinable public init(from state: inout StateReader) throws(EventError) {
        self = try state.bool() ? try Wrapped(from: &state) : nil
    }

    @inlinable public var isVoid: Bool { self == nil }

    @inlinable public mutating func removeRegisters(through removal: LWWTimestamp) -> Bool {
        if self?.removeRegisters(through: removal) ?? false { self = nil }
        return self == nil
    }

    @inlinable public func forEachTimestamp(_ body: (LWWTimestamp) -> Void) {
        self?.forEachTimestamp(body)
    }
}

extension Array: StateValue where Element: StateValue {
    @inlinable public func write(to state: inout StateWriter) throws(EventError) {
        state.write(count: count)
        for element in self { try element.write(to: &state) }
    }

    @inlinable public init(from state: inout StateReader) throws(EventError) {
        self = []
        for _ in 0..<(try state.count()) { append(try Element(from: &state)) }
    }
}

extension Register: StateValue where Value: StateValue {
    @inlinable public func write(to state: inout StateWriter) throws(EventError) {
        try value.write(to: &state)
        state.write(lwwTimestamp)
    }

    @inlinable public init(from state: inout StateReader) throws(EventError) {
        let value = try Value(from: &state)
        self.init(value, try state.lwwTimestamp())
    }

    @inlinable public func removeRegisters(through removal: LWWTimestamp) -> Bool {
        lwwTimestamp <= removal
    }

    @inlinable public func forEachTimestamp(_ body: (LWWTimestamp) -> Void) { body(lwwTimestamp) }
}

extension TreeDictionary: StateValue where Key == EntityID, Value: StateValue {
    /// Writes the entries that are not void, sorted by key. An event that was too old to set a register may have
    /// left a void one; a reader refuses it.
    @inlinable public func write(to state: inout StateWriter) throws(EventError) {
        var entries = state.entries(count: reduce(0) { $1.value.isVoid ? $0 : $0 + 1 })
        for (key, value) in self where !value.isVoid {
            state.begin(key, of: &entries)
            try value.write(to: &state)
        }
        state.end(entries)
    }

    /// Reads entries, each of which must not be void.
    @inlinable public init(from state: inout StateReader) throws(EventError) {
        var read: Self = [:]
        try state.entries { (state, key) throws(EventError) in
            let value = try Value(from: &state)
            guard !value.isVoid else { throw state.fault("an entry is empty") }
            read[key] = value
        }
        self = read
    }

    /// True if all entries are void. O(1) if none is.
    @inlinable public var isVoid: Bool { allSatisfy { $0.value.isVoid } }

    @inlinable public mutating func removeRegisters(through removal: LWWTimestamp) -> Bool {
        self = compactMapValues { value in
            var value = value
            return value.removeRegisters(through: removal) ? nil : value
        }
        return isEmpty
    }

    @inlinable public func forEachTimestamp(_ body: (LWWTimestamp) -> Void) {
        for value in values { value.forEachTimestamp(body) }
    }
}
