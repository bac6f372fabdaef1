// Finds assets by what stands in their records: one reference for each asset and key, no copies of
// the keys. Part of AssetsView. Spec/model/media.md, MED-4 and MED-9.

import Daybook
import HashTreeCollections

/// What an asset is found by.
protocol AssetKey: Sendable {
    /// Where the key stands in a record, lengths included; nil for a record without it.
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

/// The owner. Many assets have one.
enum ByOwner: AssetKey {
    static func range(in record: AssetRecord) -> Range<Int>? { record.ownerRange }
}

/// The owner and the checksum.
enum ByChecksum: AssetKey {
    static func range(in record: AssetRecord) -> Range<Int>? { record.checksumRange }
}

/// A record that stands for one of its keys, or a key that is looked for.
enum AssetReference<Key: AssetKey>: Hashable, Sendable {
    case record(AssetRecord)
    case key([UInt8])

    /// A key of identifiers.
    init(_ parts: String...) {
        var writer = StateWriter()
        for part in parts { writer.add(part) }
        self = .key(writer.bytes)
    }

    /// The key of a record, without the record.
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

/// Assets by a key that should be unique. Where several assets have one key, which only imported
/// events can bring about, the one with the greatest stamp is found.
struct AssetIndex<Key: AssetKey>: Sendable {
    private var found: TreeSet<AssetReference<Key>> = []
    /// The others of each key that several have.
    private var hidden: TreeDictionary<AssetReference<Key>, SortedIndex<AssetRecord>> = [:]

    /// Adds an asset if it has the key. O(log n).
    mutating func insert(_ record: AssetRecord) {
        guard Key.range(in: record) != nil else { return }
        let reference = AssetReference<Key>.record(record)
        guard let other = found.update(with: reference)?.record else { return }
        if record < other { found.update(with: .record(other)) }
        hidden[reference, default: SortedIndex()].insert(min(record, other))
    }

    /// Takes out an asset that is there. O(log n).
    mutating func remove(_ record: AssetRecord) {
        guard Key.range(in: record) != nil else { return }
        let reference = AssetReference<Key>.record(record)
        guard var others = hidden[reference] else {
            found.remove(reference)
            return
        }
        hidden[reference] = nil
        if self[reference] == record {
            guard let next = others.last else { return }
            others.remove(next)
            found.update(with: .record(next))
        } else {
            others.remove(record)
        }
        // The key must not be that of a record which has gone.
        if others.count > 0, let key = others.last { hidden[.record(key)] = others }
    }

    /// The asset with a key. O(1).
    subscript(reference: AssetReference<Key>) -> AssetRecord? {
        found.firstIndex(of: reference).flatMap { found[$0].record }
    }

    /// All assets with a key, the one that is found first. O(their number).
    func all(_ reference: AssetReference<Key>) -> [AssetRecord] {
        guard let first = self[reference] else { return [] }
        return [first] + (hidden[reference].map { Array($0.descending) } ?? [])
    }
}

/// Where an asset stands in the order in which they were taken.
struct AssetPlace: Comparable, Sendable {
    let moment: Int64
    let record: AssetRecord

    init?(_ record: AssetRecord) {
        guard let moment = record.fileCreatedAt else { return nil }
        self.moment = moment.milliseconds
        self.record = record
    }

    /// Before all that were taken at a moment.
    init(before moment: Int64) {
        self.moment = moment
        record = AssetRecord(
            removed: "", Stamp(time: Timestamp(milliseconds: 0), source: 0, sequence: 0))
    }

    static func == (lhs: AssetPlace, rhs: AssetPlace) -> Bool {
        lhs.moment == rhs.moment && lhs.record == rhs.record
    }

    static func < (lhs: AssetPlace, rhs: AssetPlace) -> Bool {
        lhs.moment == rhs.moment ? lhs.record.idPrecedes(rhs.record) : lhs.moment < rhs.moment
    }
}
