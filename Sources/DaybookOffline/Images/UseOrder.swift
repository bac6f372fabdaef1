// In which order things were used, in memory: exact, and gone with the process. What ImageCache and
// ImageMemory evict by. Spec/model/images.md, IMG-9.

import Daybook

/// Keys in the order of their last use.
struct UseOrder<Key: Hashable & Comparable & Sendable>: Sendable {
    private struct Place: Comparable, Sendable {
        var use: UInt64
        var key: Key

        static func < (lhs: Place, rhs: Place) -> Bool {
            (lhs.use, lhs.key) < (rhs.use, rhs.key)
        }
    }

    private var uses: [Key: UInt64] = [:]
    private var places = SortedIndex<Place>()
    private var last: UInt64 = 0

    /// How many keys there are.
    var count: Int { uses.count }

    /// A use of a key. O(log n).
    mutating func use(_ key: Key) {
        remove(key)
        last += 1
        uses[key] = last
        places.insert(Place(use: last, key: key))
    }

    /// Takes a key out. O(log n).
    mutating func remove(_ key: Key) {
        guard let use = uses.removeValue(forKey: key) else { return }
        places.remove(Place(use: use, key: key))
    }

    /// The key that was not used for longest. O(1).
    var leastRecent: Key? { places.first?.key }

    /// The key that was used next after another, or the one that was not used for longest.
    /// O(log n).
    func leastRecent(after key: Key?) -> Key? {
        guard let key else { return leastRecent }
        return uses[key].flatMap { places.first(after: Place(use: $0, key: key))?.key }
    }

    /// The keys, the one that was not used for longest first. O(1) each.
    var leastRecentFirst: some Sequence<Key> { places.ascending.lazy.map(\.key) }
}
