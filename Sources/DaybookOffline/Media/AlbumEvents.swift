// An album becomes known or goes; assets and users come to it and leave it. Facts about this device:
// none of it is shipped. Spec/model/events.md, EVT-7.

import Daybook

/// An album was stored. It replaces all that was known of the album but its links.
public struct AlbumStored: EventPayload, Hashable {
    public static let type = "daybook.album.stored"
    /// The album.
    public var album: Album

    /// Creates the event's data.
    public init(_ album: Album) { self.album = album }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        album = Album(
            id: try fields.identifier("albumId"),
            remoteId: try fields.optionalIdentifier("remoteId"),
            ownerId: try fields.identifier("ownerId"), name: try fields.string("name"),
            createdAt: try fields.time("createdAt"), modifiedAt: try fields.time("modifiedAt"),
            startDate: try fields.optionalTime("startDate"),
            endDate: try fields.optionalTime("endDate"),
            thumbnailAssetId: try fields.optionalIdentifier("thumbnailAssetId"))
    }

    public var subject: String? { album.id }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("albumId", album.id)
        if let id = album.remoteId { writer.add("remoteId", id) }
        writer.add("ownerId", album.ownerId)
        writer.add("name", album.name)
        writer.add("createdAt", album.createdAt.text)
        writer.add("modifiedAt", album.modifiedAt.text)
        if let date = album.startDate { writer.add("startDate", date.text) }
        if let date = album.endDate { writer.add("endDate", date.text) }
        if let id = album.thumbnailAssetId { writer.add("thumbnailAssetId", id) }
        return writer.finished()
    }
}

/// An album was removed, with all its links.
public struct AlbumRemoved: EventPayload, Hashable {
    public static let type = "daybook.album.removed"
    /// The album.
    public var albumId: String

    /// Creates the event's data.
    public init(albumId: String) { self.albumId = albumId }

    public init(json: [UInt8]) throws {
        albumId = try JSONFields(json).identifier("albumId")
    }

    public var subject: String? { albumId }

    public func json() -> [UInt8] { JSONObjectWriter.object("albumId", albumId) }
}

/// Assets and users an album is linked to, or no longer.
public struct AlbumLinks: Hashable, Sendable {
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

    fileprivate init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        albumId = try fields.identifier("albumId")
        assetIds = try fields.identifiers("assetIds") ?? []
        userIds = try fields.identifiers("userIds") ?? []
        guard !assetIds.isEmpty || !userIds.isEmpty else {
            throw EventError(.invalidData, "data names neither an asset nor a user")
        }
    }

    fileprivate func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("albumId", albumId)
        for (name, ids) in [("assetIds", assetIds), ("userIds", userIds)] where !ids.isEmpty {
            writer.add(name, raw: JSONObjectWriter.array(ids.map(JSONObjectWriter.string)))
        }
        return writer.finished()
    }
}

/// Assets came to an album, or it was shared with users.
public struct AlbumLinked: EventPayload, Hashable {
    public static let type = "daybook.album.linked"
    /// What was linked.
    public var links: AlbumLinks

    /// Creates the event's data.
    public init(_ links: AlbumLinks) { self.links = links }

    public init(json: [UInt8]) throws { links = try AlbumLinks(json: json) }

    public var subject: String? { links.albumId }

    public func json() -> [UInt8] { links.json() }
}

/// Assets left an album, or it is no longer shared with users.
public struct AlbumUnlinked: EventPayload, Hashable {
    public static let type = "daybook.album.unlinked"
    /// What was unlinked.
    public var links: AlbumLinks

    /// Creates the event's data.
    public init(_ links: AlbumLinks) { self.links = links }

    public init(json: [UInt8]) throws { links = try AlbumLinks(json: json) }

    public var subject: String? { links.albumId }

    public func json() -> [UInt8] { links.json() }
}
