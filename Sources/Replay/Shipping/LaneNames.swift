// The lanes' indices by name, for LaneSet. Open addressing (Knuth, TAOCP 3, 6.4, algorithms L and R).

import EventSourcing
import LogFormat

/// A table from the hashes of names to the indices of lanes. The caller has the names and compares them.
///
/// A name is hashed once. A dictionary hashes it each time that its lane comes, goes or gets an event, which took
/// a sixth of the instructions of shipping.
struct LaneNames: Sendable {
    private struct Slot {
        var hash: UInt32 = 0
        /// The index of the lane; negative for an empty slot.
        var lane: Int32 = -1
    }

    /// A power of two of slots, of which a quarter or more are empty.
    private var slots = [Slot](repeating: Slot(), count: 16)
    private var count = 0
    /// Random per process, so that names that collide are hard to choose. No result depends on it.
    private static let seed = UInt32.random(in: .min ... .max)

    /// The hash of a lane's name. O(bytes).
    static func hash(of name: EntityID) -> UInt32 {
        name.string.utf8.withBytes { XXH32.hash($0, seed: seed) }
    }

    /// The first lane with a hash for which `isNamed` returns true; nil if there is none. O(1).
    func lane(with hash: UInt32, where isNamed: (Int) -> Bool) -> Int? {
        var index = home(of: hash)
        while slots[index].lane >= 0 {
            if slots[index].hash == hash, isNamed(Int(slots[index].lane)) {
                return Int(slots[index].lane)
            }
            index = following(index)
        }
        return nil
    }

    /// Inserts a lane. O(1), amortized.
    mutating func insert(_ lane: Int, with hash: UInt32) {
        if (count + 1) * 4 > slots.count * 3 {
            let old = slots
            slots = [Slot](repeating: Slot(), count: old.count * 2)
            for slot in old where slot.lane >= 0 { place(slot) }
        }
        place(Slot(hash: hash, lane: Int32(lane)))
        count += 1
    }

    /// Removes a lane that is in the table. O(1).
    mutating func remove(_ lane: Int, with hash: UInt32) {
        var hole = home(of: hash)
        while slots[hole].lane != Int32(lane) {
            precondition(slots[hole].lane >= 0, "a lane that is removed is in the table")
            hole = following(hole)
        }
        // A later slot moves into the hole, unless the search for it begins after the hole.
        var index = following(hole)
        while slots[index].lane >= 0 {
            let distance = (index - home(of: slots[index].hash)) & (slots.count - 1)
            if distance >= (index - hole) & (slots.count - 1) {
                slots[hole] = slots[index]
                hole = index
            }
            index = following(index)
        }
        slots[hole] = Slot()
        count -= 1
    }

    private mutating func place(_ slot: Slot) {
        var index = home(of: slot.hash)
        while slots[index].lane >= 0 { index = following(index) }
        slots[index] = slot
    }

    private func home(of hash: UInt32) -> Int { Int(hash) & (slots.count - 1) }

    private func following(_ index: Int) -> Int { (index + 1) & (slots.count - 1) }
}
