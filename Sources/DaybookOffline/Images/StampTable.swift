// The greatest stamp of each of many keys, within bounds: what does not fit is summed up by one
// stamp. What ImagesView remembers of removals and accesses. Spec/model/images.md, IMG-4.

import Daybook
import HashTreeCollections

/// Where a key stands among others, by a stamp.
struct StampPlace: Comparable, Sendable {
    var stamp: Stamp
    var key: EntityID

    static func < (lhs: StampPlace, rhs: StampPlace) -> Bool {
        (lhs.stamp, lhs.key) < (rhs.stamp, rhs.key)
    }
}

/// The greatest stamps of keys.
///
/// It keeps those of the `capacity` keys whose stamps are the greatest. The `floor` is the greatest
/// stamp of any other key, or the one to which it was raised; nothing up to it is told apart. Which
/// stamps are kept, and the floor, depend on what was set and not on the order.
struct StampTable: Sendable {
    /// How many keys are told apart.
    let capacity: Int
    /// All are greater than the floor.
    private(set) var stamps: TreeDictionary<EntityID, Stamp> = [:]
    private(set) var floor: Stamp?
    /// Follows from the stamps.
    private var order = SortedIndex<StampPlace>()

    init(capacity: Int) { self.capacity = capacity }

    /// The greatest stamp that was set for a key, or that may have been. O(1).
    func bound(of key: EntityID) -> Stamp? { stamps[key] ?? floor }

    /// Whether an event is one by which the table has to be kept: without it, it would be another.
    func isHeld(by stamp: Stamp, for key: EntityID) -> Bool {
        stamps[key] == stamp || floor == stamp
    }

    /// Whether a stamp is among the older ones of a table that is more than half full: it may soon be
    /// below the floor. O(1).
    ///
    /// - Returns: one from the middle of the table, which it must pass; nil if it is not so old.
    func fading(_ stamp: Stamp) -> Stamp? {
        guard order.count > capacity / 2, let middle = order.middle?.stamp else { return nil }
        return stamp <= middle ? middle : nil
    }

    /// Sets the stamp of a key if it is greater than the one that it has. O(log n).
    ///
    /// - Returns: what is not told apart any more; the floor has risen if there is anything.
    mutating func set(_ stamp: Stamp, of key: EntityID) -> [StampPlace] {
        guard bound(of: key).map({ $0 < stamp }) ?? true else { return [] }
        if let old = stamps[key] { order.remove(StampPlace(stamp: old, key: key)) }
        stamps[key] = stamp
        order.insert(StampPlace(stamp: stamp, key: key))
        guard order.count > capacity, let least = order.first else { return [] }
        return raise(to: least.stamp)
    }

    /// Raises the floor. O(what goes · log n).
    ///
    /// - Returns: what is not told apart any more.
    mutating func raise(to stamp: Stamp) -> [StampPlace] {
        guard floor.map({ $0 < stamp }) ?? true else { return [] }
        floor = stamp
        let gone = order.ascending.prefix { $0.stamp <= stamp }
        for place in gone {
            order.remove(place)
            stamps[place.key] = nil
        }
        return gone
    }

    // MARK: Stored state

    func write(to writer: inout StateWriter) {
        writer.add(floor != nil)
        if let floor { writer.add(floor) }
        var entries = writer.entries(count: stamps.count)
        for (key, stamp) in stamps {
            writer.begin(key, of: &entries)
            writer.add(stamp)
        }
        writer.end(entries)
    }

    init(_ reader: inout StateReader, capacity: Int) throws(EventError) {
        self.init(capacity: capacity)
        let floor = try reader.bool() ? try reader.stamp() : nil
        var places: [StampPlace] = []
        try reader.entries { (reader, key) throws(EventError) in
            places.append(StampPlace(stamp: try reader.stamp(), key: key))
        }
        guard places.count <= capacity else { throw reader.fault("there are too many stamps") }
        self.floor = floor
        for place in places {
            guard floor.map({ $0 < place.stamp }) ?? true else {
                throw reader.fault("a stamp is not above the floor")
            }
            stamps[place.key] = place.stamp
            order.insert(place)
        }
    }
}
