// The image cache: a memory layer over files, with a limit for each kind. What is cached says
// ImagesView; the bytes lie in the FileStore. Fetching is in ImageCache+Fetch. Spec/model/images.md.

import Daybook

/// Images in memory and on the disk. The least recently used go; what the log says has ended is
/// found no more from then on, in both layers.
///
/// ```swift
/// let bytes = try await store.images.image(.thumbnail, asset.id) {
///     try await server.thumbnail(of: asset.id)
/// }
/// ```
///
/// It is a cache: what is missing or damaged is fetched anew, and a full disk is no obstacle to
/// reading, fetching and clearing. Who needs to know the order of use exactly uses one instance for
/// a log: that of its `OfflineStore`.
public actor ImageCache {
    let store: EventStore
    /// The bytes of the images.
    nonisolated let files: FileStore
    /// The files beside the log, where the bytes of images lay before the app named a cache folder;
    /// nil where they still do.
    private nonisolated let logFiles: FileStore?
    /// What the app has said; nil follows the settings.
    private var ownLimits: ImageCacheLimits?
    /// The present limits: those of the settings in this store, unless the app has said others.
    public var limits: ImageCacheLimits {
        ownLimits ?? ImageCacheLimits(store.view(SettingsView.self))
    }
    private var memory: ImageMemory
    /// By kind: in which order images were used, as soon as anybody has to know.
    private var orders: [ImageKind: UseOrder<EntityID>] = [:]
    /// Files that no image names any more, to be deleted together.
    private var garbage: [FileID] = []
    /// How many more are stored before all files are collected: at first one, since the process
    /// before may have been killed with work left.
    private var storesBeforeCollection = 1
    /// How many are being stored.
    private var storing = 0
    /// What is being fetched, by number; and which of them newcomers may join.
    var fetches: [Int: ImageFetching] = [:]
    var joinable: [ImageKey: Int] = [:]
    var lastFetch = 0

    /// How long an access counts: looking at an image more often records nothing.
    static let accessIntervalMilliseconds: Int64 = 60 * 60_000
    /// How many files are deleted together, so that it costs one sync of the folder.
    static let garbageMax = 64
    /// How many images are removed in one commit at most.
    private static let evictionsMax = 1_000

    /// A cache over a log's events and files.
    ///
    /// - Parameters:
    ///   - files: where the bytes of images lie.
    ///   - logFiles: where they lay before, if that is another place.
    init(_ store: EventStore, _ files: FileStore, before logFiles: FileStore? = nil) {
        self.store = store
        self.files = files
        self.logFiles = logFiles
        memory = ImageMemory(ImageCacheLimits())
    }

    nonisolated var view: ImagesView { store.view(ImagesView.self) }

    // MARK: Looking

    /// The bytes of a cached image, which counts as an access; nil if it is not cached.
    ///
    /// From the disk they are checked. An image whose file is missing or damaged is recorded as
    /// removed, and is not cached any more. Nothing that goes wrong here is an error: the image is
    /// just not there.
    ///
    /// - Complexity: O(log n) from memory; O(bytes) from the disk. An access is recorded, relaxed,
    ///   if the last one is an hour ago.
    public func image(_ kind: ImageKind, _ id: String) async -> [UInt8]? {
        while let image = view.image(kind, id) {
            if let content = memory.content(of: image.file) {
                await use(image)
                return content
            }
            do {
                let content = try await read(image.file)
                // It may have ended meanwhile.
                guard view.image(kind, id)?.file == image.file else { continue }
                memory.add(content, of: image.file)
                await use(image)
                return content
            } catch let error as FileStoreError
                where error.code == .missing || error.code == .damaged
            {
                await clearIfFolderIsMissing()
                guard view.image(kind, id)?.stamp == image.stamp else { continue }
                // One that no removal can pass stays as it is.
                guard (try? await remove(image, .invalid)) != nil,
                    view.image(kind, id)?.stamp != image.stamp
                else { return nil }
            } catch {
                // Another time it may be read.
                return nil
            }
        }
        return nil
    }

    /// The content of a file, checked. One that lies beside the log still moves to where images
    /// belong.
    private func read(_ file: FileID) async throws -> [UInt8] {
        do { return try await files.read(file) } catch let error as FileStoreError {
            guard error.code == .missing, let logFiles else { throw error }
            let content = try await logFiles.read(file)
            // Where there is no room for it, it stays.
            if (try? await files.add(content)) != nil {
                await files.release([file])
                _ = try? await logFiles.collect(only: [file])
            }
            return content
        }
    }

    /// The path of an image's file, for an image view. Neither its existence nor its content is checked;
    /// `image(_:_:)` checks both.
    public nonisolated func path(of image: StoredImage) -> String {
        if let logFiles, !files.contains(image.file), logFiles.contains(image.file) {
            return logFiles.path(of: image.file)
        }
        return files.path(of: image.file)
    }

    /// Records once that no image is there any more if the system has deleted the cache folder;
    /// images that lie beside the log still are there. O(1), and O(files beside the log) where it
    /// is missing.
    func clearIfFolderIsMissing() async {
        let view = view
        guard let logFiles, ImageKind.allCases.contains(where: { view.size(of: $0).images > 0 }),
            await files.isFolderMissing,
            await !logFiles.ids().contains(where: view.refers), await files.isFolderMissing
        else { return }
        // Where it cannot be recorded, each image is found missing by itself.
        _ = try? await clearAll()
    }

    /// Counts an access.
    private func use(_ image: StoredImage) async {
        let key = ImageKey(image.kind, image.id)
        loadOrder(image.kind)
        orders[image.kind]?.use(key.id)
        if let bound = view.fading(image) {
            // Cached anew it is among the newer ones.
            try? await store.write { transaction in
                let view = transaction.view(ImagesView.self)
                guard view.image(image.kind, image.id)?.stamp == image.stamp else { return }
                try transaction.append(
                    ImageCached(
                        kind: image.kind, id: image.id, file: image.file, size: image.size),
                    replacing: max(image.stamp, bound))
            }
            return
        }
        let time = await store.now
        let last = view.image(image.kind, image.id)?.lastAccessedAt ?? image.lastAccessedAt
        guard time - last.milliseconds >= Self.accessIntervalMilliseconds else { return }
        _ = try? await store.append(
            ImageAccessed(kind: image.kind, id: image.id), durability: .relaxed)
    }

    // MARK: Storing

    /// Stores an image in place of the one with the same kind and id. Where there are more than the
    /// limit of the kind says, the least recently used go in the same commit. With a limit of 0
    /// nothing is stored. Durable on return.
    ///
    /// - Throws: `EventError` for an id that is empty or contains U+0000; `FileStoreError`:
    ///   `tooLarge`, `noSpace`, `io`; `LogError` as `EventStore.append`. It is not stored then; images
    ///   that were above a limit may have gone.
    /// - Complexity: O(bytes + log n).
    public func store(_ content: [UInt8], _ kind: ImageKind, _ id: String) async throws {
        try await store(content, kind, id) { _ in true }
    }

    /// As the public one, unless something has changed in the view.
    func store(
        _ content: [UInt8], _ kind: ImageKind, _ id: String,
        if isWanted: @escaping @Sendable (ImagesView) -> Bool
    ) async throws {
        try ImageCached.require(id, "id of the image")
        let limit = limits[kind]
        guard limit > 0, isWanted(view) else { return }
        await clearIfFolderIsMissing()
        // It may have been greater in the process before.
        try await evict(kind, to: limit)
        storing += 1
        defer { storing -= 1 }
        let file = try await files.add(content)
        do {
            try await files.requireHeld([file])
            let candidates = leastRecentlyUsed(kind, storing + 16)
            let ended = try await store.write { transaction -> [StoredImage]? in
                let view = transaction.view(ImagesView.self)
                guard isWanted(view) else { return nil }
                let old = view.image(kind, id)
                let images = view.size(of: kind).images + (old == nil ? 1 : 0)
                var ended = try Self.evict(
                    images - limit, kind, candidates, but: EntityID(id), in: &transaction)
                try transaction.append(
                    ImageCached(kind: kind, id: id, file: file, size: content.count),
                    replacing: view.stamp(kind, EntityID(id)))
                if let old, old.file != file { ended.append(old) }
                return ended
            }
            await files.release([file])
            guard let ended else {
                await discard([file])
                return
            }
            memory.add(content, of: file)
            orders[kind]?.use(EntityID(id))
            await forget(ended, but: EntityID(id))
            await collectIfDue()
        } catch {
            await files.release([file])
            await discard([file], atOnce: true)
            throw error
        }
    }

    // MARK: Removing

    /// Removes an image. The log and other data stay as they are. Durable on return.
    ///
    /// - Returns: whether it was there.
    /// - Throws: `LogError` as `EventStore.append`, but on a full disk it takes the room that the
    ///   log keeps aside.
    @discardableResult
    public func remove(_ kind: ImageKind, _ id: String) async throws -> Bool {
        guard let image = view.image(kind, id) else { return false }
        return try await remove(image, .user)
    }

    private func remove(_ image: StoredImage, _ reason: ImageRemoved.Reason) async throws -> Bool {
        let removed = try await store.write(drawingOnReserve: true) { transaction in
            let view = transaction.view(ImagesView.self)
            guard let present = view.image(image.kind, image.id),
                reason == .user || present.stamp == image.stamp
            else { return nil as StoredImage? }
            try Self.remove(present, reason, in: &transaction)
            return present
        }
        guard let removed else { return false }
        memory.remove(removed.file)
        orders[removed.kind]?.remove(EntityID(removed.id))
        await discard([removed.file], atOnce: true)
        return true
    }

    /// Removes all images of some kinds. Synchronised data are not touched: not the assets, the
    /// albums nor what waits to be shipped. Durable on return.
    ///
    /// - Returns: how much went from the disk.
    /// - Throws: `LogError` as `EventStore.append`, but on a full disk it takes the room that the
    ///   log keeps aside; `FileStoreError` where a file could not be deleted: then it goes later.
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
        memory.keep(view.refers)
        garbage = []
        var collection = try await files.collect()
        if let before = try await logFiles?.collect() {
            collection.files += before.files
            collection.bytes += before.bytes
        }
        return collection
    }

    /// Removes all images: `clear` of all kinds.
    @discardableResult
    public func clearAll() async throws -> FileCollection {
        try await clear(Set(ImageKind.allCases))
    }

    /// Forgets what is in memory and not what is on the disk: for when the system wants memory
    /// back. O(images in memory).
    public func releaseMemory() { memory.keep { _ in false } }

    // MARK: Limits

    /// How many images of a kind are cached, and their bytes. O(1).
    public nonisolated func size(of kind: ImageKind) -> ViewQuery<ImageCacheSize> {
        store.query(ImagesView.self) { $0.size(of: kind) }
    }

    /// How much is in memory. O(1).
    public var memorySize: ImageCacheSize {
        ImageCacheSize(images: memory.count, bytes: memory.bytes)
    }

    /// Says what the limits are from now on, and lets go what is too much, the least recently used
    /// first. Durable on return. It lasts as long as the process.
    ///
    /// A limit that the user changes in the settings counts when the next image of its kind is
    /// stored; call this with nil to let it count at once.
    ///
    /// - Parameter limits: nil for those of the settings.
    /// - Throws: `EventError` (`refused`) for a negative limit; the old ones then hold. `LogError` as
    ///   `EventStore.append`; the new limits hold all the same, and what is too much goes when the
    ///   next image of its kind is stored.
    /// - Complexity: O(what goes · log n).
    public func setLimits(_ limits: ImageCacheLimits?) async throws {
        try limits?.check()
        ownLimits = limits
        let limits = self.limits
        memory.change(to: limits)
        for kind in ImageKind.allCases { try await evict(kind, to: limits[kind]) }
    }

    private func evict(_ kind: ImageKind, to limit: Int) async throws {
        var before = Int.max
        while true {
            let images = view.size(of: kind).images
            // What no removal can pass stays.
            guard images > limit, images < before else { return }
            before = images
            let excess = min(images - limit, Self.evictionsMax)
            let candidates = leastRecentlyUsed(kind, excess)
            let ended = try await store.write(drawingOnReserve: true) { transaction in
                let images = transaction.view(ImagesView.self).size(of: kind).images
                return try Self.evict(
                    images - limit, kind, candidates, but: nil, in: &transaction)
            }
            guard !ended.isEmpty else { return }
            await forget(ended, but: nil)
        }
    }

    /// Removes images for lack of room.
    ///
    /// - Parameters:
    ///   - excess: how many have to go.
    ///   - candidates: which go first; if there are not enough, the view says which others do.
    private static func evict(
        _ excess: Int, _ kind: ImageKind, _ candidates: [EntityID], but id: EntityID?,
        in transaction: inout EventStore.Transaction
    ) throws -> [StoredImage] {
        guard excess > 0 else { return [] }
        let view = transaction.view(ImagesView.self)
        var ended: [StoredImage] = []
        var taken: Set<EntityID> = []
        // A commit has room for so many bytes.
        var bytes = 0
        func isFull() -> Bool {
            ended.count == min(excess, evictionsMax) || bytes > 1_048_576
        }
        func take(_ image: StoredImage) throws {
            let victim = EntityID(image.id)
            guard victim != id, taken.insert(victim).inserted else { return }
            try remove(image, .limit, in: &transaction)
            ended.append(image)
            bytes += 512 + 12 * image.id.utf8.count
        }
        for candidate in candidates where !isFull() {
            if let image = view.image(kind, candidate.string) { try take(image) }
        }
        if !isFull() {
            for image in view.leastRecentlyUsed(kind) {
                guard !isFull() else { break }
                try take(image)
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
            replacing: transaction.view(ImagesView.self).stamp(image.kind, EntityID(image.id)))
    }

    /// What has ended leaves the order, and sooner or later the disk.
    private func forget(_ ended: [StoredImage], but id: EntityID?) async {
        for image in ended where EntityID(image.id) != id {
            orders[image.kind]?.remove(EntityID(image.id))
        }
        await discard(ended.map(\.file))
    }

    // MARK: Order of use

    /// The first images of a kind that would go if room were needed. O(`count` · log n), and once
    /// O(images) for each kind.
    private func leastRecentlyUsed(_ kind: ImageKind, _ count: Int) -> [EntityID] {
        loadOrder(kind)
        let view = view
        var found: [EntityID] = []
        // What has ended is met once.
        while found.count < count, let id = orders[kind]?.leastRecent(after: found.last) {
            if view.image(kind, id.string) != nil {
                found.append(id)
            } else {
                orders[kind]?.remove(id)
            }
        }
        return found
    }

    /// Takes the order over from the view, at first and where it holds much that has ended.
    private func loadOrder(_ kind: ImageKind) {
        let view = view
        let images = view.size(of: kind).images
        if let order = orders[kind] {
            guard order.count + storing >= images else {
                // Somebody else has cached some: begin anew.
                orders[kind] = nil
                return loadOrder(kind)
            }
            guard order.count > 2 * images + 256 else { return }
            var rest = UseOrder<EntityID>()
            for id in order.leastRecentFirst where view.image(kind, id.string) != nil {
                rest.use(id)
            }
            orders[kind] = rest
            return
        }
        var order = UseOrder<EntityID>()
        for image in view.leastRecentlyUsed(kind) { order.use(EntityID(image.id)) }
        orders[kind] = order
    }

    // MARK: Files

    /// After an image was stored: deletes all files that no view names, seldom enough that it costs
    /// O(1) an image. What an asset or an album has ended, what a kill has left and what could not
    /// be deleted goes so.
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

    /// Deletes files that no view names, many at a time.
    private func discard(_ files: [FileID], atOnce: Bool = false) async {
        garbage += files
        guard atOnce || garbage.count >= Self.garbageMax else { return }
        let garbage = garbage
        self.garbage = []
        _ = try? await self.files.collect(only: garbage)
        if let logFiles {
            let beside = garbage.filter(logFiles.contains)
            if !beside.isEmpty { _ = try? await logFiles.collect(only: beside) }
        }
    }
}

/// What an image is known by.
struct ImageKey: Hashable, Sendable {
    let kind: ImageKind
    let id: EntityID

    init(_ kind: ImageKind, _ id: String) {
        self.kind = kind
        self.id = EntityID(id)
    }
}
