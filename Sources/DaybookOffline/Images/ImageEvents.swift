// An image comes into the cache, is looked at, and goes. Facts about this device: nothing of them
// is shipped. Folded by ImagesView. Spec/model/events.md, EVT-7; Spec/model/images.md.

import Daybook

/// What a cached image is for. Each kind has its own limit.
public enum ImageKind: String, Hashable, Sendable, CaseIterable, Comparable {
    /// A small image of an asset, for grids.
    case thumbnail
    /// An image of an asset that fills the screen.
    case preview
    /// The cover of an album.
    case albumThumbnail

    /// The order in which they are declared.
    public static func < (lhs: ImageKind, rhs: ImageKind) -> Bool { lhs.index < rhs.index }

    /// Its place among all kinds.
    var index: Int {
        switch self {
        case .thumbnail: 0
        case .preview: 1
        case .albumThumbnail: 2
        }
    }

    init(_ text: String) throws(EventError) {
        guard let kind = ImageKind(rawValue: text) else {
            throw EventError(
                .invalidData, "the kind is none of thumbnail, preview, albumThumbnail: \(text)")
        }
        self = kind
    }
}

/// An image was cached. It replaces the one with the same kind and id.
public struct ImageCached: EventPayload, Hashable {
    public static let type = "daybook.image.cached"
    /// What it is for.
    public var kind: ImageKind
    /// The asset; for an album's thumbnail the album.
    public var id: String
    /// Its bytes, in the file store.
    public var file: FileID
    /// How many bytes.
    public var size: Int

    /// Creates the event's data.
    public init(kind: ImageKind, id: String, file: FileID, size: Int) {
        self.kind = kind
        self.id = id
        self.file = file
        self.size = size
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        kind = try fields.oneOf(ImageKind.self, "kind")
        id = try fields.identifier("id")
        guard let file = FileID(try fields.string("file")) else {
            throw EventError(.invalidData, "data.file is not the id of a file")
        }
        self.file = file
        size = try fields.required(try fields.count("size"), "size")
    }

    public var subject: String? { id }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("kind", kind.rawValue)
        writer.add("id", id)
        writer.add("file", file.description)
        writer.add("size", size)
        return writer.finished()
    }
}

/// An image was removed from the cache.
public struct ImageRemoved: EventPayload, Hashable {
    public static let type = "daybook.image.removed"
    /// What it was for.
    public var kind: ImageKind
    /// The asset; for an album's thumbnail the album.
    public var id: String
    /// Why.
    public var reason: Reason

    /// Why an image was removed.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// The user or the app said so.
        case user
        /// Others needed the room.
        case limit
        /// Its file was missing or damaged.
        case invalid
    }

    /// Creates the event's data.
    public init(kind: ImageKind, id: String, reason: Reason) {
        self.kind = kind
        self.id = id
        self.reason = reason
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        kind = try fields.oneOf(ImageKind.self, "kind")
        id = try fields.identifier("id")
        reason = try fields.oneOf(Reason.self, "reason")
    }

    public var subject: String? { id }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("kind", kind.rawValue)
        writer.add("id", id)
        writer.add("reason", reason.rawValue)
        return writer.finished()
    }
}

/// A cached image was looked at, at the event's time.
public struct ImageAccessed: EventPayload, Hashable {
    public static let type = "daybook.image.accessed"
    /// What it is for.
    public var kind: ImageKind
    /// The asset; for an album's thumbnail the album.
    public var id: String

    /// Creates the event's data.
    public init(kind: ImageKind, id: String) {
        self.kind = kind
        self.id = id
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        kind = try fields.oneOf(ImageKind.self, "kind")
        id = try fields.identifier("id")
    }

    public var subject: String? { id }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("kind", kind.rawValue)
        writer.add("id", id)
        return writer.finished()
    }
}

/// All cached images of some kinds were removed.
public struct ImagesCleared: EventPayload, Hashable {
    public static let type = "daybook.images.cleared"
    /// The kinds; at least one.
    public var kinds: [ImageKind]

    /// Creates the event's data.
    public init(kinds: [ImageKind]) { self.kinds = kinds }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        kinds = []
        for kind in try fields.required(try fields.identifiers("kinds"), "kinds") {
            kinds.append(try ImageKind(kind))
        }
        guard !kinds.isEmpty else { throw EventError(.invalidData, "data.kinds is empty") }
    }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add(
            "kinds",
            raw: JSONObjectWriter.array(kinds.map { JSONObjectWriter.string($0.rawValue) }))
        return writer.finished()
    }
}
