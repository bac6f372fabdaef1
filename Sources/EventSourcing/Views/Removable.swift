// Registers that one event removes together, until later events set them again: those of an album, the content
// of a city. Spec/model/views.md, VIEW-31.

/// Registers that can be removed together. A register that was set after the removal remains.
///
/// The registers are `Register`s, LWW timestamps of last events (`setLast`), and optionals and trees of them. Other
/// parts, such as an entity table, are not removed. Do not use `setFirst`: the first event after a removal
/// is unknown if an event before the removal was the first one.
public struct Removable<Registers: StateObject>: StateObject {
    /// The LWW timestamp of the last removal.
    @inlinable public var removed: LWWTimestamp? { removal }
    @usableFromInline var removal: LWWTimestamp?
    /// The registers that were set after it.
    public var registers = Registers()

    /// Creates registers that no event has set.
    @inlinable public init() {}

    @inlinable public mutating func visitState(_ state: inout some StateVisitor) throws(EventError)
    {
        try state.visit(&removal, &registers)
    }

    @inlinable public var stateFault: String? {
        var fault: String?
        guard let removal else { return nil }
        registers.forEachTimestamp {
            if $0 <= removal { fault = "a register is older than its removal" }
        }
        return fault
    }

    /// The LWW timestamp that an event must exceed to set a register.
    @inlinable public func bound<Value>(of register: Register<Value>?) -> LWWTimestamp? {
        register?.lwwTimestamp ?? removed
    }

    /// The greatest LWW timestamp of the removal and of all registers. O(registers).
    @inlinable public var newestTimestamp: LWWTimestamp? {
        [removed, registers.newestTimestamp].compactMap(\.self).max()
    }

    /// Changes the registers unless they were removed later.
    @inlinable public mutating func update(
        _ change: inout ViewChange, _ body: (inout Registers, inout ViewChange) -> Void
    ) {
        if change.isFolding, let removal, change.lwwTimestamp <= removal { return }
        change.removal = removal
        body(&registers, &change)
        change.removal = nil
    }

    /// Removes the registers that were set before the event.
    @inlinable public mutating func remove(_ change: inout ViewChange) {
        change.setLast(&removal, neededAs: .deletion)
        guard change.isFolding, removal == change.lwwTimestamp else { return }
        if registers.removeRegisters(through: change.lwwTimestamp) { registers = Registers() }
    }
}
