// The assets of a library: one register for each, with what finds them by the server's id, by the
// device's, by owner and checksum, by owner, and by when they were taken. Spec/model/media.md;
// Spec/model/views.md.

import Daybook
import Foundation
import HashTreeCollections

/// All assets that are known on this device.
///
/// Answers come from memory. An asset is made when it is asked for, from one run of bytes; what its
/// event has beside the named members stays in the log (`AssetCommands.properties(of:)`).
public struct AssetsView: ListableView {
    public static let name = "assets"
    public static let version = 1
    public static let eventTypes: Set<String>? = [AssetStored.type, AssetRemoved.type]

    /// The last word on each asset.
    private var entries: TreeSet<AssetReference<ByAssetID>> = []
    /// Follow from the entries.
    private var remote = AssetIndex<ByRemoteID>()
    private var local = AssetIndex<ByLocalID>()
    private var checksums = AssetIndex<ByChecksum>()
    private var taken = SortedIndex<AssetPlace>()
    private var owners: TreeDictionary<AssetReference<ByOwner>, SortedIndex<AssetPlace>> = [:]
    /// Events whose data no rule can make sense of.
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
                        removed: try event.payload(as: AssetRemoved.self).assetId, event.stamp))
            default: break
            }
        } catch { ignored += 1 }
    }

    private mutating func set(_ record: AssetRecord) {
        if let old = entries.update(with: .record(record))?.record {
            guard old.stamp < record.stamp else {
                entries.update(with: .record(old))
                return
            }
            unlist(old)
        }
        remote.insert(record)
        local.insert(record)
        checksums.insert(record)
        guard let place = AssetPlace(record) else { return }
        taken.insert(place)
        owners[AssetReference(keyOf: record), default: SortedIndex()].insert(place)
    }

    private mutating func unlist(_ record: AssetRecord) {
        remote.remove(record)
        local.remove(record)
        checksums.remove(record)
        guard let place = AssetPlace(record) else { return }
        let owner = AssetReference<ByOwner>.record(record)
        taken.remove(place)
        owners[owner]?.remove(place)
        if owners[owner]?.count == 0 { owners[owner] = nil }
    }

    // MARK: What counts

    /// The last word on an asset. O(1).
    func entry(_ id: String) -> AssetRecord? {
        entries.firstIndex(of: AssetReference(id)).flatMap { entries[$0].record }
    }

    /// True if an asset is there byte for byte as given, and neither has properties: those of a stored
    /// one are in the log only. O(bytes).
    func has(_ stored: AssetStored) throws -> Bool {
        guard let entry = entry(stored.asset.id), !entry.hasProperties, let asset = entry.asset
        else { return false }
        return try AssetStored(asset).json() == stored.json()
    }

    /// What the next event of an asset must pass to count. O(1).
    func stamp(of id: String) -> Stamp? { entry(id)?.stamp }

    /// The assets with a server's id, the one that is found first. O(their number).
    func all(remoteId: String) -> [AssetRecord] { remote.all(AssetReference(remoteId)) }

    /// The assets with a device's id, the one that is found first. O(their number).
    func all(localId: String) -> [AssetRecord] { local.all(AssetReference(localId)) }

    /// The assets of an owner with a checksum, the one that is found first. O(their number).
    func all(ownerId: String, checksum: String) -> [AssetRecord] {
        checksums.all(AssetReference(ownerId, checksum))
    }

    // MARK: Questions

    /// How many assets there are. O(1).
    public var count: Int { taken.count }

    /// An asset; nil if there is none with this id. O(1).
    public subscript(id: String) -> Asset? { entry(id)?.asset }

    /// The asset with the server's id. O(1).
    ///
    /// Where imported events gave several assets one id, the one that was stored last; so with the
    /// other keys.
    public func asset(remoteId: String) -> Asset? { remote[AssetReference(remoteId)]?.asset }

    /// The asset with the device's id. O(1).
    public func asset(localId: String) -> Asset? { local[AssetReference(localId)]?.asset }

    /// The asset of an owner with a checksum. O(1).
    public func asset(ownerId: String, checksum: String) -> Asset? {
        checksums[AssetReference(ownerId, checksum)]?.asset
    }

    /// The assets of an owner in the order in which they were taken, then by id. O(1) each.
    public func assets(ownedBy ownerId: String) -> some Sequence<Asset> {
        (owners[AssetReference(ownerId)] ?? SortedIndex()).ascending.lazy.compactMap(\.record.asset)
    }

    /// How many assets of an owner the server has. O(assets of the owner).
    func count(ofServerAssetsOf ownerId: String) -> Int {
        assets(ownedBy: ownerId).count { $0.remoteId != nil }
    }

    /// The assets that were taken from one moment through another, both included, in that order,
    /// then by id. O(log n), and O(1) each.
    public func assets(takenFrom start: Timestamp, through end: Timestamp) -> some Sequence<Asset> {
        records(from: start.milliseconds, upTo: end.milliseconds + 1).lazy.compactMap(\.asset)
    }

    /// All assets in the order in which they were taken, then by id. O(1) each.
    public var all: some Sequence<Asset> { taken.ascending.lazy.compactMap(\.record.asset) }

    /// What was taken from a moment on and before another.
    func records(from start: Int64, upTo end: Int64) -> some Sequence<AssetRecord> {
        taken.elements(from: AssetPlace(before: start), upTo: AssetPlace(before: max(start, end)))
            .lazy.map(\.record)
    }

    public func rows() -> [ViewRow] {
        entries.compactMap { $0.record?.asset }.sorted { EntityID($0.id) < EntityID($1.id) }
            .map(\.row)
    }
}

extension Asset {
    fileprivate var row: ViewRow {
        func number<Value>(_ value: Value?) -> [UInt8]? { value.map { Array("\($0)".utf8) } }
        var row = ViewRow()
        row.add("assetId", id)
        row.add("remoteId", remoteId)
        row.add("localId", localId)
        row.add("ownerId", ownerId)
        row.add("checksum", checksum)
        row.add("type", type.rawValue)
        row.add("fileName", fileName)
        row.add("fileCreatedAt", fileCreatedAt.text)
        row.add("fileModifiedAt", fileModifiedAt.text)
        row.add("updatedAt", updatedAt.text)
        row.add("durationSeconds", raw: number(durationSeconds))
        row.add("width", raw: number(width))
        row.add("height", raw: number(height))
        row.add("livePhotoVideoId", livePhotoVideoId)
        row.add("isFavorite", isFavorite)
        row.add("isArchived", isArchived)
        row.add("isTrashed", isTrashed)
        return row
    }
}

extension AssetsView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.add(count: ignored)
        var list = writer.entries(count: entries.count)
        for case .record(let record) in entries { writer.add(entry: record.bytes, to: &list) }
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
        var places: [AssetPlace] = []
        var owned: [AssetReference<ByOwner>: [AssetPlace]] = [:]
        for record in records {
            entries.insert(.record(record))
            remote.insert(record)
            local.insert(record)
            checksums.insert(record)
            guard let place = AssetPlace(record) else { continue }
            places.append(place)
        }
        places.sort()
        taken = SortedIndex(sorted: places)
        for place in places { owned[.record(place.record), default: []].append(place) }
        for (owner, places) in owned {
            guard let record = owner.record else { continue }
            owners[AssetReference(keyOf: record)] = SortedIndex(sorted: places)
        }
    }
}

extension AssetsView: CompactableView {
    /// An event is needed while it holds the register of its asset.
    public func retention(of event: Event) -> Retention {
        let id: String?
        switch event.type {
        case AssetStored.type: id = (try? event.payload(as: AssetStored.self))?.asset.id
        case AssetRemoved.type: id = (try? event.payload(as: AssetRemoved.self))?.assetId
        default: return .unconcerned
        }
        guard let id else { return .needed(.notUnderstood) }
        return .of(event, heldBy: [stamp(of: id)])
    }
}
