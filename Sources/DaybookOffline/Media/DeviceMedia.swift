// The small collections beside assets and albums: albums for backup, uploaded files, hashes of the device's
// files. DeviceMediaCommands stores them, DeviceMediaView indexes them.
// Spec/model/media.md.

import Daybook

/// An album of the device, with its selection for backup.
public struct BackupAlbum: DeclaredObject, Hashable, Identifiable {
    /// The device's id.
    public var id: String  // "albumId"
    /// Its name; may be empty.
    public var name: String  // .text
    /// The selection for backup.
    public var selection: BackupSelection
    /// The time of the last backup; nil if there was none.
    public var lastBackup: ZonedTime?
}

/// The selection of an album for backup.
public enum BackupSelection: String, Hashable, Sendable, CaseIterable {
    /// The album is backed up.
    case include
    /// The album is not backed up, even if another album that is backed up contains its assets.
    case exclude
    /// The user has made no selection.
    case none
}

/// The state of a user's assets at the last synchronisation.
public struct AssetETag: DeclaredObject, Hashable, Identifiable {
    /// The user.
    public var id: String  // "userId"
    /// The number of the user's assets.
    public var assetCount: Int
    /// The time of the synchronisation.
    public var time: ZonedTime
}

/// The hash of a file in the device's media library.
public struct DeviceAsset: DeclaredObject, Hashable, Identifiable {
    /// The platform of the library.
    public var platform: DevicePlatform
    /// The device's id.
    public var id: String  // "assetId"
    /// The hash of its bytes, in the app's format.
    public var hash: String
    /// The time of its last change; always known on iOS.
    public var modifiedTime: ZonedTime?  // required where platform is ios

    /// Creates the entry of a file of an Android device.
    public static func android(
        id: String, hash: String, modifiedTime: ZonedTime? = nil
    ) -> DeviceAsset {
        DeviceAsset(platform: .android, id: id, hash: hash, modifiedTime: modifiedTime)
    }

    /// Creates the entry of a file of an iOS device.
    public static func ios(id: String, hash: String, modifiedTime: ZonedTime) -> DeviceAsset {
        DeviceAsset(platform: .ios, id: id, hash: hash, modifiedTime: modifiedTime)
    }

    init(platform: DevicePlatform, id: String, hash: String, modifiedTime: ZonedTime?) {
        self.platform = platform
        self.id = id
        self.hash = hash
        self.modifiedTime = modifiedTime
    }

    public static var example: Self {
        .android(id: "-", hash: "-")
    }
}

/// The platform of a media library.
public enum DevicePlatform: String, Hashable, Sendable, CaseIterable {
    /// Android.
    case android
    /// iOS.
    case ios
}
