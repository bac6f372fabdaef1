// The events of albums and their links to assets and users. They concern this device only and are not
// shipped. Spec/model/events.md, EVT-7.

import Daybook

/// An album was stored. It replaces the album's data, but not its links.
public struct AlbumStored: DeclaredPayload, Hashable {
    public static let type = "daybook.album.stored"
    /// The album.
    public var album: Album  // its members

    public var subject: String? { album.id }
}

/// An album was removed, with all its links.
public struct AlbumRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.album.removed"
    /// The album.
    public var albumId: String

    public var subject: String? { albumId }
}

/// Links of an album to assets and users, which are added or removed.
public struct AlbumLinks: DeclaredObject, Hashable {
    /// The album.
    public var albumId: String
    /// The assets.
    public var assetIds: [String] = []
    /// The users with whom it is shared.
    public var userIds: [String] = []  // or assetIds
}

/// Assets were added to an album, or it was shared with users.
public struct AlbumLinked: DeclaredPayload, Hashable {
    public static let type = "daybook.album.linked"
    /// The added links.
    public var links: AlbumLinks  // its members

    public var subject: String? { links.albumId }
}

/// Assets were removed from an album, or it is no longer shared with users.
public struct AlbumUnlinked: DeclaredPayload, Hashable {
    public static let type = "daybook.album.unlinked"
    /// The removed links.
    public var links: AlbumLinks  // its members

    public var subject: String? { links.albumId }
}
