// An album becomes known or goes; assets and users come to it and leave it. Facts about this device:
// none of it is shipped. Spec/model/events.md, EVT-7.

import Daybook

/// An album was stored. It replaces all that was known of the album but its links.
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

/// Assets and users an album is linked to, or no longer.
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

/// Assets came to an album, or it was shared with users.
public struct AlbumLinked: DeclaredPayload, Hashable {
    public static let type = "daybook.album.linked"
    /// What was linked.
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

/// Assets left an album, or it is no longer shared with users.
public struct AlbumUnlinked: DeclaredPayload, Hashable {
    public static let type = "daybook.album.unlinked"
    /// What was unlinked.
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
