// An asset becomes known, changes, or goes. Facts about this device: none of it is shipped.
// Spec/model/events.md, EVT-7.

import Daybook

/// An asset was stored. It replaces all that was known of the asset.
public struct AssetStored: EventPayload, Hashable {
    public static let type = "daybook.asset.stored"
    /// The asset.
    public var asset: Asset
    /// What else is known of it: a JSON object whose members the type does not name. They are kept
    /// in the event as they are.
    public var properties: [UInt8]?

    /// Creates the event's data.
    public init(_ asset: Asset, properties: [UInt8]? = nil) {
        self.asset = asset
        self.properties = properties
    }

    private static let names: [StaticString] = [
        "assetId", "remoteId", "localId", "ownerId", "checksum", "type", "fileName",
        "fileCreatedAt", "fileModifiedAt", "updatedAt", "durationSeconds", "width", "height",
        "livePhotoVideoId", "isFavorite", "isArchived", "isTrashed",
    ]

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        let duration =
            fields.raw("durationSeconds") == nil
            ? nil : try fields.finite("durationSeconds")
        if let duration, duration < 0 {
            throw EventError(.invalidData, "data.durationSeconds is negative")
        }
        asset = Asset(
            id: try fields.identifier("assetId"),
            remoteId: try fields.optionalIdentifier("remoteId"),
            localId: try fields.optionalIdentifier("localId"),
            ownerId: try fields.identifier("ownerId"),
            checksum: try fields.identifier("checksum"),
            type: try fields.oneOf(AssetType.self, "type"),
            fileName: try fields.string("fileName"),
            fileCreatedAt: try fields.time("fileCreatedAt"),
            fileModifiedAt: try fields.time("fileModifiedAt"),
            updatedAt: try fields.time("updatedAt"), durationSeconds: duration,
            width: try fields.count("width"), height: try fields.count("height"),
            livePhotoVideoId: try fields.optionalIdentifier("livePhotoVideoId"),
            isFavorite: try fields.bool("isFavorite") ?? false,
            isArchived: try fields.bool("isArchived") ?? false,
            isTrashed: try fields.bool("isTrashed") ?? false)
        properties = fields.others(than: Self.names)
    }

    public var subject: String? { asset.id }

    /// The data as JSON text.
    ///
    /// - Throws: `EventError` (`invalidData`) for a duration that is no number, and for properties
    ///   that are no JSON object or name a member that an asset has.
    public func json() throws -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("assetId", asset.id)
        if let id = asset.remoteId { writer.add("remoteId", id) }
        if let id = asset.localId { writer.add("localId", id) }
        writer.add("ownerId", asset.ownerId)
        writer.add("checksum", asset.checksum)
        writer.add("type", asset.type.rawValue)
        writer.add("fileName", asset.fileName)
        writer.add("fileCreatedAt", asset.fileCreatedAt.text)
        writer.add("fileModifiedAt", asset.fileModifiedAt.text)
        writer.add("updatedAt", asset.updatedAt.text)
        if let duration = asset.durationSeconds {
            guard duration.isFinite else {
                throw EventError(.invalidData, "the duration of \(asset.id) is no number")
            }
            writer.add("durationSeconds", duration)
        }
        if let width = asset.width { writer.add("width", width) }
        if let height = asset.height { writer.add("height", height) }
        if let id = asset.livePhotoVideoId { writer.add("livePhotoVideoId", id) }
        if asset.isFavorite { writer.add("isFavorite", true) }
        if asset.isArchived { writer.add("isArchived", true) }
        if asset.isTrashed { writer.add("isTrashed", true) }
        if let others = try checkedProperties(properties, beside: Self.names) {
            writer.addMembers(of: others)
        }
        return writer.finished()
    }
}

/// An asset was removed.
public struct AssetRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.asset.removed"
    /// The asset.
    public var assetId: String

    /// Creates the event's data.
    public init(assetId: String) { self.assetId = assetId }

    public static var example: Self {
        Self(assetId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("assetId", &assetId, .identifier)
    }

    public var subject: String? { assetId }
}
