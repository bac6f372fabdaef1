// A photo or video of the library. AssetCommands stores it, AssetsView indexes it.
// Spec/model/media.md.

import Daybook

/// A photo, a video or another file of a library: on the device, on the server, or on both.
public struct Asset: Hashable, Sendable, Identifiable {
    /// The app's id of the asset, on the device or not.
    public var id: String
    /// The server's id; nil while it is not backed up.
    public var remoteId: String?
    /// The device's id; nil without a copy on the device.
    public var localId: String?
    /// The id of its owner.
    public var ownerId: String
    /// The digest of its bytes, in the app's format; nil until the app has computed it. With a `remoteId` it is
    /// the digest of what the server has. See `AssetCommands.setChecksums(_:)`. An asset without one is not
    /// uploaded by a backup, and its copy on the device is not deleted to free space.
    public var checksum: String?
    /// True if the checksum is the digest of the file on this device, although the asset is backed up: the server
    /// has given none, so the checksum does not show that the server has this content.
    public var isChecksumOfDevice: Bool
    /// True if the server has reported another content than that with which the copy on this device was matched, or
    /// a change that could not be stored. Then only the hash of the copy, if it equals the checksum, shows that the
    /// server has it. `AssetCommands.refresh(of:fetch:)` sets it.
    public var isChangedOnServer: Bool
    /// The type of its content.
    public var type: AssetType
    /// The name of the file; may be empty.
    public var fileName: String
    /// The time at which it was taken.
    public var fileCreatedAt: ZonedTime
    /// The time of the file's last change; with a `remoteId` of the file that was backed up.
    public var fileModifiedAt: ZonedTime
    /// The time of the last change of its metadata.
    public var updatedAt: ZonedTime
    /// The duration in seconds; 0 or more.
    public var durationSeconds: Double?
    /// The width in pixels.
    public var width: Int?
    /// The height in pixels.
    public var height: Int?
    /// The id of a live photo's video.
    public var livePhotoVideoId: String?
    /// True if it is a favorite of the user.
    public var isFavorite: Bool
    /// True if it is shown in the archive only.
    public var isArchived: Bool
    /// True if it is in the trash.
    public var isTrashed: Bool

    /// Creates an asset.
    public init(
        id: String, remoteId: String? = nil, localId: String? = nil, ownerId: String,
        checksum: String? = nil, type: AssetType, fileName: String, fileCreatedAt: ZonedTime,
        fileModifiedAt: ZonedTime, updatedAt: ZonedTime, durationSeconds: Double? = nil,
        width: Int? = nil, height: Int? = nil, livePhotoVideoId: String? = nil,
        isFavorite: Bool = false, isArchived: Bool = false, isTrashed: Bool = false,
        isChecksumOfDevice: Bool = false, isChangedOnServer: Bool = false
    ) {
        self.id = id
        self.remoteId = remoteId
        self.localId = localId
        self.ownerId = ownerId
        self.checksum = checksum
        self.isChecksumOfDevice = isChecksumOfDevice
        self.isChangedOnServer = isChangedOnServer
        self.type = type
        self.fileName = fileName
        self.fileCreatedAt = fileCreatedAt
        self.fileModifiedAt = fileModifiedAt
        self.updatedAt = updatedAt
        self.durationSeconds = durationSeconds
        self.width = width
        self.height = height
        self.livePhotoVideoId = livePhotoVideoId
        self.isFavorite = isFavorite
        self.isArchived = isArchived
        self.isTrashed = isTrashed
    }
}

/// The type of an asset's content.
public enum AssetType: String, Hashable, Sendable, CaseIterable {
    /// A photo.
    case image
    /// A video.
    case video
    /// A sound recording.
    case audio
    /// Another type.
    case other
}
