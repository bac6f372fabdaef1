// A photo or video as the library knows it. Stored by AssetCommands, found by AssetsView.
// Spec/model/media.md.

import Daybook

/// A photo, a video or another file of a library: on the device, on the server, or on both.
public struct Asset: Hashable, Sendable, Identifiable {
    /// The id under which the app knows it, on the device or not.
    public var id: String
    /// The server's id; nil while it is not backed up.
    public var remoteId: String?
    /// The device's id; nil where there is no copy on the device.
    public var localId: String?
    /// Who owns it.
    public var ownerId: String
    /// The digest of its bytes, as the app writes digests.
    public var checksum: String
    /// What it is.
    public var type: AssetType
    /// The name of the file; may be empty.
    public var fileName: String
    /// When it was taken.
    public var fileCreatedAt: ZonedTime
    /// When the file was changed last.
    public var fileModifiedAt: ZonedTime
    /// When what is known of it was changed last.
    public var updatedAt: ZonedTime
    /// How long it runs; 0 or more.
    public var durationSeconds: Double?
    /// Pixels.
    public var width: Int?
    /// Pixels.
    public var height: Int?
    /// The video that belongs to a live photo.
    public var livePhotoVideoId: String?
    /// Whether the user likes it best.
    public var isFavorite: Bool
    /// Whether it is shown in the archive only.
    public var isArchived: Bool
    /// Whether it waits in the trash.
    public var isTrashed: Bool

    /// Creates an asset.
    public init(
        id: String, remoteId: String? = nil, localId: String? = nil, ownerId: String,
        checksum: String, type: AssetType, fileName: String, fileCreatedAt: ZonedTime,
        fileModifiedAt: ZonedTime, updatedAt: ZonedTime, durationSeconds: Double? = nil,
        width: Int? = nil, height: Int? = nil, livePhotoVideoId: String? = nil,
        isFavorite: Bool = false, isArchived: Bool = false, isTrashed: Bool = false
    ) {
        self.id = id
        self.remoteId = remoteId
        self.localId = localId
        self.ownerId = ownerId
        self.checksum = checksum
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

/// What an asset is.
public enum AssetType: String, Hashable, Sendable, CaseIterable {
    /// A photo.
    case image
    /// A video.
    case video
    /// A sound.
    case audio
    /// Anything else.
    case other
}
