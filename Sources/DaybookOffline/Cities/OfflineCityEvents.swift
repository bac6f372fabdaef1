// The events of a city's cached copy: cached, accessed, removed. Spec/model/events.md, EVT-7.

import Daybook

/// A copy of a city was cached.
public struct CityCached: DeclaredPayload, Hashable {
    public static let type = "daybook.city.cached"
    /// The city.
    public var cityId: String
    /// The number of this copy, from 1.
    public var version: Int  // .count(1...)
    /// Whether the user asked for it.
    public var isExplicitDownload: Bool
    /// The server's JSON of the city, kept as it was written; `CityData(json:)` reads it.
    public var cityData: [UInt8]  // CityDocument(of: cityId)
    /// Its images, in the file store.
    public var images: [CachedImage]
    /// The images of the city that could not be fetched.
    public var missingImages: [MissingImage] = []

    public var subject: String? { cityId }

    /// Bytes of the city's JSON and of its images.
    var storageSize: Int {
        images.reduce(cityData.count) { sum, image in
            let (total, overflow) = sum.addingReportingOverflow(image.size)
            return overflow ? .max : total
        }
    }
}

/// The member with a city's JSON, which is kept as it was written.
struct CityDocument: MemberKind {
    /// The id that the document must have.
    private let cityId: String

    init(of cityId: String) { self.cityId = cityId }

    func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> [UInt8] {
        let document = try object.required(try object.object(name), name)
        guard EntityID(try CityData(members: document).id) == EntityID(cityId) else {
            throw EventError(
                .invalidData, "\(document.path).id differs from \(object.path).cityId")
        }
        return document.text
    }

    func write(
        _ value: [UInt8], _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(literal: name, raw: value)
    }

    var schema: MemberSchema.Kind { .object(ObjectSchema(of: CityData.self)) }
}

/// The copy of a city was removed.
public struct CityRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.city.removed"
    /// The city.
    public var cityId: String
    /// The reason of the removal.
    public var reason: Reason

    /// The reason for which a copy was removed.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// The user removed it.
        case user
        /// The storage limit was exceeded.
        case limit
        /// The last access was longer ago than `pruneAfterDays`.
        case age
    }

    public var subject: String? { cityId }
}

/// The copy of a city was read.
public struct CityAccessed: DeclaredPayload, Hashable {
    public static let type = "daybook.city.accessed"
    /// The city.
    public var cityId: String
    /// The time of the access; nil for the event's time. An event that replaces an access of a clock that was
    /// ahead has a later time than the access itself.
    public var accessedAt: ZonedTime?

    public var subject: String? { cityId }
}
