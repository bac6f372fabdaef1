// The small collections: backup albums, duplicates, ETags, and the device's own assets on both
// platforms. One register for each key. Spec/model/media.md; Spec/model/views.md.

import Daybook

/// The entries of the device's media library and of its backup.
public struct DeviceMediaView: DeclaredView, ListableView {
    public static let name = "devicemedia"
    public static let version = 1
    public static let events: ViewEvents<DeviceMediaView> = [
        .on(BackupAlbumStored.self) { $1.albums.set($0.album, $0.album.id, &$2) },
        .on(BackupAlbumRemoved.self) { $1.albums.set(nil, $0.albumId, &$2) },
        .on(DuplicateStored.self) {
            $1.duplicates.set(Duplicate(id: $0.deviceAssetId), $0.deviceAssetId, &$2)
        },
        .on(DuplicateRemoved.self) { $1.duplicates.set(nil, $0.deviceAssetId, &$2) },
        .on(ETagStored.self) { $1.etags.set($0.etag, $0.etag.id, &$2) },
        .on(ETagRemoved.self) { $1.etags.set(nil, $0.userId, &$2) },
        .on(DeviceAssetStored.self) { $1[$0.asset.platform].set($0.asset, $0.asset.id, &$2) },
        .on(DeviceAssetRemoved.self) { $1[$0.platform].set(nil, $0.assetId, &$2) },
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
    public var ignored = 0

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&albums, &duplicates, &etags)
        try state.visit(&android, &ios)
    }

    public var stateFault: String? {
        DevicePlatform.allCases.allSatisfy { platform in
            self[platform].all.allSatisfy { $0.platform == platform }
        } ? nil : "a device asset is among those of another platform"
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
        self[platform].lwwTimestamp(of: EntityID(id))
    }

    private subscript(platform: DevicePlatform) -> PackedRegisters<DeviceAsset> {
        get {
            switch platform {
            case .android: android
            case .ios: ios
            }
        }
        _modify {
            switch platform {
            case .android: yield &android
            case .ios: yield &ios
            }
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
        self[platform][EntityID(id)]
    }

    /// Returns the files of the device, by id. O(n log n).
    public func deviceAssets(on platform: DevicePlatform) -> [DeviceAsset] {
        self[platform].all
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
