// One event's change of a declared view. The same code of a view tells what the event changes and which events
// have set the same registers, so a fold, the retention of an event and the rows that it changes cannot
// disagree. Spec/model/views.md, VIEW-31.

import Foundation
import HashTreeCollections

/// The change of a declared view by one event: sets registers when the event is folded, and lists their
/// winners when compaction asks whether the event is still needed.
public struct ViewChange: Sendable {
    /// The event's id.
    public let event: UUID
    /// The event's LWW timestamp.
    public let lwwTimestamp: LWWTimestamp
    /// True while the event is folded; false while its registers are only listed.
    public let isFolding: Bool
    /// The keys of the entities that the event changes. Empty while the event is folded.
    @usableFromInline var keys: [EntityID] = []
    /// The winners of the event's registers. Empty while the event is folded.
    @usableFromInline var winners: [LWWTimestamp?] = []
    /// The reason for which the event is needed.
    @usableFromInline var reason: KeptReason?
    /// The LWW timestamp of the removal that has voided the unset registers of the current entity.
    @usableFromInline var removal: LWWTimestamp?

    @inlinable init(of event: Event, isFolding: Bool) {
        self.event = event.id
        lwwTimestamp = event.lwwTimestamp
        self.isFolding = isFolding
    }

    /// Sets a register if the event's LWW timestamp is greater than the register's.
    ///
    /// - Parameters:
    ///   - register: the register.
    ///   - value: its value after the event.
    ///   - removal: the LWW timestamp of an event that has removed the register, if it was set before; nil
    ///     if there is none.
    ///   - reason: the reason for which the register's winner is needed.
    @inlinable public mutating func set<Value>(
        _ register: inout Register<Value>?, to value: Value, after removal: LWWTimestamp? = nil,
        neededAs reason: KeptReason = .current
    ) {
        guard isFolding else {
            let removals = [removal, self.removal].compactMap(\.self)
            return list(register?.lwwTimestamp ?? removals.max(), neededAs: reason)
        }
        if let removal, lwwTimestamp <= removal { return }
        register.set(value, lwwTimestamp)
    }

    /// Sets the register of an entity that has one.
    @inlinable public mutating func set<Value>(
        _ registers: inout TreeDictionary<EntityID, Register<Value>>, _ id: String, to value: Value
    ) {
        let id = EntityID(id)
        guard isFolding else {
            keys.append(id)
            return list(registers[id]?.lwwTimestamp)
        }
        registers[id].set(value, lwwTimestamp)
    }

    /// Sets the LWW timestamp of the first event.
    @inlinable public mutating func setFirst(_ first: inout LWWTimestamp?) {
        guard isFolding else { return list(first) }
        first = Swift.min(first ?? lwwTimestamp, lwwTimestamp)
    }

    /// Sets the LWW timestamp of the first event, from `greatest` on.
    @inlinable public mutating func setFirst(_ first: inout LWWTimestamp) {
        guard isFolding else { return list(first == .greatest ? nil : first) }
        first = Swift.min(first, lwwTimestamp)
    }

    /// Sets the LWW timestamp of the last event, from `least` on.
    @inlinable public mutating func setLast(_ last: inout LWWTimestamp) {
        guard isFolding else { return list(last == .least ? nil : last) }
        last = Swift.max(last, lwwTimestamp)
    }

    /// Sets the LWW timestamp of the last event.
    @inlinable public mutating func setLast(
        _ last: inout LWWTimestamp?, neededAs reason: KeptReason = .current
    ) {
        guard isFolding else { return list(last, neededAs: reason) }
        last = Swift.max(last ?? lwwTimestamp, lwwTimestamp)
    }

    /// Lists the key of a row that the event changes, unless it is folded. The tables of entities do so
    /// themselves.
    @inlinable public mutating func list(key: EntityID) {
        if !isFolding { keys.append(key) }
    }

    /// Lists the winner of a register that the event would set; nil for an unset register. For a view's own
    /// kind of register, while `isFolding` is false.
    @inlinable public mutating func list(
        _ winner: LWWTimestamp?, neededAs reason: KeptReason = .current
    ) {
        if winner == lwwTimestamp, self.reason == nil { self.reason = reason }
        winners.append(winner ?? removal)
    }

    /// The need for the event.
    @usableFromInline var retention: Retention {
        reason.map { .needed($0) } ?? .of(lwwTimestamp, heldBy: winners)
    }
}
