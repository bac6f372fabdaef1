// What the device's own media library says, and what the backup has made of it. Facts about this
// device: none of it is shipped. Spec/model/events.md, EVT-7.

import Daybook

/// A device album was selected for backup, or what is known of it has changed.
public struct BackupAlbumStored: DeclaredPayload, Hashable {
    public static let type = "daybook.backupalbum.stored"
    /// The album.
    public var album: BackupAlbum

    /// Creates the event's data.
    public init(_ album: BackupAlbum) { self.album = album }

    public static var example: Self {
        Self(.example)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try album.declareMembers(&members)
    }

    public var subject: String? { album.id }
}

/// A device album is not known any more.
public struct BackupAlbumRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.backupalbum.removed"
    /// The album.
    public var albumId: String

    /// Creates the event's data.
    public init(albumId: String) { self.albumId = albumId }

    public static var example: Self {
        Self(albumId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("albumId", &albumId, .identifier)
    }

    public var subject: String? { albumId }
}

/// A file of the device is on the server already and need not be uploaded.
public struct DuplicateStored: DeclaredPayload, Hashable {
    public static let type = "daybook.duplicate.stored"
    /// The file, by the device's id.
    public var deviceAssetId: String

    /// Creates the event's data.
    public init(deviceAssetId: String) { self.deviceAssetId = deviceAssetId }

    public static var example: Self {
        Self(deviceAssetId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("deviceAssetId", &deviceAssetId, .identifier)
    }

    public var subject: String? { deviceAssetId }
}

/// A file of the device does not count as uploaded any more.
public struct DuplicateRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.duplicate.removed"
    /// The file, by the device's id.
    public var deviceAssetId: String

    /// Creates the event's data.
    public init(deviceAssetId: String) { self.deviceAssetId = deviceAssetId }

    public static var example: Self {
        Self(deviceAssetId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("deviceAssetId", &deviceAssetId, .identifier)
    }

    public var subject: String? { deviceAssetId }
}

/// A user's assets were synchronised.
public struct ETagStored: DeclaredPayload, Hashable {
    public static let type = "daybook.etag.stored"
    /// The user's ETag.
    public var etag: AssetETag

    /// Creates the event's data.
    public init(_ etag: AssetETag) { self.etag = etag }

    public static var example: Self {
        Self(.example)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try etag.declareMembers(&members)
    }

    public var subject: String? { etag.id }
}

/// Nothing is known any more of a user's last synchronisation.
public struct ETagRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.etag.removed"
    /// The user.
    public var userId: String

    /// Creates the event's data.
    public init(userId: String) { self.userId = userId }

    public static var example: Self {
        Self(userId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
    }

    public var subject: String? { userId }
}

/// The hash of a file of the device is known.
public struct DeviceAssetStored: DeclaredPayload, Hashable {
    public static let type = "daybook.deviceasset.stored"
    /// The file.
    public var asset: DeviceAsset

    /// Creates the event's data.
    public init(_ asset: DeviceAsset) { self.asset = asset }

    public static var example: Self {
        Self(.example)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try asset.declareMembers(&members)
    }

    public var subject: String? { asset.id }
}

/// A file of the device is not known any more.
public struct DeviceAssetRemoved: DeclaredPayload, Hashable {
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

    public static var example: Self {
        Self(platform: .android, assetId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("platform", &platform, .choice(DevicePlatform.self))
        try members.required("assetId", &assetId, .identifier)
    }

    public var subject: String? { assetId }
}
