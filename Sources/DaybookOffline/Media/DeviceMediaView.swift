// The small collections: backup albums, duplicates, ETags, and the device's own assets on both
// platforms. One register for each key. Spec/model/media.md; Spec/model/views.md.

import Daybook

/// What the device's media library says, and what the backup has made of it.
public struct DeviceMediaView: ListableView {
    public static let name = "devicemedia"
    public static let version = 1
    public static let eventTypes: Set<String>? = [
        BackupAlbumStored.type, BackupAlbumRemoved.type, DuplicateStored.type,
        DuplicateRemoved.type, ETagStored.type, ETagRemoved.type, DeviceAssetStored.type,
        DeviceAssetRemoved.type,
    ]

    /// The device's id of a file that is uploaded already.
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
    /// Events whose data no rule can make sense of.
    public private(set) var ignored = 0

    public init() {}

    // MARK: Folding

    public mutating func fold(_ event: Event) {
        do {
            guard let key = try Key(event) else { return }
            let stamp = event.stamp
            switch key {
            case .album(let id, let album): albums.set(album, EntityID(id), stamp)
            case .duplicate(let id, let isThere):
                duplicates.set(isThere ? Duplicate(id: id) : nil, EntityID(id), stamp)
            case .etag(let id, let etag): etags.set(etag, EntityID(id), stamp)
            case .asset(.android, let id, let asset): android.set(asset, EntityID(id), stamp)
            case .asset(.ios, let id, let asset): ios.set(asset, EntityID(id), stamp)
            }
        } catch { ignored += 1 }
    }

    /// Which register an event sets, and to what.
    private enum Key {
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

    // MARK: What counts

    func stamp(ofBackupAlbum id: String) -> Stamp? { albums.stamp(of: EntityID(id)) }
    func stamp(ofDuplicate id: String) -> Stamp? { duplicates.stamp(of: EntityID(id)) }
    func stamp(ofETag id: String) -> Stamp? { etags.stamp(of: EntityID(id)) }
    func stamp(ofDeviceAsset id: String, _ platform: DevicePlatform) -> Stamp? {
        assets(platform).stamp(of: EntityID(id))
    }

    private func assets(_ platform: DevicePlatform) -> PackedRegisters<DeviceAsset> {
        switch platform {
        case .android: android
        case .ios: ios
        }
    }

    // MARK: Questions

    /// A device album; nil if nothing is known of it. O(1).
    public func backupAlbum(_ id: String) -> BackupAlbum? { albums[EntityID(id)] }

    /// The device albums, by id. O(n log n).
    public var backupAlbums: [BackupAlbum] { albums.all }

    /// Whether a file of the device is uploaded already. O(1).
    public func isDuplicate(_ deviceAssetId: String) -> Bool {
        duplicates.has(EntityID(deviceAssetId))
    }

    /// The files of the device that are uploaded already, sorted. O(n log n).
    public var duplicateIDs: [String] { duplicates.all.map(\.id) }

    /// A user's ETag; nil before the first synchronisation. O(1).
    public func etag(of userId: String) -> AssetETag? { etags[EntityID(userId)] }

    /// All ETags, by user. O(n log n).
    public var allETags: [AssetETag] { etags.all }

    /// A file of the device; nil if nothing is known of it. O(1).
    public func deviceAsset(_ id: String, on platform: DevicePlatform) -> DeviceAsset? {
        assets(platform)[EntityID(id)]
    }

    /// The files of the device, by id. O(n log n).
    public func deviceAssets(on platform: DevicePlatform) -> [DeviceAsset] {
        assets(platform).all
    }

    public func rows() -> [ViewRow] {
        var rows = backupAlbums.map { album in
            var row = ViewRow()
            row.add("kind", "backupAlbum")
            row.add("id", album.id)
            row.add("name", album.name)
            row.add("selection", album.selection.rawValue)
            row.add("lastBackup", album.lastBackup?.text)
            return row
        }
        rows += duplicateIDs.map { id in
            var row = ViewRow()
            row.add("kind", "duplicate")
            row.add("id", id)
            return row
        }
        rows += allETags.map { etag in
            var row = ViewRow()
            row.add("kind", "etag")
            row.add("id", etag.id)
            row.add("assetCount", etag.assetCount)
            row.add("time", etag.time.text)
            return row
        }
        return rows
            + (android.all + ios.all).map { asset in
                var row = ViewRow()
                row.add("kind", "deviceAsset")
                row.add("id", asset.id)
                row.add("platform", asset.platform.rawValue)
                row.add("hash", asset.hash)
                row.add("modifiedTime", asset.modifiedTime?.text)
                return row
            }
    }
}

extension DeviceMediaView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.add(count: ignored)
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
    /// An event is needed while it holds its register.
    public func retention(of event: Event) -> Retention {
        do {
            switch try Key(event) {
            case .album(let id, _): return .of(event, heldBy: [stamp(ofBackupAlbum: id)])
            case .duplicate(let id, _): return .of(event, heldBy: [stamp(ofDuplicate: id)])
            case .etag(let id, _): return .of(event, heldBy: [stamp(ofETag: id)])
            case .asset(let platform, let id, _):
                return .of(event, heldBy: [stamp(ofDeviceAsset: id, platform)])
            case nil: return .unconcerned
            }
        } catch { return .needed(.notUnderstood) }
    }
}

extension BackupAlbum: PackedValue {
    func write(to writer: inout StateWriter) {
        writer.add(name)
        writer.add(byte: selection.code)
        writer.add(packed: lastBackup)
    }

    init(id: String, _ reader: inout StateReader) throws(EventError) {
        self.id = id
        name = try reader.string()
        let code = try reader.byte()
        guard let selection = BackupSelection.allCases.first(where: { $0.code == code }) else {
            throw reader.fault("a backup album is selected in no known way")
        }
        self.selection = selection
        lastBackup = try reader.packedTimeIfThere()
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
        writer.add(count: assetCount)
        writer.add(packed: time)
    }

    init(id: String, _ reader: inout StateReader) throws(EventError) {
        self.id = id
        assetCount = try reader.nonNegative()
        time = try reader.packedTime()
    }
}

extension DeviceAsset: PackedValue {
    func write(to writer: inout StateWriter) {
        writer.add(platform == .ios)
        writer.add(hash)
        writer.add(packed: modifiedTime)
    }

    init(id: String, _ reader: inout StateReader) throws(EventError) {
        self.id = id
        platform = try reader.bool() ? .ios : .android
        hash = try reader.string()
        modifiedTime = try reader.packedTimeIfThere()
    }
}
