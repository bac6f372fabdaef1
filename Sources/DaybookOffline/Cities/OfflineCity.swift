// The cached copy of a city, which an app can show without a network. Spec/model/cities.md.

import Daybook
import Foundation

/// A city that is cached on the device. Its data is in the log; `CityCommands.read(_:)` reads it.
public struct OfflineCity: Hashable, Sendable, Identifiable {
    /// The city's id.
    public let cityId: String
    /// The cached images.
    public let images: [CachedImage]
    /// The images of the city that the copy lacks, because the server did not have or send them, sent something else,
    /// or described them wrongly. They are fetched again a day after the download.
    public let missingImages: [MissingImage]
    /// The time of the download.
    public let downloadedAt: Timestamp
    /// The time of the last access, exact to five minutes; `downloadedAt` if there was none.
    public let lastAccessedAt: Timestamp
    /// Bytes of the city's JSON and of its images.
    public let storageSize: Int
    /// Whether the user asked for it. Only the user removes such a copy.
    public let isExplicitDownload: Bool
    /// The number of this copy: 1 for the first, one more for each copy that replaces another.
    public let version: Int
    /// The id of the event that contains the city's JSON.
    let event: UUID

    /// The city's id.
    public var id: String { cityId }

    /// The age in days after which a copy is stale.
    public static let staleAfterDays = 30

    /// Whether the copy is older than 30 days, or was downloaded while the clock was so far ahead that its age is
    /// not known.
    public func isStale(at now: Timestamp) -> Bool {
        abs(now.milliseconds - downloadedAt.milliseconds)
            > Int64(Self.staleAfterDays) * 86_400_000
    }
}

/// An image that could not be stored for a copy of a city.
struct UnfetchedImage: Error {
    /// The image as the copy lists it if it lacks the image.
    var image: MissingImage
    /// Whether the server says that it does not have the image.
    var isGone = false
    /// The size and the checksum that the server states.
    var size: Int?
    var sha256: FileID?

    /// Whether an image of the present copy is this one as the server has it, as far as is known.
    func isSame(as stored: CachedImage) -> Bool {
        stored.url == image.url && size ?? stored.size == stored.size
            && sha256 ?? stored.file == stored.file
    }
}

/// An image that the copy of a city lacks, or of which it has an older version.
public struct MissingImage: DeclaredObject, Hashable, Identifiable {
    /// The image's id; its place in the manifest if the manifest gives it none of its own.
    public var id: String
    /// The image's URL; its place in the manifest if the manifest gives none that may be requested.
    public var url: String
    /// The reason, without any text from a server.
    public var reason: String  // .text

    /// The greatest number of characters of a reason. So the reasons of all images fit an event.
    static let reasonMax = 200
}

/// An image of a cached city. Its bytes are in the file store.
public struct CachedImage: DeclaredObject, Hashable, Identifiable {
    /// The image's id.
    public var id: String
    /// The URL from which it was fetched.
    public var url: String
    /// Its content: `FileStore.read(_:)` for the bytes, `FileStore.path(of:)` for a path. No path is
    /// recorded, because an app's folders move with each installation.
    public var file: FileID
    /// Bytes of the content.
    public var size: Int
    /// The kind of picture.
    public var kind: Kind  // "type"
    /// Width in pixels.
    public var width: Int
    /// Height in pixels.
    public var height: Int

    /// The kind of picture.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The city's title picture.
        case hero
        /// A picture of the gallery.
        case gallery
        /// A picture of an attraction.
        case attraction
    }
}
