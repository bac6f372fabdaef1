// What the device's own media library says, and what the backup has made of it. Facts about this
// device: none of it is shipped. Spec/model/events.md, EVT-7.

import Daybook

/// A device album was selected for backup, or what is known of it has changed.
public struct BackupAlbumStored: EventPayload, Hashable {
    public static let type = "daybook.backupalbum.stored"
    /// The album.
    public var album: BackupAlbum

    /// Creates the event's data.
    public init(_ album: BackupAlbum) { self.album = album }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        album = BackupAlbum(
            id: try fields.identifier("albumId"), name: try fields.string("name"),
            selection: try fields.oneOf(BackupSelection.self, "selection"),
            lastBackup: try fields.optionalTime("lastBackup"))
    }

    public var subject: String? { album.id }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("albumId", album.id)
        writer.add("name", album.name)
        writer.add("selection", album.selection.rawValue)
        if let time = album.lastBackup { writer.add("lastBackup", time.text) }
        return writer.finished()
    }
}

/// A device album is not known any more.
public struct BackupAlbumRemoved: EventPayload, Hashable {
    public static let type = "daybook.backupalbum.removed"
    /// The album.
    public var albumId: String

    /// Creates the event's data.
    public init(albumId: String) { self.albumId = albumId }

    public init(json: [UInt8]) throws {
        albumId = try JSONFields(json).identifier("albumId")
    }

    public var subject: String? { albumId }

    public func json() -> [UInt8] { JSONObjectWriter.object("albumId", albumId) }
}

/// A file of the device is on the server already and need not be uploaded.
public struct DuplicateStored: EventPayload, Hashable {
    public static let type = "daybook.duplicate.stored"
    /// The file, by the device's id.
    public var deviceAssetId: String

    /// Creates the event's data.
    public init(deviceAssetId: String) { self.deviceAssetId = deviceAssetId }

    public init(json: [UInt8]) throws {
        deviceAssetId = try JSONFields(json).identifier("deviceAssetId")
    }

    public var subject: String? { deviceAssetId }

    public func json() -> [UInt8] { JSONObjectWriter.object("deviceAssetId", deviceAssetId) }
}

/// A file of the device does not count as uploaded any more.
public struct DuplicateRemoved: EventPayload, Hashable {
    public static let type = "daybook.duplicate.removed"
    /// The file, by the device's id.
    public var deviceAssetId: String

    /// Creates the event's data.
    public init(deviceAssetId: String) { self.deviceAssetId = deviceAssetId }

    public init(json: [UInt8]) throws {
        deviceAssetId = try JSONFields(json).identifier("deviceAssetId")
    }

    public var subject: String? { deviceAssetId }

    public func json() -> [UInt8] { JSONObjectWriter.object("deviceAssetId", deviceAssetId) }
}

/// A user's assets were synchronised.
public struct ETagStored: EventPayload, Hashable {
    public static let type = "daybook.etag.stored"
    /// The user's ETag.
    public var etag: AssetETag

    /// Creates the event's data.
    public init(_ etag: AssetETag) { self.etag = etag }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        etag = AssetETag(
            id: try fields.identifier("userId"),
            assetCount: try fields.required(try fields.count("assetCount"), "assetCount"),
            time: try fields.time("time"))
    }

    public var subject: String? { etag.id }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("userId", etag.id)
        writer.add("assetCount", etag.assetCount)
        writer.add("time", etag.time.text)
        return writer.finished()
    }
}

/// Nothing is known any more of a user's last synchronisation.
public struct ETagRemoved: EventPayload, Hashable {
    public static let type = "daybook.etag.removed"
    /// The user.
    public var userId: String

    /// Creates the event's data.
    public init(userId: String) { self.userId = userId }

    public init(json: [UInt8]) throws {
        userId = try JSONFields(json).identifier("userId")
    }

    public var subject: String? { userId }

    public func json() -> [UInt8] { JSONObjectWriter.object("userId", userId) }
}

/// The hash of a file of the device is known.
public struct DeviceAssetStored: EventPayload, Hashable {
    public static let type = "daybook.deviceasset.stored"
    /// The file.
    public var asset: DeviceAsset

    /// Creates the event's data.
    public init(_ asset: DeviceAsset) { self.asset = asset }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        asset = DeviceAsset(
            platform: try fields.oneOf(DevicePlatform.self, "platform"),
            id: try fields.identifier("assetId"), hash: try fields.identifier("hash"),
            modifiedTime: try fields.optionalTime("modifiedTime"))
        if asset.platform == .ios { _ = try fields.required(asset.modifiedTime, "modifiedTime") }
    }

    public var subject: String? { asset.id }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("platform", asset.platform.rawValue)
        writer.add("assetId", asset.id)
        writer.add("hash", asset.hash)
        if let time = asset.modifiedTime { writer.add("modifiedTime", time.text) }
        return writer.finished()
    }
}

/// A file of the device is not known any more.
public struct DeviceAssetRemoved: EventPayload, Hashable {
    public static let type = "daybook.deviceasset.removed"
    /// The platform whose library had it.
    public var platform: DevicePlatform
    /// The file, by the device's id.
    public var assetId: String

    /// Creates the event's data.
    public init(platform: DevicePlatform, assetId: String) {
        self.platform = platform
        self.assetId = assetId
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        platform = try fields.oneOf(DevicePlatform.self, "platform")
        assetId = try fields.identifier("assetId")
    }

    public var subject: String? { assetId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("platform", platform.rawValue)
        writer.add("assetId", assetId)
        return writer.finished()
    }
}
