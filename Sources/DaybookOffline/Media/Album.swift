// An album of the library. AlbumCommands stores it, AlbumsView indexes it. Spec/model/media.md.

import Daybook

/// An album. Its links contain its assets and the users with whom it is shared.
public struct Album: DeclaredObject, Hashable, Identifiable {
    /// The app's id of the album.
    public var id: String
    /// The server's id; nil while the album is not on the server.
    public var remoteId: String?
    /// The id of its owner.
    public var ownerId: String
    /// Its name; may be empty.
    public var name: String
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

    public static var example: Self {
        Self(
            id: "-", ownerId: "-", name: "", createdAt: .epoch, modifiedAt: .epoch)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("albumId", &id, .identifier)
        try members.optional("remoteId", &remoteId, .identifier)
        try members.required("ownerId", &ownerId, .identifier)
        try members.required("name", &name, .text)
        try members.required("createdAt", &createdAt, .of(ZonedTime.self))
        try members.required("modifiedAt", &modifiedAt, .of(ZonedTime.self))
        try members.optional("startDate", &startDate, .of(ZonedTime.self))
        try members.optional("endDate", &endDate, .of(ZonedTime.self))
        try members.optional("thumbnailAssetId", &thumbnailAssetId, .identifier)
    }
}
