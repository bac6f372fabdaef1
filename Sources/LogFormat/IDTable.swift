// Numbers by UUID, for the hot paths of an append: each new id is looked for in what waits, in its own
// batch and in the live segment. Open addressing (Knuth, TAOCP 3, 6.4, algorithm L).

/// A table from UUIDs to numbers.
package struct IDTable: Sendable {
    private struct Slot {
        /// The id in two halves: a whole one would make a slot a third longer.
        var high: UInt64 = 0
        var low: UInt64 = 0
        /// One more than the number; 0 where there is none.
        var next: UInt64 = 0

        var id: UInt128 { UInt128(high) << 64 | UInt128(low) }
    }

    private var slots: [Slot] = []
    /// How many ids it has.
    package private(set) var count = 0
    /// Ids come from other devices as well: nobody shall know which of them meet.
    private static let secrets = (
        UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max)
    )

    /// An empty table.
    package init() {}

    /// Whether it has none.
    package var isEmpty: Bool { count == 0 }

    /// Makes room for so many more ids.
    package mutating func reserve(_ more: Int) {
        let needed = (count + more) * 4
        guard needed > slots.count * 3 else { return }
        var size = max(16, slots.count)
        while size * 3 < needed { size *= 2 }
        let old = slots
        slots = [Slot](repeating: Slot(), count: size)
        for slot in old where slot.next > 0 { slots[place(of: slot.id)] = slot }
    }

    /// The number of an id. O(1).
    package subscript(id: UInt128) -> UInt64? {
        guard count > 0 else { return nil }
        let slot = slots[place(of: id)]
        return slot.next > 0 ? slot.next - 1 : nil
    }

    /// Gives an id a number, which must be less than the greatest there is, in place of the one that
    /// it has. O(1), amortised.
    ///
    /// - Returns: the one that it had.
    @discardableResult
    package mutating func set(_ id: UInt128, to number: UInt64) -> UInt64? {
        reserve(1)
        let place = place(of: id)
        let before = slots[place].next
        slots[place] = Slot(
            high: UInt64(truncatingIfNeeded: id >> 64), low: UInt64(truncatingIfNeeded: id),
            next: number + 1)
        if before == 0 { count += 1 }
        return before > 0 ? before - 1 : nil
    }

    /// All ids with their numbers, in no order.
    package var all: [(id: UInt128, number: UInt64)] {
        slots.filter { $0.next > 0 }.map { ($0.id, $0.next - 1) }
    }

    /// The slot that has an id, or the empty one where it belongs. At least a quarter are empty.
    private func place(of id: UInt128) -> Int {
        let high = UInt64(truncatingIfNeeded: id >> 64)
        let low = UInt64(truncatingIfNeeded: id)
        let product = (low ^ Self.secrets.0).multipliedFullWidth(by: high ^ Self.secrets.1)
        var place = Int(truncatingIfNeeded: product.high ^ product.low) & (slots.count - 1)
        while slots[place].next > 0, slots[place].low != low || slots[place].high != high {
            place = (place + 1) & (slots.count - 1)
        }
        return place
    }
}
