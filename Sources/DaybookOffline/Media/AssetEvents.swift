// The events of assets: stored, removed. They concern this device only and are not shipped.
// Spec/model/events.md, EVT-7.

import Daybook

/// An asset was stored. It replaces the asset's previous data.
public struct AssetStored: EventPayload, Hashable {
    public static let type = "daybook.asset.stored"
    /// The asset.
    public var asset: Asset
    /// Further properties: a JSON object whose members the type does not name. They are stored in the event
    /// unchanged.
    public var properties: [UInt8]?

    /// Creates the event's data.
    public init(_ asset: Asset, properties: [UInt8]? = nil) {
        self.asset = asset
        self.properties = properties
    }

    private static let names: [StaticString] = [
        "assetId", "remoteId", "localId", "ownerId", "checksum", "type", "fileName",
        "fileCreatedAt", "fileModifiedAt", "updatedAt", "durationSeconds", "width", "height",
        "livePhotoVideoId", "isFavorite", "isArchived", "isTrashed", "isChecksumOfDevice",
        "isChangedOnServer",
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
            checksum: try fields.optionalIdentifier("checksum"),
            type: try fields.oneOf(AssetType.self, "type"),
            fileName: try fields.string("fileName"),
            fileCreatedAt: try fields.time("fileCreatedAt"),
            fileModifiedAt: try fields.time("fileModifiedAt"),
            updatedAt: try fields.time("updatedAt"), durationSeconds: duration,
            width: try fields.count("width"), height: try fields.count("height"),
            livePhotoVideoId: try fields.optionalIdentifier("livePhotoVideoId"),
            isFavorite: try fields.bool("isFavorite") ?? false,
            isArchived: try fields.bool("isArchived") ?? false,
            isTrashed: try fields.bool("isTrashed") ?? false,
            isChecksumOfDevice: try fields.bool("isChecksumOfDevice") ?? false,
            isChangedOnServer: try fields.bool("isChangedOnServer") ?? false)
        properties = fields.others(than: Self.names)
    }

    public var subject: String? { asset.id }

    /// Encodes the data as JSON text.
    ///
    /// - Throws: `EventError` (`invalidData`) for a duration that is not finite, and for properties that are
    ///   not a JSON object or contain a member that the type names.
    public func json() throws -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("assetId", asset.id)
        if let id = asset.remoteId { writer.appendMember("remoteId", id) }
        if let id = asset.localId { writer.appendMember("localId", id) }
        writer.appendMember("ownerId", asset.ownerId)
        if let checksum = asset.checksum { writer.appendMember("checksum", checksum) }
        writer.appendMember("type", asset.type.rawValue)
        writer.appendMember("fileName", asset.fileName)
        writer.appendMember("fileCreatedAt", asset.fileCreatedAt.text)
        writer.appendMember("fileModifiedAt", asset.fileModifiedAt.text)
        writer.appendMember("updatedAt", asset.updatedAt.text)
        if let duration = asset.durationSeconds {
            guard duration.isFinite else {
                throw EventError(.invalidData, "the duration of \(asset.id) is not a finite number")
            }
            writer.appendMember("durationSeconds", duration)
        }
        if let width = asset.width { writer.appendMember("width", width) }
        if let height = asset.height { writer.appendMember("height", height) }
        if let id = asset.livePhotoVideoId { writer.appendMember("livePhotoVideoId", id) }
        if asset.isFavorite { writer.appendMember("isFavorite", true) }
        if asset.isArchived { writer.appendMember("isArchived", true) }
        if asset.isTrashed { writer.appendMember("isTrashed", true) }
        if asset.isChecksumOfDevice { writer.appendMember("isChecksumOfDevice", true) }
        if asset.isChangedOnServer { writer.appendMember("isChangedOnServer", true) }
        if let properties = try checkedProperties(properties, beside: Self.names) {
            writer.appendMembers(of: properties)
        }
        return writer.finished()
    }
}

/// An asset was removed.
public struct AssetRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.asset.removed"
    /// The asset.
    public var assetId: String

    public var subject: String? { assetId }
}

/// An asset to be stored: an `Asset`, or an `AssetStored`, which has further properties. The commands that
/// store assets take both.
public protocol StorableAsset: Sendable {
    /// The data to be stored.
    var stored: AssetStored { get }
}

extension Asset: StorableAsset {
    /// The asset without further properties.
    public var stored: AssetStored { AssetStored(self) }
}

extension AssetStored: StorableAsset {
    /// The data itself.
    public var stored: AssetStored { self }
}
