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
public struct AssetsView: KeyedView {
    public static let name = "assets"
    public static let version = 1
    public static let eventTypes: Set<String>? = [AssetStored.type, AssetRemoved.type]

    /// The register of each asset.
    private var entries: TreeSet<AssetReference<ByAssetID>> = []
    /// Indexes, computed from the entries.
    private var byRemoteID = AssetIndex<ByRemoteID>()
    private var byLocalID = AssetIndex<ByLocalID>()
    private var byChecksum = AssetIndex<ByChecksum>()
    private var timeline = SortedIndex<AssetTimelineEntry>()
    private var timelinesByOwner:
        TreeDictionary<AssetReference<ByOwner>, SortedIndex<AssetTimelineEntry>> = [:]
    /// The number of events with invalid data.
    public private(set) var ignored = 0

    public init() {}

    // MARK: Folding

    public mutating func fold(_ event: Event) {
        do {
            switch event.type {
            case AssetStored.type: set(AssetRecord(try event.payload(as: AssetStored.self), event))
            case AssetRemoved.type:
                set(
                    AssetRecord(
                        removed: try event.payload(as: AssetRemoved.self).assetId,
                        event.lwwTimestamp))
            default: break
            }
        } catch { ignored += 1 }
    }

    private mutating func set(_ record: AssetRecord) {
        if let old = entries.update(with: .record(record))?.record {
            guard old.lwwTimestamp < record.lwwTimestamp else {
                entries.update(with: .record(old))
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
        entries.firstIndex(of: AssetReference(id)).flatMap { entries[$0].record }
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

    public static let keyNames = ["assetId"]
    public static let columns = [
        "assetId", "remoteId", "localId", "ownerId", "checksum", "type", "fileName",
        "fileCreatedAt", "fileModifiedAt", "updatedAt", "durationSeconds", "width", "height",
        "livePhotoVideoId", "isFavorite", "isArchived", "isTrashed",
    ]

    public func rows() -> ViewRows {
        let assets = entries.compactMap { $0.record?.asset }
        return ViewRows(assets.sorted(byID: { EntityID($0.id) })) { $0.row }
    }

    public func rowKeys(changedBy event: Event) -> [[String]]? {
        let id: String? =
            switch event.type {
            case AssetStored.type: try? event.payload(as: AssetStored.self).asset.id
            case AssetRemoved.type: try? event.payload(as: AssetRemoved.self).assetId
            default: nil
            }
        return id.map { [[$0]] } ?? []
    }

    public func row(key: [String]) -> ViewRow? { self[key[0]]?.row }
}

extension Asset {
    fileprivate var row: ViewRow {
        func number<Value>(_ value: Value?) -> [UInt8]? { value.map { Array("\($0)".utf8) } }
        var row = ViewRow()
        row.appendField("assetId", id)
        row.appendField("remoteId", remoteId)
        row.appendField("localId", localId)
        row.appendField("ownerId", ownerId)
        row.appendField("checksum", checksum)
        row.appendField("type", type.rawValue)
        row.appendField("fileName", fileName)
        row.appendField("fileCreatedAt", fileCreatedAt.text)
        row.appendField("fileModifiedAt", fileModifiedAt.text)
        row.appendField("updatedAt", updatedAt.text)
        row.appendField("durationSeconds", raw: number(durationSeconds))
        row.appendField("width", raw: number(width))
        row.appendField("height", raw: number(height))
        row.appendField("livePhotoVideoId", livePhotoVideoId)
        row.appendField("isFavorite", isFavorite)
        row.appendField("isArchived", isArchived)
        row.appendField("isTrashed", isTrashed)
        return row
    }
}

extension AssetsView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: ignored)
        var list = writer.entries(count: entries.count)
        for case .record(let record) in entries { writer.write(entry: record.bytes, to: &list) }
        writer.end(list)
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        ignored = try reader.tally()
        var records: [AssetRecord] = []
        for _ in 0..<(try reader.count()) {
            let record = try AssetRecord(from: &reader)
            if let last = records.last, !last.idPrecedes(record) {
                throw reader.fault("the assets are not in order")
            }
            records.append(record)
        }
        try reader.finish()
        var timelineEntries: [AssetTimelineEntry] = []
        var owned: [AssetReference<ByOwner>: [AssetTimelineEntry]] = [:]
        for record in records {
            entries.insert(.record(record))
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

extension AssetsView: CompactableView {
    /// An event is needed while it is the winner of its asset's register.
    public func retention(of event: Event) -> Retention {
        let id: String?
        switch event.type {
        case AssetStored.type: id = (try? event.payload(as: AssetStored.self))?.asset.id
        case AssetRemoved.type: id = (try? event.payload(as: AssetRemoved.self))?.assetId
        default: return .unconcerned
        }
        guard let id else { return .needed(.notUnderstood) }
        return .of(event, heldBy: [lwwTimestamp(of: id)])
    }
}
