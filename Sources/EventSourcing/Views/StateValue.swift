// The parts of which a declared view's state consists: values that are written to a checkpoint and read
// from it, and objects that list their parts once. Spec/model/views.md, VIEW-10, VIEW-31.

import Foundation
import HashTreeCollections

/// A part of a declared view's state.
///
/// Strings, numbers, times, registers, and optionals, arrays and trees of them are parts. A view adds its own
/// types as `StateObject`.
public protocol StateValue: Sendable {
    /// Writes the value. Equal values give equal bytes.
    ///
    /// - Throws: `EventError` (`invalidData`) for a value that cannot be written.
    func write(to state: inout StateWriter) throws(EventError)
    /// Reads what `write(to:)` wrote.
    ///
    /// - Throws: `EventError` (`invalidData`) for any other bytes.
    init(from state: inout StateReader) throws(EventError)
    /// True if no event has set any part of the value.
    var isVoid: Bool { get }
    /// Removes the registers that were set up to an LWW timestamp.
    ///
    /// - Returns: true if nothing remains.
    mutating func removeRegisters(through removal: LWWTimestamp) -> Bool
    /// Calls the closure with the LWW timestamp of each register.
    func forEachTimestamp(_ body: (LWWTimestamp) -> Void)
}

extension StateValue {
    /// False.
    @inlinable public var isVoid: Bool { false }
    /// False: the value has no registers.
    @inlinable public mutating func removeRegisters(through removal: LWWTimestamp) -> Bool { false }
    /// Does nothing: the value has no registers.
    @inlinable public func forEachTimestamp(_ body: (LWWTimestamp) -> Void) {}

    /// The greatest LWW timestamp of a register; nil if none is set. O(registers).
    @inlinable public var newestTimestamp: LWWTimestamp? {
        var newest: LWWTimestamp?
        forEachTimestamp { newest = Swift.max(newest ?? $0, $0) }
        return newest
    }
}

/// A visitor of the parts of an object: writes, reads or examines them.
public protocol StateVisitor {
    /// Visits a part.
    ///
    /// - Throws: `EventError` (`invalidData`) for bytes that are not a part of this type.
    mutating func visit<Value: StateValue>(_ value: inout Value) throws(EventError)
}

extension StateVisitor {
    /// Visits parts in order.
    @inlinable public mutating func visit<A: StateValue, B: StateValue>(
        _ a: inout A, _ b: inout B
    ) throws(EventError) {
        try visit(&a)
        try visit(&b)
    }

    /// Visits parts in order.
    @inlinable public mutating func visit<A: StateValue, B: StateValue, C: StateValue>(
        _ a: inout A, _ b: inout B, _ c: inout C
    ) throws(EventError) {
        try visit(&a, &b)
        try visit(&c)
    }

    /// Visits parts in order.
    @inlinable
    public mutating func visit<
        A: StateValue, B: StateValue, C: StateValue, D: StateValue
    >(_ a: inout A, _ b: inout B, _ c: inout C, _ d: inout D) throws(EventError) {
        try visit(&a, &b)
        try visit(&c, &d)
    }
}

extension StateWriter: StateVisitor {
    @inlinable public mutating func visit<Value: StateValue>(
        _ value: inout Value
    ) throws(EventError) {
        try value.write(to: &self)
    }
}

extension StateReader: StateVisitor {
    @inlinable public mutating func visit<Value: StateValue>(
        _ value: inout Value
    ) throws(EventError) {
        value = try Value(from: &self)
    }
}

/// A part of a state that consists of parts.
///
/// ```swift
/// struct Visit: StateObject {
///     var place: Register<String>?
///     var stars: Register<Int>?
///     mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
///         try state.visit(&place, &stars)
///     }
/// }
/// ```
public protocol StateObject: StateValue {
    /// Creates the object before the first event.
    init()
    /// Visits every part that is stored. The order is that of the bytes.
    ///
    /// - Throws: what the visitor throws.
    mutating func visitState(_ state: inout some StateVisitor) throws(EventError)
    /// What is wrong with a value that no events give; nil for any other. A reader refuses it.
    var stateFault: String? { get }
}

extension StateObject {
    /// Nil: events can give every value.
    @inlinable public var stateFault: String? { nil }

    @inlinable public func write(to state: inout StateWriter) throws(EventError) {
        var copy = self
        try copy.visitState(&state)
    }

    @inlinable public init(from state: inout StateReader) throws(EventError) {
        self.init()
        try visitState(&state)
        if let stateFault { throw state.fault(stateFault) }
    }

    /// True if every part is void. O(parts).
    @inlinable public var isVoid: Bool {
        var (copy, visitor) = (self, VoidVisitor())
        try? copy.visitState(&visitor)
        return visitor.isVoid
    }

    /// Removes the registers of every part that were set up to an LWW timestamp. O(parts).
    ///
    /// - Returns: true if nothing remains.
    @inlinable public mutating func removeRegisters(through removal: LWWTimestamp) -> Bool {
        var visitor = RemovalVisitor(removal: removal)
        try? visitState(&visitor)
        return isVoid
    }

    /// Calls the closure with the LWW timestamp of each register of every part.
    @inlinable public func forEachTimestamp(_ body: (LWWTimestamp) -> Void) {
        withoutActuallyEscaping(body) { body in
            var (copy, visitor) = (self, TimestampVisitor(body: body))
            try? copy.visitState(&visitor)
        }
    }
}

extension StateObject where Self: DeclaredObject {
    /// Creates the example.
    @inlinable public init() { self = .example }
}

/// Finds out whether any part is set.
@usableFromInline struct VoidVisitor: StateVisitor {
    @usableFromInline var isVoid = true

    @inlinable init() {}

    @inlinable mutating func visit<Value: StateValue>(_ value: inout Value) {
        if isVoid { isVoid = value.isVoid }
    }
}

/// Removes registers.
@usableFromInline struct RemovalVisitor: StateVisitor {
    @usableFromInline let removal: LWWTimestamp

    @inlinable init(removal: LWWTimestamp) { self.removal = removal }

    @inlinable mutating func visit<Value: StateValue>(_ value: inout Value) {
        _ = value.removeRegisters(through: removal)
    }
}

/// Visits the LWW timestamps of registers.
@usableFromInline struct TimestampVisitor: StateVisitor {
    @usableFromInline let body: (LWWTimestamp) -> Void

    @inlinable init(body: @escaping (LWWTimestamp) -> Void) { self.body = body }

    @inlinable mutating func visit<Value: StateValue>(_ value: inout Value) {
        value.forEachTimestamp(body)
    }
}
