// An album of the library. AlbumCommands stores it, AlbumsView indexes it. Spec/model/media.md.

import Daybook

/// An album. Its links contain its assets and the users with whom it is shared.
public struct Album: DeclaredObject, Hashable, Identifiable {
    /// The app's id of the album.
    public var id: String  // "albumId"
    /// The server's id; nil while the album is not on the server.
    public var remoteId: String?
    /// The id of its owner.
    public var ownerId: String
    /// Its name; may be empty.
    public var name: String  // .text
    /// The time of its creation.
    public var createdAt: ZonedTime
    /// The time of its last change.
    public var modifiedAt: ZonedTime
    /// The time at which its first asset was taken.
    public var startDate: ZonedTime?
    /// The time at which its last asset was taken.
    public var endDate: ZonedTime?
    /// The asset of its thumbnail.
    public var thumbnailAssetId: String?
}
