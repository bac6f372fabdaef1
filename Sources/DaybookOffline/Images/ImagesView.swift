// The index of cached images: their files, sizes and last accesses. Events that end an image, the removal
// of its asset for example, are part of the fold. ImageCache reads it. Spec/model/images.md.

import Daybook
import HashTreeCollections

/// An image in the cache.
public struct StoredImage: Hashable, Sendable {
    /// The kind of the image.
    public let kind: ImageKind
    /// The id of the asset; for an album's thumbnail that of the album.
    public let id: String
    /// The file with its bytes. `ImageCache.path(of:)` returns its path.
    public let file: FileID
    /// The size in bytes.
    public let size: Int
    /// The time at which it was cached.
    public var cachedAt: Timestamp { lwwTimestamp.time }
    /// The time of the last access, with a precision of an hour. Caching counts as an access. It is in the future
    /// if the clock was ahead then.
    public let lastAccessedAt: Timestamp
    /// The LWW timestamp of the event that cached it.
    let lwwTimestamp: LWWTimestamp
}

/// A number of images and their bytes.
public struct ImageCacheSize: Hashable, Sendable {
    /// The number of images.
    public var images: Int
    /// The sum of their sizes in bytes. Images with equal contents count each, although they share a file.
    public var bytes: Int

    /// Creates a size.
    public init(images: Int, bytes: Int) {
        self.images = images
        self.bytes = bytes
    }
}

/// The cached images.
public struct ImagesView: ListableView, FileReferring {
    public static let name = "images"
    public static let version = 2
    public static let eventTypes: Set<String>? = [
        ImageCached.type, ImageRemoved.type, ImageAccessed.type, ImagesCleared.type,
        AssetRemoved.type, AlbumStored.type, AlbumLinked.type, AlbumUnlinked.type,
        AlbumRemoved.type,
    ]

    /// The number of tracked ids, of removed assets and of changed albums each.
    static let sourcesMax = 4_096

    /// The images of each kind, by `ImageKind.index`.
    var shelves: [ImageShelf]
    /// The greatest LWW timestamp of each asset's `asset.removed`.
    var assets: LWWTimestampTable
    /// The greatest LWW timestamp of each album's changes.
    var albums: LWWTimestampTable
    /// The number of images of each file.
    var files: TreeDictionary<FileID, Int> = [:]
    /// The number of events with invalid data.
    public internal(set) var ignored = 0

    public init() { self.init(trackedMax: nil) }

    /// Creates an empty view.
    ///
    /// - Parameter trackedMax: the number of tracked ids of each table; tests make it small.
    init(trackedMax: Int?) {
        shelves = ImageKind.allCases.map {
            ImageShelf($0, trackedMax: trackedMax ?? $0.trackedMax)
        }
        assets = LWWTimestampTable(capacity: trackedMax ?? Self.sourcesMax)
        albums = LWWTimestampTable(capacity: trackedMax ?? Self.sourcesMax)
    }

    public mutating func fold(_ event: Event) {
        do {
            switch event.type {
            case ImageCached.type:
                applyCached(try event.payload(as: ImageCached.self), event.lwwTimestamp)
            case ImageRemoved.type:
                let removed = try event.payload(as: ImageRemoved.self)
                let (shelf, id) = (removed.kind.index, EntityID(removed.id))
                let evicted = shelves[shelf].removals.set(event.lwwTimestamp, of: id)
                endImage(id, on: shelf)
                if !evicted.isEmpty {
                    endImages(on: shelf, through: shelves[shelf].removals.floor)
                }
            case ImageAccessed.type:
                let accessed = try event.payload(as: ImageAccessed.self)
                shelves[accessed.kind.index].applyAccess(
                    EntityID(accessed.id), event.lwwTimestamp, at: accessed.accessedAt?.moment)
            case ImagesCleared.type:
                for kind in try event.payload(as: ImagesCleared.self).kinds {
                    clear(kind.index, event.lwwTimestamp)
                }
            case AssetRemoved.type:
                let id = EntityID(try event.payload(as: AssetRemoved.self).assetId)
                endImages(
                    of: id, evicted: assets.set(event.lwwTimestamp, of: id), floor: assets.floor,
                    [.thumbnail, .preview])
            default:
                guard let album = try Self.changedAlbum(event) else { return }
                let id = EntityID(album)
                endImages(
                    of: id, evicted: albums.set(event.lwwTimestamp, of: id), floor: albums.floor,
                    [.albumThumbnail])
            }
        } catch { ignored += 1 }
    }

    /// Returns the id of the album whose thumbnail an event ends; nil for an event of another type.
    static func changedAlbum(_ event: Event) throws -> String? {
        return switch event.type {
        case AlbumStored.type: try event.payload(as: AlbumStored.self).album.id
        case AlbumLinked.type: try event.payload(as: AlbumLinked.self).links.albumId
        case AlbumUnlinked.type: try event.payload(as: AlbumUnlinked.self).links.albumId
        case AlbumRemoved.type: try event.payload(as: AlbumRemoved.self).albumId
        default: nil
        }
    }

    private mutating func applyCached(_ cached: ImageCached, _ lwwTimestamp: LWWTimestamp) {
        let (id, shelf) = (EntityID(cached.id), cached.kind.index)
        guard endingTimestamp(cached.kind, id).map({ $0 < lwwTimestamp }) ?? true else { return }
        let image = ImageShelf.Image(file: cached.file, size: cached.size)
        let (isSet, old) = shelves[shelf].set(image, id, lwwTimestamp)
        guard isSet else { return }
        files[image.file, default: 0] += 1
        if let old { removeReference(to: old.file) }
    }

    /// Removes the image of an id if an event ends it.
    private mutating func endImage(_ id: EntityID, on shelf: Int) {
        guard let lwwTimestamp = shelves[shelf].images[id]?.lwwTimestamp,
            let end = endingTimestamp(shelves[shelf].kind, id), lwwTimestamp <= end,
            let image = shelves[shelf].remove(id)
        else { return }
        removeReference(to: image.file)
    }

    /// Removes the images that an event of an asset or album ends.
    private mutating func endImages(
        of id: EntityID, evicted: [LWWTimestampEntry], floor: LWWTimestamp?, _ kinds: [ImageKind]
    ) {
        for kind in kinds {
            endImage(id, on: kind.index)
            if !evicted.isEmpty { endImages(on: kind.index, through: floor) }
        }
    }

    /// Removes the images that were cached up to an LWW timestamp.
    private mutating func endImages(on shelf: Int, through floor: LWWTimestamp?) {
        guard let floor else { return }
        for entry in shelves[shelf].byLWWTimestamp.ascending.prefix(while: {
            $0.lwwTimestamp <= floor
        }) {
            if let image = shelves[shelf].remove(entry.key) { removeReference(to: image.file) }
        }
    }

    private mutating func clear(_ shelf: Int, _ lwwTimestamp: LWWTimestamp) {
        endImages(on: shelf, through: lwwTimestamp)
        _ = shelves[shelf].removals.raise(to: lwwTimestamp)
        // The remaining images were cached later, so none of the dropped accesses is a last one.
        shelves[shelf].clearAccesses(through: lwwTimestamp)
    }

    private mutating func removeReference(to file: FileID) {
        let count = (files[file] ?? 0) - 1
        files[file] = count > 0 ? count : nil
    }

    // MARK: Ends

    /// The greatest LWW timestamp of the events of an asset or album that end its images. O(1).
    func sourceEndingTimestamp(_ kind: ImageKind, _ id: EntityID) -> LWWTimestamp? {
        switch kind {
        case .thumbnail, .preview: assets.bound(of: id)
        case .albumThumbnail: albums.bound(of: id)
        }
    }

    /// The greatest LWW timestamp of the events that end an image. O(1).
    func endingTimestamp(_ kind: ImageKind, _ id: EntityID) -> LWWTimestamp? {
        [shelves[kind.index].removals.bound(of: id), sourceEndingTimestamp(kind, id)]
            .compactMap(\.self).max()
    }

    /// The LWW timestamp that the next event of an image must exceed to take effect. O(1).
    func lwwTimestamp(_ kind: ImageKind, _ id: EntityID) -> LWWTimestamp? {
        [shelves[kind.index].images[id]?.lwwTimestamp, endingTimestamp(kind, id)]
            .compactMap(\.self).max()
    }

    /// The LWW timestamp of the newest image of a kind, which a clearing must exceed. O(1).
    func newest(_ kind: ImageKind) -> LWWTimestamp? {
        shelves[kind.index].byLWWTimestamp.last?.lwwTimestamp
    }

    /// The LWW timestamp that the removal of an asset must exceed to end its images, including those being
    /// fetched. O(1).
    func newest(ofAsset assetId: String) -> LWWTimestamp? {
        let id = EntityID(assetId)
        let images = [ImageKind.thumbnail, .preview].map {
            shelves[$0.index].images[id]?.lwwTimestamp
        }
        return (images + [assets.bound(of: id)]).compactMap(\.self).max()
    }

    /// The LWW timestamp that a change of an album must exceed to end its thumbnail, including one being
    /// fetched. O(1).
    func newest(ofAlbum albumId: String) -> LWWTimestamp? {
        let id = EntityID(albumId)
        let image = shelves[ImageKind.albumThumbnail.index].images[id]?.lwwTimestamp
        return [image, albums.bound(of: id)].compactMap(\.self).max()
    }

    /// Returns the LWW timestamp above which an image must be cached again, because the floor of a table may
    /// soon reach it and end it; nil for an image that is recent enough. O(1).
    func renewalBound(of image: StoredImage) -> LWWTimestamp? {
        let sources = image.kind == .albumThumbnail ? albums : assets
        return [
            shelves[image.kind.index].removals.renewalBound(of: image.lwwTimestamp),
            sources.renewalBound(of: image.lwwTimestamp),
        ].compactMap(\.self).max()
    }

    /// The LWW timestamp of an image's last access, which the next one replaces; nil if it is not cached. O(1).
    func accessTimestamp(_ kind: ImageKind, _ id: String) -> LWWTimestamp? {
        shelves[kind.index].accessTimestamp(EntityID(id))
    }

    // MARK: Queries

    /// Returns a cached image. O(1).
    public func image(_ kind: ImageKind, _ id: String) -> StoredImage? {
        shelves[kind.index][EntityID(id)]
    }

    /// Returns the cached images of a kind, the least recently accessed first. Eviction may use
    /// another order: accesses within an hour of a recorded one are not recorded. O(1) each.
    public func leastRecentlyUsed(_ kind: ImageKind) -> some Sequence<StoredImage> {
        let shelf = shelves[kind.index]
        return shelf.byAccess.ascending.lazy.compactMap { shelf[$0.key] }
    }

    /// Returns the cached images of a kind in the order of eviction: those whose last access is after a time,
    /// when the clock was ahead, then the least recently accessed first. O(the first part), and O(1) each.
    func evictionOrder(_ kind: ImageKind, accessedAfter time: Timestamp) -> some Sequence<
        StoredImage
    > {
        let shelf = shelves[kind.index]
        let ahead = shelf.byAccess.descending.prefix { $0.lwwTimestamp.time > time }.reversed()
        let others = shelf.byAccess.ascending.lazy.prefix { $0.lwwTimestamp.time <= time }
        return [AnySequence(ahead), AnySequence(others)].lazy.joined().compactMap { shelf[$0.key] }
    }

    /// Returns the number of cached images of a kind, and their bytes. O(1).
    public func size(of kind: ImageKind) -> ImageCacheSize {
        let shelf = shelves[kind.index]
        return ImageCacheSize(images: shelf.byLWWTimestamp.count, bytes: Int(clamping: shelf.bytes))
    }

    public func refers(to file: FileID) -> Bool { files[file] != nil }

    public static let columns = ["kind", "id", "file", "size", "cachedAt", "lastAccessedAt"]

    /// Returns one row for each image, by kind and id.
    public func rows() -> ViewRows {
        let images = shelves.flatMap { shelf in
            shelf.images.keys.sorted().compactMap { shelf[$0] }
        }
        return ViewRows(images) { image in
            var row = ViewRow()
            row.appendField("kind", image.kind.rawValue)
            row.appendField("id", image.id)
            row.appendField("file", image.file.description)
            row.appendField("size", image.size)
            row.appendField("cachedAt", image.cachedAt.description)
            row.appendField("lastAccessedAt", image.lastAccessedAt.description)
            return row
        }
    }
}
