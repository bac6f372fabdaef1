// Which images are cached, in which order they were looked at, and how many bytes they are. What
// ends an image, the removal of its asset for example, is part of the fold. Asked by ImageCache.
// Spec/model/images.md.

import Daybook
import HashTreeCollections

/// An image in the cache.
public struct StoredImage: Hashable, Sendable {
    /// What it is for.
    public let kind: ImageKind
    /// The asset; for an album's thumbnail the album.
    public let id: String
    /// Its bytes; where they lie says `ImageCache.path(of:)`.
    public let file: FileID
    /// How many bytes.
    public let size: Int
    /// When it was cached.
    public var cachedAt: Timestamp { stamp.time }
    /// When it was looked at last, exact to an hour; to have been cached counts as well.
    public let lastAccessedAt: Timestamp
    /// The event that cached it.
    let stamp: Stamp
}

/// How much there is of something in the cache.
public struct ImageCacheSize: Hashable, Sendable {
    /// How many images.
    public var images: Int
    /// How many bytes. Images with equal contents count each, though they share a file.
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
    public static let version = 1
    public static let eventTypes: Set<String>? = [
        ImageCached.type, ImageRemoved.type, ImageAccessed.type, ImagesCleared.type,
        AssetRemoved.type, AlbumStored.type, AlbumLinked.type, AlbumUnlinked.type,
        AlbumRemoved.type,
    ]

    /// How many removed assets, and how many changed albums, are told apart.
    static let sourcesMax = 4_096

    /// By `ImageKind.index`.
    var shelves: [ImageShelf]
    /// By asset: the greatest stamp of `asset.removed`.
    var assets: StampTable
    /// By album: the greatest stamp of whatever changed it.
    var albums: StampTable
    /// How many images are each file.
    var files: TreeDictionary<FileID, Int> = [:]
    /// Events whose data no rule can make sense of.
    public internal(set) var ignored = 0

    public init() { self.init(toldApartMax: nil) }

    /// An empty view.
    ///
    /// - Parameter toldApartMax: how many keys each of its tables tells apart; tests make it small.
    init(toldApartMax: Int?) {
        shelves = ImageKind.allCases.map {
            ImageShelf($0, toldApartMax: toldApartMax ?? $0.toldApartMax)
        }
        assets = StampTable(capacity: toldApartMax ?? Self.sourcesMax)
        albums = StampTable(capacity: toldApartMax ?? Self.sourcesMax)
    }

    public mutating func fold(_ event: Event) {
        do {
            switch event.type {
            case ImageCached.type: cache(try event.payload(as: ImageCached.self), event.stamp)
            case ImageRemoved.type:
                let removed = try event.payload(as: ImageRemoved.self)
                let (shelf, id) = (removed.kind.index, EntityID(removed.id))
                let gone = shelves[shelf].removals.set(event.stamp, of: id)
                end(id, on: shelf)
                if !gone.isEmpty { endOldest(on: shelf, through: shelves[shelf].removals.floor) }
            case ImageAccessed.type:
                let accessed = try event.payload(as: ImageAccessed.self)
                shelves[accessed.kind.index].access(EntityID(accessed.id), event.stamp)
            case ImagesCleared.type:
                for kind in try event.payload(as: ImagesCleared.self).kinds {
                    clear(kind.index, event.stamp)
                }
            case AssetRemoved.type:
                let id = EntityID(try event.payload(as: AssetRemoved.self).assetId)
                end(id, assets.set(event.stamp, of: id), assets.floor, of: [.thumbnail, .preview])
            default:
                guard let album = try Self.changedAlbum(event) else { return }
                let id = EntityID(album)
                end(id, albums.set(event.stamp, of: id), albums.floor, of: [.albumThumbnail])
            }
        } catch { ignored += 1 }
    }

    /// The album whose thumbnail an event ends; nil if it is none of those events.
    static func changedAlbum(_ event: Event) throws -> String? {
        return switch event.type {
        case AlbumStored.type: try event.payload(as: AlbumStored.self).album.id
        case AlbumLinked.type: try event.payload(as: AlbumLinked.self).links.albumId
        case AlbumUnlinked.type: try event.payload(as: AlbumUnlinked.self).links.albumId
        case AlbumRemoved.type: try event.payload(as: AlbumRemoved.self).albumId
        default: nil
        }
    }

    private mutating func cache(_ cached: ImageCached, _ stamp: Stamp) {
        let (id, shelf) = (EntityID(cached.id), cached.kind.index)
        guard ended(cached.kind, id).map({ $0 < stamp }) ?? true else { return }
        let image = ImageShelf.Image(file: cached.file, size: cached.size)
        let (isSet, old) = shelves[shelf].set(image, id, stamp)
        guard isSet else { return }
        files[image.file, default: 0] += 1
        if let old { forget(old.file) }
    }

    /// Ends the image of an id if it was cached before what has ended it.
    private mutating func end(_ id: EntityID, on shelf: Int) {
        guard let stamp = shelves[shelf].images[id]?.stamp,
            let ended = ended(shelves[shelf].kind, id), stamp <= ended,
            let image = shelves[shelf].remove(id)
        else { return }
        forget(image.file)
    }

    /// Ends what an asset or an album ends.
    private mutating func end(
        _ id: EntityID, _ gone: [StampPlace], _ floor: Stamp?, of kinds: [ImageKind]
    ) {
        for kind in kinds {
            end(id, on: kind.index)
            if !gone.isEmpty { endOldest(on: kind.index, through: floor) }
        }
    }

    /// Ends what was cached up to a stamp.
    private mutating func endOldest(on shelf: Int, through floor: Stamp?) {
        guard let floor else { return }
        for place in shelves[shelf].byStamp.ascending.prefix(while: { $0.stamp <= floor }) {
            if let image = shelves[shelf].remove(place.key) { forget(image.file) }
        }
    }

    private mutating func clear(_ shelf: Int, _ stamp: Stamp) {
        endOldest(on: shelf, through: stamp)
        _ = shelves[shelf].removals.raise(to: stamp)
        // What is left was cached later, so none of these accesses is its last.
        _ = shelves[shelf].accesses.raise(to: stamp)
    }

    private mutating func forget(_ file: FileID) {
        let others = (files[file] ?? 0) - 1
        files[file] = others > 0 ? others : nil
    }

    // MARK: What counts

    /// The greatest stamp of whatever ends the images of an asset or an album. O(1).
    func ended(of kind: ImageKind, _ id: EntityID) -> Stamp? {
        switch kind {
        case .thumbnail, .preview: assets.bound(of: id)
        case .albumThumbnail: albums.bound(of: id)
        }
    }

    /// The greatest stamp of whatever ends an image. O(1).
    func ended(_ kind: ImageKind, _ id: EntityID) -> Stamp? {
        [shelves[kind.index].removals.bound(of: id), ended(of: kind, id)].compactMap(\.self).max()
    }

    /// What the next event of an image must pass to count. O(1).
    func stamp(_ kind: ImageKind, _ id: EntityID) -> Stamp? {
        [shelves[kind.index].images[id]?.stamp, ended(kind, id)].compactMap(\.self).max()
    }

    /// The newest image of a kind: what clearing it must pass. O(1).
    func newest(_ kind: ImageKind) -> Stamp? { shelves[kind.index].byStamp.last?.stamp }

    /// What the removal of an asset must pass to end its images, also those that are being fetched.
    /// O(1).
    func newest(ofAsset assetId: String) -> Stamp? {
        let id = EntityID(assetId)
        let images = [ImageKind.thumbnail, .preview].map { shelves[$0.index].images[id]?.stamp }
        return (images + [assets.bound(of: id)]).compactMap(\.self).max()
    }

    /// What a change of an album must pass to end its thumbnail, also one that is being fetched. O(1).
    func newest(ofAlbum albumId: String) -> Stamp? {
        let id = EntityID(albumId)
        let image = shelves[ImageKind.albumThumbnail.index].images[id]?.stamp
        return [image, albums.bound(of: id)].compactMap(\.self).max()
    }

    /// Whether an image was cached so long ago that it will soon not be told from those that were
    /// removed, unless it is cached anew. O(1).
    ///
    /// - Returns: what it must pass then; nil if it is not so old.
    func fading(_ image: StoredImage) -> Stamp? {
        let sources = image.kind == .albumThumbnail ? albums : assets
        return [
            shelves[image.kind.index].removals.fading(image.stamp), sources.fading(image.stamp),
        ].compactMap(\.self).max()
    }

    // MARK: Questions

    /// A cached image. O(1).
    public func image(_ kind: ImageKind, _ id: String) -> StoredImage? {
        shelves[kind.index][EntityID(id)]
    }

    /// The cached images of a kind, those first that nobody has looked at for longest: the order in
    /// which they go when room is needed, as far as it is on record. O(1) each.
    public func leastRecentlyUsed(_ kind: ImageKind) -> some Sequence<StoredImage> {
        let shelf = shelves[kind.index]
        return shelf.byAccess.ascending.lazy.compactMap { shelf[$0.key] }
    }

    /// How many images of a kind are cached, and their bytes. O(1).
    public func size(of kind: ImageKind) -> ImageCacheSize {
        let shelf = shelves[kind.index]
        return ImageCacheSize(images: shelf.byStamp.count, bytes: Int(clamping: shelf.bytes))
    }

    public func refers(to file: FileID) -> Bool { files[file] != nil }

    /// One for each image, by kind and id.
    public func rows() -> [ViewRow] {
        shelves.flatMap { shelf in
            shelf.images.keys.sorted().compactMap { shelf[$0] }.map { image in
                var row = ViewRow()
                row.add("kind", image.kind.rawValue)
                row.add("id", image.id)
                row.add("file", image.file.description)
                row.add("size", image.size)
                row.add("cachedAt", image.cachedAt.description)
                row.add("lastAccessedAt", image.lastAccessedAt.description)
                return row
            }
        }
    }
}
