// Indexes of assets by the keys in their records: one reference for each asset and key, no copies of the
// keys. Part of AssetsView. Spec/model/media.md, MED-4 and MED-9.

import Daybook
import HashTreeCollections

/// A key by which assets are found.
protocol AssetKey: Sendable {
    /// Returns the range of the key in a record, lengths included; nil for a record without the key.
    static func range(in record: AssetRecord) -> Range<Int>?
}

/// The asset's id.
enum ByAssetID: AssetKey {
    static func range(in record: AssetRecord) -> Range<Int>? { record.idRange }
}

/// The server's id.
enum ByRemoteID: AssetKey {
    static func range(in record: AssetRecord) -> Range<Int>? { record.remoteIdRange }
}

/// The device's id.
enum ByLocalID: AssetKey {
    static func range(in record: AssetRecord) -> Range<Int>? { record.localIdRange }
}

/// The owner, which many assets share.
enum ByOwner: AssetKey {
    static func range(in record: AssetRecord) -> Range<Int>? { record.ownerRange }
}

/// The owner and the checksum.
enum ByChecksum: AssetKey {
    static func range(in record: AssetRecord) -> Range<Int>? { record.checksumKeyRange }
}

/// A record with the hash and equality of one of its keys, or a key to look up.
enum AssetReference<Key: AssetKey>: Hashable, Sendable {
    case record(AssetRecord)
    case key([UInt8])

    /// Creates a key from identifiers.
    init(_ parts: String...) {
        var writer = StateWriter()
        for part in parts { writer.write(part) }
        self = .key(writer.bytes)
    }

    /// Creates the key of a record, without a reference to the record.
    init(keyOf record: AssetRecord) {
        self = .key(Array(record.bytes[Key.range(in: record) ?? 0..<0]))
    }

    var record: AssetRecord? {
        if case .record(let record) = self { record } else { nil }
    }

    private var location: (bytes: [UInt8], range: Range<Int>) {
        switch self {
        case .record(let record): (record.bytes, Key.range(in: record) ?? 0..<0)
        case .key(let bytes): (bytes, bytes.indices)
        }
    }

    static func == (lhs: AssetReference, rhs: AssetReference) -> Bool {
        let (a, b) = (lhs.location, rhs.location)
        return a.bytes[a.range] == b.bytes[b.range]
    }

    func hash(into hasher: inout Hasher) {
        let (bytes, range) = location
        bytes[range].withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}

/// Assets by a key that should be unique. If several assets have one key, which only imported events can
/// cause, the lookup returns the one with the greatest LWW timestamp.
struct AssetIndex<Key: AssetKey>: Sendable {
    private var winners: TreeSet<AssetReference<Key>> = []
    /// The further records of each key that several records have.
    private var hidden: TreeDictionary<AssetReference<Key>, SortedIndex<AssetRecord>> = [:]

    /// Inserts a record if it has the key. O(log n).
    mutating func insert(_ record: AssetRecord) {
        guard Key.range(in: record) != nil else { return }
        let reference = AssetReference<Key>.record(record)
        guard let other = winners.update(with: reference)?.record else { return }
        if record < other { winners.update(with: .record(other)) }
        hidden[reference, default: SortedIndex()].insert(min(record, other))
    }

    /// Removes a record of the index. O(log n).
    mutating func remove(_ record: AssetRecord) {
        guard Key.range(in: record) != nil else { return }
        let reference = AssetReference<Key>.record(record)
        guard var remaining = hidden[reference] else {
            winners.remove(reference)
            return
        }
        hidden[reference] = nil
        if self[reference] == record {
            guard let next = remaining.last else { return }
            remaining.remove(next)
            winners.update(with: .record(next))
        } else {
            remaining.remove(record)
        }
        // The dictionary's key must not refer to the removed record.
        if remaining.count > 0, let key = remaining.last { hidden[.record(key)] = remaining }
    }

    /// The asset with a key. O(1).
    subscript(reference: AssetReference<Key>) -> AssetRecord? {
        winners.firstIndex(of: reference).flatMap { winners[$0].record }
    }

    /// Returns all assets with a key, by descending LWW timestamp. O(their number).
    func all(_ reference: AssetReference<Key>) -> [AssetRecord] {
        guard let first = self[reference] else { return [] }
        return [first] + (hidden[reference].map { Array($0.descending) } ?? [])
    }
}

/// An asset in the order of the times at which assets were taken, then by id.
struct AssetTimelineEntry: Comparable, Sendable {
    let moment: Int64
    let record: AssetRecord

    init?(_ record: AssetRecord) {
        guard let moment = record.fileCreatedAt else { return nil }
        self.moment = moment.milliseconds
        self.record = record
    }

    /// Creates a bound before all assets taken at a moment.
    init(before moment: Int64) {
        self.moment = moment
        record = AssetRecord(
            removed: "", LWWTimestamp(time: Timestamp(milliseconds: 0), source: 0, sequence: 0))
    }

    static func == (lhs: AssetTimelineEntry, rhs: AssetTimelineEntry) -> Bool {
        lhs.moment == rhs.moment && lhs.record == rhs.record
    }

    static func < (lhs: AssetTimelineEntry, rhs: AssetTimelineEntry) -> Bool {
        lhs.moment == rhs.moment ? lhs.record.idPrecedes(rhs.record) : lhs.moment < rhs.moment
    }
}
