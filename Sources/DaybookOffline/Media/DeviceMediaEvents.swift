// The events of the device's own media library and of its backup. They concern this device only and are not
// shipped. Spec/model/events.md, EVT-7.

import Daybook

/// A device album was selected for backup, or its data has changed.
public struct BackupAlbumStored: DeclaredPayload, Hashable {
    public static let type = "daybook.backupalbum.stored"
    /// The album.
    public var album: BackupAlbum  // its members

    public var subject: String? { album.id }
}

/// The entry of a device album was removed.
public struct BackupAlbumRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.backupalbum.removed"
    /// The album.
    public var albumId: String

    public var subject: String? { albumId }
}

/// A file of the device is on the server already and need not be uploaded.
public struct DuplicateStored: DeclaredPayload, Hashable {
    public static let type = "daybook.duplicate.stored"
    /// The file, by the device's id.
    public var deviceAssetId: String

    public var subject: String? { deviceAssetId }
}

/// A file of the device no longer counts as uploaded.
public struct DuplicateRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.duplicate.removed"
    /// The file, by the device's id.
    public var deviceAssetId: String

    public var subject: String? { deviceAssetId }
}

/// A user's assets were synchronised.
public struct ETagStored: DeclaredPayload, Hashable {
    public static let type = "daybook.etag.stored"
    /// The user's ETag.
    public var etag: AssetETag  // its members

    public var subject: String? { etag.id }
}

/// The ETag of a user was removed.
public struct ETagRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.etag.removed"
    /// The user.
    public var userId: String

    public var subject: String? { userId }
}

/// The hash of a file of the device was stored.
public struct DeviceAssetStored: DeclaredPayload, Hashable {
    public static let type = "daybook.deviceasset.stored"
    /// The file.
    public var asset: DeviceAsset  // its members

    public var subject: String? { asset.id }
}

/// The entry of a file of the device was removed.
public struct DeviceAssetRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.deviceasset.removed"
    /// The platform of the library.
    public var platform: DevicePlatform
    /// The file, by the device's id.
    public var assetId: String

    public var subject: String? { assetId }
}
