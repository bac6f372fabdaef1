// An album as the library knows it. Stored by AlbumCommands, found by AlbumsView. Spec/model/media.md.

import Daybook

/// An album. Which assets are in it, and with whom it is shared, say its links.
public struct Album: Hashable, Sendable, Identifiable {
    /// The id under which the app knows it.
    public var id: String
    /// The server's id; nil while the server does not know it.
    public var remoteId: String?
    /// Who owns it.
    public var ownerId: String
    /// Its name; may be empty.
    public var name: String
    /// When it was made.
    public var createdAt: ZonedTime
    /// When it was changed last.
    public var modifiedAt: ZonedTime
    /// When its first asset was taken.
    public var startDate: ZonedTime?
    /// When its last asset was taken.
    public var endDate: ZonedTime?
    /// The asset that stands for it.
    public var thumbnailAssetId: String?

    /// Creates an album.
    public init(
        id: String, remoteId: String? = nil, ownerId: String, name: String, createdAt: ZonedTime,
        modifiedAt: ZonedTime, startDate: ZonedTime? = nil, endDate: ZonedTime? = nil,
        thumbnailAssetId: String? = nil
    ) {
        self.id = id
        self.remoteId = remoteId
        self.ownerId = ownerId
        self.name = name
        self.createdAt = createdAt
        self.modifiedAt = modifiedAt
        self.startDate = startDate
        self.endDate = endDate
        self.thumbnailAssetId = thumbnailAssetId
    }
}
