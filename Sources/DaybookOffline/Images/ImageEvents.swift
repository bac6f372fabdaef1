// The events of the image cache: cached, accessed, removed. They concern this device only and are not
// shipped. Folded by ImagesView. Spec/model/events.md, EVT-7; Spec/model/images.md.

import Daybook

/// The kind of a cached image. Each kind has its own limit.
public enum ImageKind: String, Hashable, Sendable, CaseIterable, Comparable {
    /// A small image of an asset, for grids.
    case thumbnail
    /// An image of an asset that fills the screen.
    case preview
    /// The cover of an album.
    case albumThumbnail

    /// The order of declaration.
    public static func < (lhs: ImageKind, rhs: ImageKind) -> Bool { lhs.index < rhs.index }

    /// The kind's index in the order of declaration.
    var index: Int {
        switch self {
        case .thumbnail: 0
        case .preview: 1
        case .albumThumbnail: 2
        }
    }
}

/// An image was cached. It replaces the one with the same kind and id.
public struct ImageCached: DeclaredPayload, Hashable {
    public static let type = "daybook.image.cached"
    /// The kind of the image.
    public var kind: ImageKind
    /// The id of the asset; for an album's thumbnail that of the album.
    public var id: String
    /// The file with its bytes, in the file store.
    public var file: FileID
    /// The size in bytes.
    public var size: Int

    public var subject: String? { id }
}

/// An image was removed from the cache.
public struct ImageRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.image.removed"
    /// The kind of the image.
    public var kind: ImageKind
    /// The id of the asset; for an album's thumbnail that of the album.
    public var id: String
    /// The reason of the removal.
    public var reason: Reason

    /// The reason of a removal.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// The user or the app removed it.
        case user
        /// It was evicted because its kind exceeded the limit.
        case limit
        /// Its file was missing or damaged.
        case invalid
    }

    public var subject: String? { id }
}

/// A cached image was read.
public struct ImageAccessed: DeclaredPayload, Hashable {
    public static let type = "daybook.image.accessed"
    /// The kind of the image.
    public var kind: ImageKind
    /// The id of the asset; for an album's thumbnail that of the album.
    public var id: String
    /// The time of the access; nil for the event's time. An event that replaces an access of a clock that was
    /// ahead has a later time than the access itself.
    public var accessedAt: ZonedTime?

    public var subject: String? { id }
}

/// All cached images of some kinds were removed.
public struct ImagesCleared: DeclaredPayload, Hashable {
    public static let type = "daybook.images.cleared"
    /// The kinds; at least one.
    public var kinds: [ImageKind]
}
