// The image cache: a memory layer over files, with a limit for each kind. ImagesView is the index of cached
// images; FileStore stores their bytes. Fetching is in ImageCache+Fetch. Spec/model/images.md.

import Daybook

/// A cache of images in memory and on disk. The least recently used images are evicted. An image that an
/// event of the log ends is not found from then on, in either layer.
///
/// ```swift
/// let bytes = try await store.images.image(.thumbnail, asset.id) {
///     try await server.thumbnail(of: asset.id)
/// }
/// ```
///
/// Missing or damaged images are fetched again, and reading, fetching and clearing work on a full disk. The
/// order of use is exact only with one instance for a log: that of its `OfflineStore`.
public actor ImageCache {
    let store: EventStore
    /// The bytes of the images.
    nonisolated let files: FileStore
    /// The files in the log's folder, which stored images before the app named a cache folder; nil if no
    /// cache folder is named.
    private nonisolated let logFiles: FileStore?
    /// The limits that the app has set; nil: those of the settings.
    private var ownLimits: ImageCacheLimits?
    /// The current limits: those of the settings in this store, unless the app has set others.
    public var limits: ImageCacheLimits {
        ownLimits ?? ImageCacheLimits(store.view(SettingsView.self))
    }
    private var memory: ImageMemory
    /// The LRU order of each kind, computed on first use.
    private var orders: [ImageKind: LRUOrder<EntityID>] = [:]
    /// Unreferenced files, which are deleted in groups.
    private var garbage: [FileID] = []
    /// The number of stores before the next collection of all files. It begins with one, because an
    /// earlier process may have been killed before it deleted its files.
    private var storesBeforeCollection = 1
    /// The number of stores in progress.
    private var storesInProgress = 0
    /// The fetches in progress by number, and those of them that further callers may join.
    var fetches: [Int: ImageFetching] = [:]
    var joinable: [ImageKey: Int] = [:]
    var lastFetch = 0

    /// The time after a recorded access in which further ones of the image are not recorded.
    static let accessIntervalMilliseconds: Int64 = 60 * 60_000
    /// The number of files that are deleted together, with one sync of the folder.
    static let garbageMax = 64
    /// The greatest number of images that one commit removes.
    private static let evictionsMax = 1_000

    /// Creates a cache over a log's events and files.
    ///
    /// - Parameters:
    ///   - files: the store of images' bytes.
    ///   - logFiles: the former store of images' bytes, if it is another one.
    init(_ store: EventStore, _ files: FileStore, before logFiles: FileStore? = nil) {
        self.store = store
        self.files = files
        self.logFiles = logFiles
        memory = ImageMemory(ImageCacheLimits())
    }

    nonisolated var view: ImagesView { store.view(ImagesView.self) }

    // MARK: Reading

    /// Returns the bytes of a cached image and counts an access; nil if the image is not cached.
    ///
    /// Bytes from the disk are verified. An image whose file is missing or damaged is recorded as removed.
    /// No failure throws: the result is nil.
    ///
    /// - Complexity: O(log n) from memory; O(bytes) from the disk. An access is recorded, relaxed, if the
    ///   last recorded one is at least an hour old.
    public func image(_ kind: ImageKind, _ id: String) async -> [UInt8]? {
        while let image = view.image(kind, id) {
            if let content = memory.content(of: image.file) {
                await recordAccess(of: image)
                return content
            }
            do {
                let content = try await read(image.file)
                // The image may have ended meanwhile.
                guard view.image(kind, id)?.file == image.file else { continue }
                memory.insert(content, of: image.file)
                await recordAccess(of: image)
                return content
            } catch let error as FileStoreError
                where error.code == .missing || error.code == .damaged
            {
                await clearIfFolderIsMissing()
                guard view.image(kind, id)?.lwwTimestamp == image.lwwTimestamp else { continue }
                // An image whose LWW timestamp no removal can exceed remains in the view.
                guard (try? await remove(image, .invalid)) != nil,
                    view.image(kind, id)?.lwwTimestamp != image.lwwTimestamp
                else { return nil }
            } catch {
                // A later read may succeed.
                return nil
            }
        }
        return nil
    }

    /// Reads and verifies the content of a file. A file that is still in the log's folder is moved to the
    /// store of images.
    private func read(_ file: FileID) async throws -> [UInt8] {
        do { return try await files.read(file) } catch let error as FileStoreError {
            guard error.code == .missing, let logFiles else { throw error }
            let content = try await logFiles.read(file)
            // Without space in the other store the file stays.
            if (try? await files.storeRetained(content)) != nil {
                await files.release([file])
                _ = try? await logFiles.collect(only: [file])
            }
            return content
        }
    }

    /// Returns the path of an image's file, for an image view. Neither its existence nor its content is
    /// checked; `image(_:_:)` checks both.
    public nonisolated func path(of image: StoredImage) -> String {
        if let logFiles, !files.contains(image.file), logFiles.contains(image.file) {
            return logFiles.path(of: image.file)
        }
        return files.path(of: image.file)
    }

    /// Records that all images are removed if the system has deleted the cache folder, unless some are still
    /// stored in the log's folder. O(1); O(files in the log's folder) if the cache folder is missing.
    func clearIfFolderIsMissing() async {
        let view = view
        guard let logFiles, ImageKind.allCases.contains(where: { view.size(of: $0).images > 0 }),
            await files.isFolderMissing,
            await !logFiles.ids().contains(where: view.refers), await files.isFolderMissing
        else { return }
        // If this cannot be recorded, each read finds its image missing.
        _ = try? await clearAll()
    }

    /// Moves the image to the end of the LRU order, and records the access if one is due.
    private func recordAccess(of image: StoredImage) async {
        let key = ImageKey(image.kind, image.id)
        let time = await store.now
        loadOrder(image.kind, at: time)
        orders[image.kind]?.use(key.id)
        if let bound = view.renewalBound(of: image) {
            // Cached again, the image is above the floors of the tables for longer.
            try? await store.write { transaction in
                let view = transaction.view(ImagesView.self)
                guard view.image(image.kind, image.id)?.lwwTimestamp == image.lwwTimestamp else {
                    return
                }
                try transaction.append(
                    ImageCached(
                        kind: image.kind, id: image.id, file: image.file, size: image.size),
                    replacing: max(image.lwwTimestamp, bound))
            }
            return
        }
        let last = view.image(image.kind, image.id)?.lastAccessedAt ?? image.lastAccessedAt
        guard abs(time - last.milliseconds) >= Self.accessIntervalMilliseconds,
            let access = view.accessTimestamp(image.kind, image.id)
        else { return }
        // If the clock was ahead at the last access, so is the time of the event that replaces it.
        let wasAhead = access.time.milliseconds >= time
        _ = try? await store.append(
            ImageAccessed(
                kind: image.kind, id: image.id,
                accessedAt: wasAhead ? ZonedTime(Timestamp(milliseconds: time)) : nil),
            replacing: access, durability: .relaxed)
    }

    /// The time after which a last access shows that the clock was ahead.
    private static func aheadTime(at now: Int64) -> Timestamp {
        Timestamp(milliseconds: now + accessIntervalMilliseconds)
    }

    // MARK: Storing

    /// Stores an image and replaces the one with the same kind and id. If the kind then exceeds its limit,
    /// the same commit removes the least recently used images. With a limit of 0 nothing is stored. Durable
    /// on return.
    ///
    /// - Throws: `EventError` for an id that is empty or contains U+0000, and for content that is empty or a web
    ///   page; `FileStoreError`: `tooLarge`, `noSpace`, `io`; `LogError` as `EventStore.append`. The image is not stored then;
    ///   images above a limit may have been removed.
    /// - Complexity: O(bytes + log n).
    public func store(_ content: [UInt8], _ kind: ImageKind, _ id: String) async throws {
        try await store(content, kind, id) { _ in true }
    }

    /// Stores an image like the public method, if `isWanted` is true of the view.
    func store(
        _ content: [UInt8], _ kind: ImageKind, _ id: String,
        if isWanted: @escaping @Sendable (ImagesView) -> Bool
    ) async throws {
        try ImageCached.require(id, "id of the image")
        let limit = limits[kind]
        if let fault = WebPage.fault(of: content) {
            throw EventError(.invalidData, "the content of the image \(fault)")
        }
        guard limit > 0, isWanted(view) else { return }
        await clearIfFolderIsMissing()
        // The limit may have been greater in an earlier process.
        try await evict(kind, to: limit)
        storesInProgress += 1
        defer { storesInProgress -= 1 }
        let file = try await files.storeRetained(content)
        do {
            try await files.requireRetained([file])
            let candidates = leastRecentlyUsed(kind, storesInProgress + 16, at: await store.now)
            let ended = try await store.write { transaction -> [StoredImage]? in
                let view = transaction.view(ImagesView.self)
                guard isWanted(view) else { return nil }
                let old = view.image(kind, id)
                let images = view.size(of: kind).images + (old == nil ? 1 : 0)
                var ended = try Self.evict(
                    images - limit, kind, candidates, except: EntityID(id), in: &transaction)
                try transaction.append(
                    ImageCached(kind: kind, id: id, file: file, size: content.count),
                    replacing: view.lwwTimestamp(kind, EntityID(id)))
                if let old, old.file != file { ended.append(old) }
                return ended
            }
            await files.release([file])
            guard let ended else {
                await discard([file])
                return
            }
            memory.insert(content, of: file)
            orders[kind]?.use(EntityID(id))
            await deleteEnded(ended, except: EntityID(id))
            await collectIfDue()
        } catch {
            await files.release([file])
            await discard([file], atOnce: true)
            throw error
        }
    }

    // MARK: Removing

    /// Removes an image. Other data are not changed. Durable on return.
    ///
    /// - Returns: true if the image was cached.
    /// - Throws: `LogError` as `EventStore.append`, but on a full disk the log's reserved space is used.
    @discardableResult
    public func remove(_ kind: ImageKind, _ id: String) async throws -> Bool {
        guard let image = view.image(kind, id) else { return false }
        return try await remove(image, .user)
    }

    private func remove(_ image: StoredImage, _ reason: ImageRemoved.Reason) async throws -> Bool {
        let removed = try await store.write(drawingOnReserve: true) { transaction in
            let view = transaction.view(ImagesView.self)
            guard let current = view.image(image.kind, image.id),
                reason == .user || current.lwwTimestamp == image.lwwTimestamp
            else { return nil as StoredImage? }
            try Self.remove(current, reason, in: &transaction)
            return current
        }
        guard let removed else { return false }
        memory.remove(removed.file)
        orders[removed.kind]?.remove(EntityID(removed.id))
        await discard([removed.file], atOnce: true)
        return true
    }

    /// Removes all images of some kinds. Synchronised data are not changed: assets, albums, outbox.
    /// Durable on return.
    ///
    /// - Returns: the files and bytes that were deleted from the disk.
    /// - Throws: `LogError` as `EventStore.append`, but on a full disk the log's reserved space is used;
    ///   `FileStoreError` if a file cannot be deleted, which a later collection repeats.
    /// - Complexity: O(images + files).
    @discardableResult
    public func clear(_ kinds: Set<ImageKind>) async throws -> FileCollection {
        try await store.write(drawingOnReserve: true) { transaction in
            let view = transaction.view(ImagesView.self)
            let kinds = kinds.filter { view.size(of: $0).images > 0 }.sorted()
            guard !kinds.isEmpty else { return }
            try transaction.append(
                ImagesCleared(kinds: kinds), replacing: kinds.compactMap(view.newest).max())
        }
        for kind in kinds { orders[kind] = nil }
        let view = view
        memory.retain(where: view.refers)
        garbage = []
        var collection = try await files.collect()
        if let logCollection = try await logFiles?.collect() {
            collection.files += logCollection.files
            collection.bytes += logCollection.bytes
        }
        return collection
    }

    /// Removes all images: `clear` of all kinds.
    @discardableResult
    public func clearAll() async throws -> FileCollection {
        try await clear(Set(ImageKind.allCases))
    }

    /// Releases the images in memory, but not those on the disk, after a memory warning of the system.
    /// O(images in memory).
    public func releaseMemory() { memory.retain { _ in false } }

    // MARK: Limits

    /// The number of cached images of a kind, and their bytes. O(1).
    public nonisolated func size(of kind: ImageKind) -> ViewQuery<ImageCacheSize> {
        store.query(ImagesView.self) { $0.size(of: kind) }
    }

    /// The number of images in memory, and their bytes. O(1).
    public var memorySize: ImageCacheSize {
        ImageCacheSize(images: memory.count, bytes: memory.bytes)
    }

    /// Sets the limits for the rest of the process, and removes the images above them, the least recently
    /// used first. The removals are durable on return.
    ///
    /// A limit that the user changes in the settings takes effect when the next image of its kind is
    /// stored; a call with nil applies it at once.
    ///
    /// - Parameter limits: nil for those of the settings.
    /// - Throws: `EventError` (`refused`) for a negative limit; the old limits then remain. `LogError` as
    ///   `EventStore.append`; the new limits then apply, and the images above them are removed when the
    ///   next image of their kind is stored.
    /// - Complexity: O(removed images · log n).
    public func setLimits(_ limits: ImageCacheLimits?) async throws {
        try limits?.check()
        ownLimits = limits
        let limits = self.limits
        memory.setLimits(limits)
        for kind in ImageKind.allCases { try await evict(kind, to: limits[kind]) }
    }

    private func evict(_ kind: ImageKind, to limit: Int) async throws {
        var previousCount = Int.max
        while true {
            let images = view.size(of: kind).images
            // Images whose LWW timestamps no removal can exceed remain, so the loop must end without them.
            guard images > limit, images < previousCount else { return }
            previousCount = images
            let excess = min(images - limit, Self.evictionsMax)
            let candidates = leastRecentlyUsed(kind, excess, at: await store.now)
            let ended = try await store.write(drawingOnReserve: true) { transaction in
                let images = transaction.view(ImagesView.self).size(of: kind).images
                return try Self.evict(
                    images - limit, kind, candidates, except: nil, in: &transaction)
            }
            guard !ended.isEmpty else { return }
            await deleteEnded(ended, except: nil)
        }
    }

    /// Removes images above the limit.
    ///
    /// - Parameters:
    ///   - excess: the number of images to remove.
    ///   - candidates: the images to remove first; if they are too few, the view's order decides.
    private static func evict(
        _ excess: Int, _ kind: ImageKind, _ candidates: [EntityID], except id: EntityID?,
        in transaction: inout EventStore.Transaction
    ) throws -> [StoredImage] {
        guard excess > 0 else { return [] }
        let view = transaction.view(ImagesView.self)
        var ended: [StoredImage] = []
        var victims: Set<EntityID> = []
        // The size of the commit is bounded; this is an upper bound of the events' bytes.
        var bytes = 0
        func isFull() -> Bool {
            ended.count == min(excess, evictionsMax) || bytes > 1_048_576
        }
        func evict(_ image: StoredImage) throws {
            let victim = EntityID(image.id)
            guard victim != id, victims.insert(victim).inserted else { return }
            try remove(image, .limit, in: &transaction)
            ended.append(image)
            bytes += 512 + 12 * image.id.utf8.count
        }
        for candidate in candidates where !isFull() {
            if let image = view.image(kind, candidate.string) { try evict(image) }
        }
        if !isFull() {
            let time = aheadTime(at: transaction.now.milliseconds)
            for image in view.evictionOrder(kind, accessedAfter: time) {
                guard !isFull() else { break }
                try evict(image)
            }
        }
        return ended
    }

    private static func remove(
        _ image: StoredImage, _ reason: ImageRemoved.Reason,
        in transaction: inout EventStore.Transaction
    ) throws {
        try transaction.append(
            ImageRemoved(kind: image.kind, id: image.id, reason: reason),
            replacing: transaction.view(ImagesView.self).lwwTimestamp(
                image.kind, EntityID(image.id)))
    }

    /// Removes ended images from the LRU order and deletes their files, in groups.
    private func deleteEnded(_ ended: [StoredImage], except id: EntityID?) async {
        for image in ended where EntityID(image.id) != id {
            orders[image.kind]?.remove(EntityID(image.id))
        }
        await discard(ended.map(\.file))
    }

    // MARK: Order of use

    /// Returns the first images of a kind in the order of eviction. O(`count` · log n), and once O(images)
    /// for each kind.
    private func leastRecentlyUsed(_ kind: ImageKind, _ count: Int, at now: Int64) -> [EntityID] {
        loadOrder(kind, at: now)
        let view = view
        var ids: [EntityID] = []
        // Ended images are removed from the order, so that each is visited once.
        while ids.count < count, let id = orders[kind]?.leastRecent(after: ids.last) {
            if view.image(kind, id.string) != nil {
                ids.append(id)
            } else {
                orders[kind]?.remove(id)
            }
        }
        return ids
    }

    /// Computes the LRU order from the view at first, and drops ended images when they are many.
    private func loadOrder(_ kind: ImageKind, at now: Int64) {
        let view = view
        let images = view.size(of: kind).images
        if let order = orders[kind] {
            guard order.count + storesInProgress >= images else {
                // Another instance has cached images: compute the order again.
                orders[kind] = nil
                return loadOrder(kind, at: now)
            }
            guard order.count > 2 * images + 256 else { return }
            var compacted = LRUOrder<EntityID>()
            for id in order.leastRecentFirst where view.image(kind, id.string) != nil {
                compacted.use(id)
            }
            orders[kind] = compacted
            return
        }
        var order = LRUOrder<EntityID>()
        for image in view.evictionOrder(kind, accessedAfter: Self.aheadTime(at: now)) {
            order.use(EntityID(image.id))
        }
        orders[kind] = order
    }

    // MARK: Files

    /// Deletes all unreferenced files after a number of stores that makes the cost O(1) per store. They
    /// are files of images that an asset or album has ended, that a kill has left, or whose deletion failed.
    private func collectIfDue() async {
        storesBeforeCollection -= 1
        guard storesBeforeCollection <= 0 else { return }
        let view = view
        storesBeforeCollection =
            1_024 + ImageKind.allCases.reduce(0) { $0 + view.size(of: $1).images }
        garbage = []
        _ = try? await files.collect()
        _ = try? await logFiles?.collect()
    }

    /// Deletes unreferenced files, in groups unless `atOnce`.
    private func discard(_ files: [FileID], atOnce: Bool = false) async {
        garbage += files
        guard atOnce || garbage.count >= Self.garbageMax else { return }
        let garbage = garbage
        self.garbage = []
        _ = try? await self.files.collect(only: garbage)
        if let logFiles {
            let logGarbage = garbage.filter(logFiles.contains)
            if !logGarbage.isEmpty { _ = try? await logFiles.collect(only: logGarbage) }
        }
    }
}

/// The key of an image.
struct ImageKey: Hashable, Sendable {
    let kind: ImageKind
    let id: EntityID

    init(_ kind: ImageKind, _ id: String) {
        self.kind = kind
        self.id = EntityID(id)
    }
}
