// The events of the device's own media library and of its backup. They concern this device only and are not
// shipped. Spec/model/events.md, EVT-7.

import Daybook

/// A device album was selected for backup, or its data has changed.
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

/// The entry of a device album was removed.
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

/// A file of the device no longer counts as uploaded.
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

/// The ETag of a user was removed.
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

/// The hash of a file of the device was stored.
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

/// The entry of a file of the device was removed.
public struct DeviceAssetRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.deviceasset.removed"
    /// The platform of the library.
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
