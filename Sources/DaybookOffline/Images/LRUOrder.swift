// An exact LRU order in memory, not persisted. ImageCache and ImageMemory evict by it.
// Spec/model/images.md, IMG-9.

import Daybook

/// Keys in the order of their last use.
struct LRUOrder<Key: Hashable & Comparable & Sendable>: Sendable {
    private struct Entry: Comparable, Sendable {
        var use: UInt64
        var key: Key

        static func < (lhs: Entry, rhs: Entry) -> Bool {
            (lhs.use, lhs.key) < (rhs.use, rhs.key)
        }
    }

    private var uses: [Key: UInt64] = [:]
    private var entries = SortedIndex<Entry>()
    private var last: UInt64 = 0

    /// The number of keys.
    var count: Int { uses.count }

    /// Moves a key to the end, or inserts it there. O(log n).
    mutating func use(_ key: Key) {
        remove(key)
        last += 1
        uses[key] = last
        entries.insert(Entry(use: last, key: key))
    }

    /// Removes a key. O(log n).
    mutating func remove(_ key: Key) {
        guard let use = uses.removeValue(forKey: key) else { return }
        entries.remove(Entry(use: use, key: key))
    }

    /// The least recently used key. O(1).
    var leastRecent: Key? { entries.first?.key }

    /// Returns the key used next after `key`; for nil, the least recently used key. O(log n).
    func leastRecent(after key: Key?) -> Key? {
        guard let key else { return leastRecent }
        return uses[key].flatMap { entries.first(after: Entry(use: $0, key: key))?.key }
    }

    /// The keys, the least recently used first. O(1) each.
    var leastRecentFirst: some Sequence<Key> { entries.ascending.lazy.map(\.key) }
}
