// The small collections beside assets and albums: what is backed up, what is uploaded already, the
// hashes of the device's files. Stored by DeviceMediaCommands, found by DeviceMediaView.
// Spec/model/media.md.

import Daybook

/// An album of the device, and whether it is backed up.
public struct BackupAlbum: DeclaredObject, Hashable, Identifiable {
    /// The device's id.
    public var id: String
    /// Its name; may be empty.
    public var name: String
    /// Whether it is backed up.
    public var selection: BackupSelection
    /// When it was backed up last; nil if it never was.
    public var lastBackup: ZonedTime?

    /// Creates an album.
    public init(
        id: String, name: String, selection: BackupSelection, lastBackup: ZonedTime? = nil
    ) {
        self.id = id
        self.name = name
        self.selection = selection
        self.lastBackup = lastBackup
    }

    public static var example: Self {
        Self(id: "-", name: "", selection: .none)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("albumId", &id, .identifier)
        try members.required("name", &name, .text)
        try members.required("selection", &selection, .choice(BackupSelection.self))
        try members.optional("lastBackup", &lastBackup, .of(ZonedTime.self))
    }
}

/// Whether an album is backed up.
public enum BackupSelection: String, Hashable, Sendable, CaseIterable {
    /// It is.
    case include
    /// It is not, also where its assets are in another album that is.
    case exclude
    /// Nobody has said so.
    case none
}

/// What a user's assets were like at the last synchronisation.
public struct AssetETag: DeclaredObject, Hashable, Identifiable {
    /// The user.
    public var id: String
    /// How many assets the user had.
    public var assetCount: Int
    /// When it was.
    public var time: ZonedTime

    /// Creates an ETag.
    public init(id: String, assetCount: Int, time: ZonedTime) {
        self.id = id
        self.assetCount = assetCount
        self.time = time
    }

    public static var example: Self {
        Self(id: "-", assetCount: 0, time: .epoch)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &id, .identifier)
        try members.required("assetCount", &assetCount, .count)
        try members.required("time", &time, .of(ZonedTime.self))
    }
}

/// The hash of a file in the device's media library.
public struct DeviceAsset: DeclaredObject, Hashable, Identifiable {
    /// Whose library it is.
    public var platform: DevicePlatform
    /// The device's id.
    public var id: String
    /// The hash of its bytes, as the app writes hashes.
    public var hash: String
    /// When it was changed last; iOS says so always.
    public var modifiedTime: ZonedTime?

    /// A file of an Android device.
    public static func android(
        id: String, hash: String, modifiedTime: ZonedTime? = nil
    ) -> DeviceAsset {
        DeviceAsset(platform: .android, id: id, hash: hash, modifiedTime: modifiedTime)
    }

    /// A file of an iOS device.
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

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("platform", &platform, .choice(DevicePlatform.self))
        try members.required("assetId", &id, .identifier)
        try members.required("hash", &hash, .identifier)
        try members.optional("modifiedTime", &modifiedTime, .of(ZonedTime.self))
        try members.constraint(
            .requiredWhere("platform", is: DevicePlatform.ios.rawValue, "modifiedTime"),
            isMet: platform != .ios || modifiedTime != nil)
    }
}

/// Whose media library a file is in.
public enum DevicePlatform: String, Hashable, Sendable, CaseIterable {
    /// Android's.
    case android
    /// That of iOS.
    case ios
}
