// The small collections: backup albums, duplicates, ETags, and the device's own assets on both
// platforms. One register for each key. Spec/model/media.md; Spec/model/views.md.

import Daybook

/// The entries of the device's media library and of its backup.
public struct DeviceMediaView: ListableView {
    public static let name = "devicemedia"
    public static let version = 1
    public static let eventTypes: Set<String>? = [
        BackupAlbumStored.type, BackupAlbumRemoved.type, DuplicateStored.type,
        DuplicateRemoved.type, ETagStored.type, ETagRemoved.type, DeviceAssetStored.type,
        DeviceAssetRemoved.type,
    ]

    /// A file that is already uploaded, by the device's id.
    private struct Duplicate: PackedValue {
        let id: String
        init(id: String) { self.id = id }
        func write(to writer: inout StateWriter) {}
        init(id: String, _ reader: inout StateReader) { self.id = id }
    }

    private var albums = PackedRegisters<BackupAlbum>()
    private var duplicates = PackedRegisters<Duplicate>()
    private var etags = PackedRegisters<AssetETag>()
    private var android = PackedRegisters<DeviceAsset>()
    private var ios = PackedRegisters<DeviceAsset>()
    /// The number of events with invalid data.
    public private(set) var ignored = 0

    public init() {}

    // MARK: Folding

    public mutating func fold(_ event: Event) {
        do {
            guard let change = try Change(event) else { return }
            let lwwTimestamp = event.lwwTimestamp
            switch change {
            case .album(let id, let album): albums.set(album, EntityID(id), lwwTimestamp)
            case .duplicate(let id, let isUploaded):
                duplicates.set(isUploaded ? Duplicate(id: id) : nil, EntityID(id), lwwTimestamp)
            case .etag(let id, let etag): etags.set(etag, EntityID(id), lwwTimestamp)
            case .asset(.android, let id, let asset): android.set(asset, EntityID(id), lwwTimestamp)
            case .asset(.ios, let id, let asset): ios.set(asset, EntityID(id), lwwTimestamp)
            }
        } catch { ignored += 1 }
    }

    /// The register that an event sets, with its new value.
    private enum Change {
        case album(String, BackupAlbum?)
        case duplicate(String, Bool)
        case etag(String, AssetETag?)
        case asset(DevicePlatform, String, DeviceAsset?)

        init?(_ event: Event) throws {
            switch event.type {
            case BackupAlbumStored.type:
                let album = try event.payload(as: BackupAlbumStored.self).album
                self = .album(album.id, album)
            case BackupAlbumRemoved.type:
                self = .album(try event.payload(as: BackupAlbumRemoved.self).albumId, nil)
            case DuplicateStored.type:
                self = .duplicate(try event.payload(as: DuplicateStored.self).deviceAssetId, true)
            case DuplicateRemoved.type:
                self = .duplicate(try event.payload(as: DuplicateRemoved.self).deviceAssetId, false)
            case ETagStored.type:
                let etag = try event.payload(as: ETagStored.self).etag
                self = .etag(etag.id, etag)
            case ETagRemoved.type: self = .etag(try event.payload(as: ETagRemoved.self).userId, nil)
            case DeviceAssetStored.type:
                let asset = try event.payload(as: DeviceAssetStored.self).asset
                self = .asset(asset.platform, asset.id, asset)
            case DeviceAssetRemoved.type:
                let removed = try event.payload(as: DeviceAssetRemoved.self)
                self = .asset(removed.platform, removed.assetId, nil)
            default: return nil
            }
        }
    }

    // MARK: LWW timestamps

    func lwwTimestamp(ofBackupAlbum id: String) -> LWWTimestamp? {
        albums.lwwTimestamp(of: EntityID(id))
    }
    func lwwTimestamp(ofDuplicate id: String) -> LWWTimestamp? {
        duplicates.lwwTimestamp(of: EntityID(id))
    }
    func lwwTimestamp(ofETag id: String) -> LWWTimestamp? { etags.lwwTimestamp(of: EntityID(id)) }
    func lwwTimestamp(ofDeviceAsset id: String, _ platform: DevicePlatform) -> LWWTimestamp? {
        assets(platform).lwwTimestamp(of: EntityID(id))
    }

    private func assets(_ platform: DevicePlatform) -> PackedRegisters<DeviceAsset> {
        switch platform {
        case .android: android
        case .ios: ios
        }
    }

    // MARK: Queries

    /// Returns a device album; nil if there is none with this id. O(1).
    public func backupAlbum(_ id: String) -> BackupAlbum? { albums[EntityID(id)] }

    /// The device albums, by id. O(n log n).
    public var backupAlbums: [BackupAlbum] { albums.all }

    /// True if a file of the device is already uploaded. O(1).
    public func isDuplicate(_ deviceAssetId: String) -> Bool {
        duplicates.contains(EntityID(deviceAssetId))
    }

    /// The ids of the device's files that are already uploaded, sorted. O(n log n).
    public var duplicateIDs: [String] { duplicates.all.map(\.id) }

    /// Returns a user's ETag; nil before the first synchronisation. O(1).
    public func etag(of userId: String) -> AssetETag? { etags[EntityID(userId)] }

    /// All ETags, by user. O(n log n).
    public var allETags: [AssetETag] { etags.all }

    /// Returns a file of the device; nil if there is none with this id. O(1).
    public func deviceAsset(_ id: String, on platform: DevicePlatform) -> DeviceAsset? {
        assets(platform)[EntityID(id)]
    }

    /// Returns the files of the device, by id. O(n log n).
    public func deviceAssets(on platform: DevicePlatform) -> [DeviceAsset] {
        assets(platform).all
    }

    public static let columns = [
        "kind", "id", "name", "selection", "lastBackup", "assetCount", "time", "platform", "hash",
        "modifiedTime",
    ]

    public func rows() -> ViewRows {
        var rows = backupAlbums.map { album in
            var row = ViewRow()
            row.appendField("kind", "backupAlbum")
            row.appendField("id", album.id)
            row.appendField("name", album.name)
            row.appendField("selection", album.selection.rawValue)
            row.appendField("lastBackup", album.lastBackup?.text)
            return row
        }
        rows += duplicateIDs.map { id in
            var row = ViewRow()
            row.appendField("kind", "duplicate")
            row.appendField("id", id)
            return row
        }
        rows += allETags.map { etag in
            var row = ViewRow()
            row.appendField("kind", "etag")
            row.appendField("id", etag.id)
            row.appendField("assetCount", etag.assetCount)
            row.appendField("time", etag.time.text)
            return row
        }
        rows += (android.all + ios.all).map { asset in
            var row = ViewRow()
            row.appendField("kind", "deviceAsset")
            row.appendField("id", asset.id)
            row.appendField("platform", asset.platform.rawValue)
            row.appendField("hash", asset.hash)
            row.appendField("modifiedTime", asset.modifiedTime?.text)
            return row
        }
        return ViewRows(rows)
    }
}

extension DeviceMediaView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: ignored)
        albums.encode(to: &writer)
        duplicates.encode(to: &writer)
        etags.encode(to: &writer)
        android.encode(to: &writer)
        ios.encode(to: &writer)
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        ignored = try reader.tally()
        albums = try PackedRegisters(from: &reader)
        duplicates = try PackedRegisters(from: &reader)
        etags = try PackedRegisters(from: &reader)
        android = try PackedRegisters(from: &reader)
        ios = try PackedRegisters(from: &reader)
        for platform in DevicePlatform.allCases
        where assets(platform).all.contains(where: { $0.platform != platform }) {
            throw reader.fault("a device asset is among those of another platform")
        }
        try reader.finish()
    }
}

extension DeviceMediaView: CompactableView {
    /// An event is needed while it is the winner of its register.
    public func retention(of event: Event) -> Retention {
        do {
            switch try Change(event) {
            case .album(let id, _): return .of(event, heldBy: [lwwTimestamp(ofBackupAlbum: id)])
            case .duplicate(let id, _): return .of(event, heldBy: [lwwTimestamp(ofDuplicate: id)])
            case .etag(let id, _): return .of(event, heldBy: [lwwTimestamp(ofETag: id)])
            case .asset(let platform, let id, _):
                return .of(event, heldBy: [lwwTimestamp(ofDeviceAsset: id, platform)])
            case nil: return .unconcerned
            }
        } catch { return .needed(.notUnderstood) }
    }
}

extension BackupAlbum: PackedValue {
    func write(to writer: inout StateWriter) {
        writer.write(name)
        writer.write(byte: selection.code)
        writer.write(packed: lastBackup)
    }

    init(id: String, _ reader: inout StateReader) throws(EventError) {
        self.id = id
        name = try reader.string()
        let code = try reader.byte()
        guard let selection = BackupSelection.allCases.first(where: { $0.code == code }) else {
            throw reader.fault("a backup album has an unknown selection")
        }
        self.selection = selection
        lastBackup = try reader.optionalPackedTime()
    }
}

extension BackupSelection {
    fileprivate var code: UInt8 {
        switch self {
        case .none: 0
        case .include: 1
        case .exclude: 2
        }
    }
}

extension AssetETag: PackedValue {
    func write(to writer: inout StateWriter) {
        writer.write(count: assetCount)
        writer.write(packed: time)
    }

    init(id: String, _ reader: inout StateReader) throws(EventError) {
        self.id = id
        assetCount = try reader.nonNegative()
        time = try reader.packedTime()
    }
}

extension DeviceAsset: PackedValue {
    func write(to writer: inout StateWriter) {
        writer.write(platform == .ios)
        writer.write(hash)
        writer.write(packed: modifiedTime)
    }

    init(id: String, _ reader: inout StateReader) throws(EventError) {
        self.id = id
        platform = try reader.bool() ? .ios : .android
        hash = try reader.string()
        modifiedTime = try reader.optionalPackedTime()
    }
}
