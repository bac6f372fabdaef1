// The assets of a library: one register for each, with indexes by the server's id, by the device's id, by
// owner and checksum, by owner, and by the time at which they were taken. Spec/model/media.md;
// Spec/model/views.md.

import Daybook
import Foundation
import HashTreeCollections

/// All assets of the library.
///
/// Queries read memory only. An `Asset` is decoded from its record on each query. Members of its event that
/// the type does not name stay in the log (`AssetCommands.properties(of:)`).
public struct AssetsView: DeclaredRows {
    public static let name = "assets"
    public static let version = 1
    public static let events: ViewEvents<AssetsView> = [
        .on(AssetStored.self) { stored, view, change in
            view.set(stored.asset.id, &change) { AssetRecord(stored, $0) }
        },
        .on(AssetRemoved.self) { removed, view, change in
            view.set(removed.assetId, &change) {
                AssetRecord(removed: removed.assetId, $0.lwwTimestamp)
            }
        },
    ]
    public static let fields: [ViewField<Asset>] = [
        .init("assetId") { $0.id }, .init("remoteId") { $0.remoteId },
        .init("localId") { $0.localId }, .init("ownerId") { $0.ownerId },
        .init("checksum") { $0.checksum }, .init("type") { $0.type },
        .init("fileName") { $0.fileName }, .init("fileCreatedAt") { $0.fileCreatedAt },
        .init("fileModifiedAt") { $0.fileModifiedAt }, .init("updatedAt") { $0.updatedAt },
        .init("durationSeconds") { $0.durationSeconds }, .init("width") { $0.width },
        .init("height") { $0.height }, .init("livePhotoVideoId") { $0.livePhotoVideoId },
        .init("isFavorite") { $0.isFavorite }, .init("isArchived") { $0.isArchived },
        .init("isTrashed") { $0.isTrashed },
    ]

    /// The register of each asset.
    private var table = AssetTable()
    /// Indexes, computed from the entries.
    private var byRemoteID = AssetIndex<ByRemoteID>()
    private var byLocalID = AssetIndex<ByLocalID>()
    private var byChecksum = AssetIndex<ByChecksum>()
    private var timeline = SortedIndex<AssetTimelineEntry>()
    private var timelinesByOwner:
        TreeDictionary<AssetReference<ByOwner>, SortedIndex<AssetTimelineEntry>> = [:]
    public var ignored = 0

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&table)
    }

    // MARK: Folding

    private mutating func set(
        _ id: String, _ change: inout ViewChange, _ record: (ViewChange) -> AssetRecord
    ) {
        change.list(key: EntityID(id))
        guard change.isFolding else { return change.list(lwwTimestamp(of: id)) }
        set(record(change))
    }

    private mutating func set(_ record: AssetRecord) {
        if let old = table.entries.update(with: .record(record))?.record {
            guard old.lwwTimestamp < record.lwwTimestamp else {
                table.entries.update(with: .record(old))
                return
            }
            removeFromIndexes(old)
        }
        byRemoteID.insert(record)
        byLocalID.insert(record)
        byChecksum.insert(record)
        guard let entry = AssetTimelineEntry(record) else { return }
        timeline.insert(entry)
        timelinesByOwner[AssetReference(keyOf: record), default: SortedIndex()].insert(entry)
    }

    private mutating func removeFromIndexes(_ record: AssetRecord) {
        byRemoteID.remove(record)
        byLocalID.remove(record)
        byChecksum.remove(record)
        guard let entry = AssetTimelineEntry(record) else { return }
        let owner = AssetReference<ByOwner>.record(record)
        timeline.remove(entry)
        timelinesByOwner[owner]?.remove(entry)
        if timelinesByOwner[owner]?.count == 0 { timelinesByOwner[owner] = nil }
    }

    // MARK: Records

    /// Returns the register of an asset. O(1).
    func entry(_ id: String) -> AssetRecord? {
        table.entries.firstIndex(of: AssetReference(id)).flatMap { table.entries[$0].record }
    }

    /// True if an asset is stored with exactly the given data, and neither has properties: those of a stored
    /// asset are in the log only. O(bytes).
    func has(_ stored: AssetStored) throws -> Bool {
        guard let entry = entry(stored.asset.id), !entry.hasProperties, let asset = entry.asset
        else { return false }
        return try AssetStored(asset).json() == stored.json()
    }

    /// The LWW timestamp that the next event of an asset must exceed to take effect. O(1).
    func lwwTimestamp(of id: String) -> LWWTimestamp? { entry(id)?.lwwTimestamp }

    /// Returns the assets with a server's id, by descending LWW timestamp. O(their number).
    func all(remoteId: String) -> [AssetRecord] { byRemoteID.all(AssetReference(remoteId)) }

    /// Returns the assets with a device's id, by descending LWW timestamp. O(their number).
    func all(localId: String) -> [AssetRecord] { byLocalID.all(AssetReference(localId)) }

    /// Returns the assets of an owner with a checksum, by descending LWW timestamp. O(their number).
    func all(ownerId: String, checksum: String) -> [AssetRecord] {
        byChecksum.all(AssetReference(ownerId, checksum))
    }

    // MARK: Queries

    /// The number of assets. O(1).
    public var count: Int { timeline.count }

    /// The asset with this id; nil if there is none. O(1).
    public subscript(id: String) -> Asset? { entry(id)?.asset }

    /// Returns the asset with the server's id. O(1).
    ///
    /// If imported events gave several assets one id, it returns the one stored last. The same holds for the
    /// other keys.
    public func asset(remoteId: String) -> Asset? { byRemoteID[AssetReference(remoteId)]?.asset }

    /// Returns the asset with the device's id. O(1).
    public func asset(localId: String) -> Asset? { byLocalID[AssetReference(localId)]?.asset }

    /// Returns the asset of an owner with a checksum. O(1).
    public func asset(ownerId: String, checksum: String) -> Asset? {
        byChecksum[AssetReference(ownerId, checksum)]?.asset
    }

    /// Returns the assets of an owner, by the time at which they were taken, then by id. O(1) each.
    public func assets(ownedBy ownerId: String) -> some Sequence<Asset> {
        (timelinesByOwner[AssetReference(ownerId)] ?? SortedIndex()).ascending.lazy.compactMap(
            \.record.asset)
    }

    /// Returns the number of an owner's assets that the server has. O(assets of the owner).
    func count(ofServerAssetsOf ownerId: String) -> Int {
        assets(ownedBy: ownerId).count { $0.remoteId != nil }
    }

    /// Returns the assets taken from `start` through `end`, both included, by time, then by id. O(log n), and
    /// O(1) each.
    public func assets(takenFrom start: Timestamp, through end: Timestamp) -> some Sequence<Asset> {
        records(from: start.milliseconds, upTo: end.milliseconds + 1).lazy.compactMap(\.asset)
    }

    /// All assets, by the time at which they were taken, then by id. O(1) each.
    public var all: some Sequence<Asset> { timeline.ascending.lazy.compactMap(\.record.asset) }

    /// Returns the records of the assets taken at or after `start` and before `end`.
    func records(from start: Int64, upTo end: Int64) -> some Sequence<AssetRecord> {
        timeline.elements(
            from: AssetTimelineEntry(before: start),
            upTo: AssetTimelineEntry(before: max(start, end))
        )
        .lazy.map(\.record)
    }

    public var rowIDs: [EntityID] {
        table.entries.compactMap(\.record).filter(\.isStored).map { EntityID($0.id) }
    }

    public func rowValue(_ id: EntityID) -> Asset? { self[id.string] }

    public mutating func computeIndexes() {
        var timelineEntries: [AssetTimelineEntry] = []
        var owned: [AssetReference<ByOwner>: [AssetTimelineEntry]] = [:]
        for case .record(let record) in table.entries {
            byRemoteID.insert(record)
            byLocalID.insert(record)
            byChecksum.insert(record)
            guard let entry = AssetTimelineEntry(record) else { continue }
            timelineEntries.append(entry)
        }
        timelineEntries.sort()
        timeline = SortedIndex(sorted: timelineEntries)
        for entry in timelineEntries { owned[.record(entry.record), default: []].append(entry) }
        for (owner, timelineEntries) in owned {
            guard let record = owner.record else { continue }
            timelinesByOwner[AssetReference(keyOf: record)] = SortedIndex(sorted: timelineEntries)
        }
    }
}

extension AssetType: RowValue {}

/// The register of each asset.
private struct AssetTable: StateValue {
    var entries: TreeSet<AssetReference<ByAssetID>> = []

    init() {}

    func write(to state: inout StateWriter) {
        var list = state.entries(count: entries.count)
        for case .record(let record) in entries { state.write(entry: record.bytes, to: &list) }
        state.end(list)
    }

    init(from state: inout StateReader) throws(EventError) {
        var last: AssetRecord?
        for _ in 0..<(try state.count()) {
            let record = try AssetRecord(from: &state)
            if let last, !last.idPrecedes(record) {
                throw state.fault("the assets are not in order")
            }
            entries.insert(.record(record))
            last = record
        }
    }
}
