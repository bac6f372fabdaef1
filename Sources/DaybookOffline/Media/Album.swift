// An album as the library knows it. Stored by AlbumCommands, found by AlbumsView. Spec/model/media.md.

import Daybook

/// An album. Which assets are in it, and with whom it is shared, say its links.
public struct Album: DeclaredObject, Hashable, Identifiable {
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
