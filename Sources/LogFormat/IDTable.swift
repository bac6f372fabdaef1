// Numbers by UUID, for the duplicate check of an append: each new id is looked up in the pending
// appends, in its own batch and in the live segment. Open addressing (Knuth, TAOCP 3, 6.4, algorithm L).

/// A table from UUIDs to numbers.
package struct IDTable: Sendable {
    private struct Slot {
        /// The id in two halves: the alignment of `UInt128` would make a slot a third longer.
        var high: UInt64 = 0
        var low: UInt64 = 0
        /// The number plus one; 0 marks an empty slot.
        var next: UInt64 = 0

        var id: UInt128 { UInt128(high) << 64 | UInt128(low) }
    }

    private var slots: [Slot] = []
    /// The number of ids.
    package private(set) var count = 0
    /// Random per process: ids also come from other devices, which must not be able to choose ids that
    /// collide.
    private static let secrets = (
        UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max)
    )

    /// An empty table.
    package init() {}

    /// True if the table has no ids.
    package var isEmpty: Bool { count == 0 }

    /// Reserves memory for `more` additional ids.
    package mutating func reserve(_ more: Int) {
        let needed = (count + more) * 4
        guard needed > slots.count * 3 else { return }
        var size = max(16, slots.count)
        while size * 3 < needed { size *= 2 }
        let old = slots
        slots = [Slot](repeating: Slot(), count: size)
        for slot in old where slot.next > 0 { slots[slotIndex(of: slot.id)] = slot }
    }

    /// The number stored for an id, or nil. O(1).
    package subscript(id: UInt128) -> UInt64? {
        guard count > 0 else { return nil }
        let slot = slots[slotIndex(of: id)]
        return slot.next > 0 ? slot.next - 1 : nil
    }

    /// Replaces the number stored for `id`. O(1), amortized.
    ///
    /// - Parameter number: below `UInt64.max`, since a slot stores it plus one.
    /// - Returns: the number stored before, or nil.
    @discardableResult
    package mutating func set(_ id: UInt128, to number: UInt64) -> UInt64? {
        reserve(1)
        let index = slotIndex(of: id)
        let before = slots[index].next
        slots[index] = Slot(
            high: UInt64(truncatingIfNeeded: id >> 64), low: UInt64(truncatingIfNeeded: id),
            next: number + 1)
        if before == 0 { count += 1 }
        return before > 0 ? before - 1 : nil
    }

    /// All ids with their numbers, in no particular order.
    package var all: [(id: UInt128, number: UInt64)] {
        slots.filter { $0.next > 0 }.map { ($0.id, $0.next - 1) }
    }

    /// The index of the slot that holds `id`, or of the empty slot where it belongs. A quarter of the
    /// slots or more are empty, so the search ends.
    private func slotIndex(of id: UInt128) -> Int {
        let high = UInt64(truncatingIfNeeded: id >> 64)
        let low = UInt64(truncatingIfNeeded: id)
        let product = (low ^ Self.secrets.0).multipliedFullWidth(by: high ^ Self.secrets.1)
        var index = Int(truncatingIfNeeded: product.high ^ product.low) & (slots.count - 1)
        while slots[index].next > 0, slots[index].low != low || slots[index].high != high {
            index = (index + 1) & (slots.count - 1)
        }
        return index
    }
}
