// The events of albums and their links to assets and users. They concern this device only and are not
// shipped. Spec/model/events.md, EVT-7.

import Daybook

/// An album was stored. It replaces the album's data, but not its links.
public struct AlbumStored: DeclaredPayload, Hashable {
    public static let type = "daybook.album.stored"
    /// The album.
    public var album: Album

    /// Creates the event's data.
    public init(_ album: Album) { self.album = album }

    public static var example: Self {
        Self(.example)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try album.declareMembers(&members)
    }

    public var subject: String? { album.id }
}

/// An album was removed, with all its links.
public struct AlbumRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.album.removed"
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

/// Links of an album to assets and users, which are added or removed.
public struct AlbumLinks: DeclaredObject, Hashable {
    /// The album.
    public var albumId: String
    /// The assets.
    public var assetIds: [String]
    /// The users with whom it is shared.
    public var userIds: [String]

    /// Creates the links; at least one.
    public init(albumId: String, assetIds: [String] = [], userIds: [String] = []) {
        self.albumId = albumId
        self.assetIds = assetIds
        self.userIds = userIds
    }

    public static var example: Self {
        Self(albumId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("albumId", &albumId, .identifier)
        try members.optional("assetIds", &assetIds, .identifiers, missing: [])
        try members.optional("userIds", &userIds, .identifiers, missing: [])
        try members.constraint(
            .atLeastOne(["assetIds", "userIds"]), isMet: !assetIds.isEmpty || !userIds.isEmpty)
    }
}

/// Assets were added to an album, or it was shared with users.
public struct AlbumLinked: DeclaredPayload, Hashable {
    public static let type = "daybook.album.linked"
    /// The added links.
    public var links: AlbumLinks

    /// Creates the event's data.
    public init(_ links: AlbumLinks) { self.links = links }

    public static var example: Self {
        Self(.example)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try links.declareMembers(&members)
    }

    public var subject: String? { links.albumId }
}

/// Assets were removed from an album, or it is no longer shared with users.
public struct AlbumUnlinked: DeclaredPayload, Hashable {
    public static let type = "daybook.album.unlinked"
    /// The removed links.
    public var links: AlbumLinks

    /// Creates the event's data.
    public init(_ links: AlbumLinks) { self.links = links }

    public static var example: Self {
        Self(.example)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try links.declareMembers(&members)
    }

    public var subject: String? { links.albumId }
}
