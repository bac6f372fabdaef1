// The greatest LWW timestamp of each key, for a bounded number of keys; one LWW timestamp, the floor, bounds
// all others. ImagesView tracks removals and accesses with it. Spec/model/images.md, IMG-4.

import Daybook
import HashTreeCollections

/// A key with its LWW timestamp, sorted by LWW timestamp.
struct LWWTimestampEntry: Comparable, Sendable {
    var lwwTimestamp: LWWTimestamp
    var key: EntityID

    static func < (lhs: LWWTimestampEntry, rhs: LWWTimestampEntry) -> Bool {
        (lhs.lwwTimestamp, lhs.key) < (rhs.lwwTimestamp, rhs.key)
    }
}

/// The greatest LWW timestamp of each key.
///
/// The table tracks the `capacity` keys with the greatest LWW timestamps. The `floor` is the greatest LWW
/// timestamp of any other key, or the one to which it was raised. The tracked keys and the floor depend on
/// the calls and not on their order.
struct LWWTimestampTable: Sendable {
    /// The greatest number of tracked keys.
    let capacity: Int
    /// The LWW timestamps of the tracked keys. All are greater than the floor.
    private(set) var lwwTimestamps: TreeDictionary<EntityID, LWWTimestamp> = [:]
    private(set) var floor: LWWTimestamp?
    /// An index, computed from `lwwTimestamps`.
    private var order = SortedIndex<LWWTimestampEntry>()

    init(capacity: Int) { self.capacity = capacity }

    /// Returns the LWW timestamp of a tracked key, or the floor as the upper bound of an untracked one. O(1).
    func bound(of key: EntityID) -> LWWTimestamp? { lwwTimestamps[key] ?? floor }

    /// True if the table would differ without the event of this LWW timestamp.
    func depends(on lwwTimestamp: LWWTimestamp, for key: EntityID) -> Bool {
        lwwTimestamps[key] == lwwTimestamp || floor == lwwTimestamp
    }

    /// Returns the median of a table that is more than half full, if the given LWW timestamp is not above it
    /// and may soon be below the floor; otherwise nil. O(1).
    func renewalBound(of lwwTimestamp: LWWTimestamp) -> LWWTimestamp? {
        guard order.count > capacity / 2, let middle = order.middle?.lwwTimestamp else {
            return nil
        }
        return lwwTimestamp <= middle ? middle : nil
    }

    /// Sets the LWW timestamp of a key if it is greater than the current one. O(log n).
    ///
    /// - Returns: the entries that are not tracked any more. If there are any, the floor has risen.
    mutating func set(_ lwwTimestamp: LWWTimestamp, of key: EntityID) -> [LWWTimestampEntry] {
        guard bound(of: key).map({ $0 < lwwTimestamp }) ?? true else { return [] }
        if let old = lwwTimestamps[key] {
            order.remove(LWWTimestampEntry(lwwTimestamp: old, key: key))
        }
        lwwTimestamps[key] = lwwTimestamp
        order.insert(LWWTimestampEntry(lwwTimestamp: lwwTimestamp, key: key))
        guard order.count > capacity, let least = order.first else { return [] }
        return raise(to: least.lwwTimestamp)
    }

    /// Raises the floor. O(evicted entries · log n).
    ///
    /// - Returns: the entries that are not tracked any more.
    mutating func raise(to lwwTimestamp: LWWTimestamp) -> [LWWTimestampEntry] {
        guard floor.map({ $0 < lwwTimestamp }) ?? true else { return [] }
        floor = lwwTimestamp
        let evicted = order.ascending.prefix { $0.lwwTimestamp <= lwwTimestamp }
        for entry in evicted {
            order.remove(entry)
            lwwTimestamps[entry.key] = nil
        }
        return evicted
    }

    // MARK: Stored state

    func write(to writer: inout StateWriter) {
        writer.write(floor != nil)
        if let floor { writer.write(floor) }
        var entries = writer.entries(count: lwwTimestamps.count)
        for (key, lwwTimestamp) in lwwTimestamps {
            writer.begin(key, of: &entries)
            writer.write(lwwTimestamp)
        }
        writer.end(entries)
    }

    init(_ reader: inout StateReader, capacity: Int) throws(EventError) {
        self.init(capacity: capacity)
        let floor = try reader.bool() ? try reader.lwwTimestamp() : nil
        var read: [LWWTimestampEntry] = []
        try reader.entries { (reader, key) throws(EventError) in
            read.append(LWWTimestampEntry(lwwTimestamp: try reader.lwwTimestamp(), key: key))
        }
        guard read.count <= capacity else {
            throw reader.fault("there are too many LWW timestamps")
        }
        self.floor = floor
        for entry in read {
            guard floor.map({ $0 < entry.lwwTimestamp }) ?? true else {
                throw reader.fault("an LWW timestamp is not above the floor")
            }
            lwwTimestamps[entry.key] = entry.lwwTimestamp
            order.insert(entry)
        }
    }
}
