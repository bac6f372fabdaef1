// A copy of a city comes to the device, is looked at, and goes. Spec/model/events.md, EVT-7.

import Daybook

/// A copy of a city was cached.
public struct CityCached: EventPayload, Hashable {
    public static let type = "daybook.city.cached"
    /// The city.
    public var cityId: String
    /// The number of this copy, from 1.
    public var version: Int
    /// Whether the user asked for it.
    public var isExplicitDownload: Bool
    /// The city as the server describes it: JSON that `CityData(json:)` reads, kept as it came.
    public var cityData: [UInt8]
    /// Its images, in the file store.
    public var images: [CachedImage]

    /// Creates the event's data.
    public init(
        cityId: String, version: Int, isExplicitDownload: Bool, cityData: [UInt8],
        images: [CachedImage]
    ) {
        self.cityId = cityId
        self.version = version
        self.isExplicitDownload = isExplicitDownload
        self.cityData = cityData
        self.images = images
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        cityId = try fields.identifier("cityId")
        version = try fields.required(try fields.count("version"), "version")
        guard version >= 1 else {
            throw EventError(.invalidData, "data.version is 0; the first copy is 1")
        }
        isExplicitDownload = try fields.required(
            try fields.bool("isExplicitDownload"), "isExplicitDownload")
        cityData = try fields.required(fields.raw("cityData"), "cityData")
        let described = try CityData(try JSONFields(cityData, place: "data.cityData"))
        guard EntityID(described.id) == EntityID(cityId) else {
            throw EventError(.invalidData, "data.cityData.id is another city than data.cityId")
        }
        images = []
        for image in try fields.required(try fields.objects("images"), "images") {
            images.append(try CachedImage(image))
        }
    }

    public var subject: String? { cityId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("cityId", cityId)
        writer.add("version", version)
        writer.add("isExplicitDownload", isExplicitDownload)
        writer.add("cityData", raw: cityData)
        writer.add("images", raw: JSONObjectWriter.array(images.map(\.json)))
        return writer.finished()
    }

    /// Bytes of the city's JSON and of its images.
    var storageSize: Int {
        images.reduce(cityData.count) { sum, image in
            let (total, overflow) = sum.addingReportingOverflow(image.size)
            return overflow ? .max : total
        }
    }
}

extension CachedImage {
    init(_ fields: JSONFields) throws(EventError) {
        let file = try fields.string("file")
        guard let file = FileID(file) else {
            throw EventError(.invalidData, "the file of an image is no SHA-256: \(file)")
        }
        let kind = try fields.oneOf(Kind.self, "type")
        self.init(
            id: try fields.identifier("id"), url: try fields.identifier("url"), file: file,
            size: try fields.required(try fields.count("size"), "size"), kind: kind,
            width: try fields.required(try fields.count("width"), "width"),
            height: try fields.required(try fields.count("height"), "height"))
    }

    var json: [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("id", id)
        writer.add("url", url)
        writer.add("file", file.description)
        writer.add("size", size)
        writer.add("type", kind.rawValue)
        writer.add("width", width)
        writer.add("height", height)
        return writer.finished()
    }
}

/// The copy of a city was removed.
public struct CityRemoved: EventPayload, Hashable {
    public static let type = "daybook.city.removed"
    /// The city.
    public var cityId: String
    /// Why.
    public var reason: Reason

    /// Why a copy was removed.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// The user said so.
        case user
        /// Others needed the room.
        case limit
        /// Nobody had looked at it for too long.
        case age
    }

    /// Creates the event's data.
    public init(cityId: String, reason: Reason) {
        self.cityId = cityId
        self.reason = reason
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        cityId = try fields.identifier("cityId")
        reason = try fields.oneOf(Reason.self, "reason")
    }

    public var subject: String? { cityId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("cityId", cityId)
        writer.add("reason", reason.rawValue)
        return writer.finished()
    }
}

/// The copy of a city was looked at, at the event's time.
public struct CityAccessed: EventPayload, Hashable {
    public static let type = "daybook.city.accessed"
    /// The city.
    public var cityId: String

    /// Creates the event's data.
    public init(cityId: String) { self.cityId = cityId }

    public init(json: [UInt8]) throws {
        cityId = try JSONFields(json).identifier("cityId")
    }

    public var subject: String? { cityId }

    public func json() -> [UInt8] { JSONObjectWriter.object("cityId", cityId) }
}
