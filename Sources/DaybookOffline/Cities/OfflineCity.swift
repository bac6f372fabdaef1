// The cached copy of a city: what an app can show without a network. Spec/model/cities.md.

import Daybook
import Foundation

/// A city that is cached on the device. The text about it is in the log: `CityCommands.read(_:)`.
public struct OfflineCity: Hashable, Sendable, Identifiable {
    /// The city.
    public let cityId: String
    /// The cached images.
    public let images: [CachedImage]
    /// When the copy was made.
    public let downloadedAt: Timestamp
    /// When it was looked at last, to within five minutes; `downloadedAt` if never.
    public let lastAccessedAt: Timestamp
    /// Bytes of the city's JSON and of its images.
    public let storageSize: Int
    /// Whether the user asked for it. Nothing but the user removes it then.
    public let isExplicitDownload: Bool
    /// 1 for the first copy of this city, and one more with each new one.
    public let version: Int
    /// The event that holds the city's JSON.
    let event: UUID

    /// The city.
    public var id: String { cityId }

    /// Age after which a copy may be out of date.
    public static let staleAfterDays = 30

    /// Whether the copy is older than 30 days.
    public func isStale(at now: Timestamp) -> Bool {
        now.milliseconds - downloadedAt.milliseconds > Int64(Self.staleAfterDays) * 86_400_000
    }
}

/// An image of a cached city. Its bytes are in the file store.
public struct CachedImage: DeclaredObject, Hashable, Identifiable {
    /// The image.
    public var id: String
    /// Where it came from.
    public var url: String
    /// Its content: `FileStore.read(_:)` for the bytes, `FileStore.path(of:)` for a path. No path is
    /// recorded, because an app's folders move with each installation.
    public var file: FileID
    /// Bytes of the content.
    public var size: Int
    /// What it shows.
    public var kind: Kind
    /// Width in pixels.
    public var width: Int
    /// Height in pixels.
    public var height: Int

    /// What an image shows.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The city's title picture.
        case hero
        /// One picture of many.
        case gallery
        /// An attraction.
        case attraction
    }

    /// Creates a description of an image that is in the file store.
    public init(
        id: String, url: String, file: FileID, size: Int, kind: Kind, width: Int, height: Int
    ) {
        self.id = id
        self.url = url
        self.file = file
        self.size = size
        self.kind = kind
        self.width = width
        self.height = height
    }

    public static var example: Self {
        Self(id: "-", url: "-", file: .example, size: 0, kind: .hero, width: 0, height: 0)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("id", &id, .identifier)
        try members.required("url", &url, .identifier)
        try members.required("file", &file, .of(FileID.self))
        try members.required("size", &size, .count)
        try members.required("type", &kind, .choice(Kind.self))
        try members.required("width", &width, .count)
        try members.required("height", &height, .count)
    }
}
