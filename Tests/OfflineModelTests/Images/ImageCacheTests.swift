// The image cache: two layers, limits, single flight, and failures. Spec/model/images.md.

import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

/// A store in memory, and a clock that the test sets.
private struct Bench {
    let files = InMemoryFileSystem()
    let clock: VirtualClock
    let store: OfflineStore

    init(thumbnails: Int = 3, previews: Int = 2) async throws {
        let clock = VirtualClock(milliseconds: 1_771_756_200_000)
        self.clock = clock
        store = try await Self.open(files, clock)
        try await store.images.setLimits(Self.limits(thumbnails, previews))
    }

    static func limits(_ thumbnails: Int, _ previews: Int = 2) -> ImageCacheLimits {
        var limits = ImageCacheLimits()
        limits.thumbnails = thumbnails
        limits.previews = previews
        limits.albumThumbnails = 2
        limits.memoryImages = 3
        limits.memoryBytes = 100
        return limits
    }

    static func open(_ files: InMemoryFileSystem, _ clock: VirtualClock) async throws
        -> OfflineStore
    {
        try await OfflineStore.open(
            at: URL(filePath: "/log"), compaction: nil,
            environment: LogEnvironment(
                fileSystem: files, now: { clock.milliseconds }, sleep: noTimers))
    }

    var view: ImagesView { store.view(ImagesView.self) }
    var names: Set<String> { Set((try? files.list("/log/files")) ?? []) }

    func ids(_ kind: ImageKind = .thumbnail) -> Set<String> {
        Set(view.leastRecentlyUsed(kind).map(\.id))
    }

    /// The number of events of a type.
    func count(_ type: String) throws -> Int {
        var count = 0
        try LogReader("/log", fileSystem: files).forEachLine { _, line in
            if try LineDecoder.decode(line).draft.type == type { count += 1 }
            return true
        }
        return count
    }
}

/// A gate: callers wait until it is opened; it counts them.
private actor Gate {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private(set) var arrivals = 0

    func pass() async {
        arrivals += 1
        guard !isOpen else { return }
        await withCheckedContinuation { waiting.append($0) }
    }

    func open() {
        isOpen = true
        for one in waiting { one.resume() }
        waiting = []
    }
}

private struct NoNetwork: Error {}

@Suite struct ImageCacheTests {
    @Test(.verifies("IMG-1", "IMG-7", "IMG-8"))
    func `a stored image is found, from memory, from the disk and after reopening`() async throws {
        let bench = try await Bench()
        let images = bench.store.images
        #expect(await images.image(.thumbnail, "a") == nil)
        try await images.store([1, 2], .thumbnail, "a")
        try await images.store([3], .preview, "a")
        #expect(await images.image(.thumbnail, "a") == [1, 2])
        #expect(await images.image(.preview, "a") == [3])
        #expect(await images.memorySize == ImageCacheSize(images: 2, bytes: 3))
        await images.releaseMemory()
        #expect(await images.memorySize == ImageCacheSize(images: 0, bytes: 0))
        #expect(await images.image(.thumbnail, "a") == [1, 2])
        #expect(images.size(of: .thumbnail).current == ImageCacheSize(images: 1, bytes: 2))
        try await bench.store.close()
        #expect(await images.memorySize.images == 0)
        let again = try await Bench.open(bench.files, bench.clock)
        #expect(await again.images.image(.preview, "a") == [3])
        try await again.close()
    }

    @Test(.verifies("IMG-8"))
    func `memory is limited to a number of bytes and images, the last used`() async throws {
        let bench = try await Bench(thumbnails: 20)
        let images = bench.store.images
        for byte in UInt8(0)..<5 { try await images.store([byte], .thumbnail, "\(byte)") }
        #expect(await images.memorySize == ImageCacheSize(images: 3, bytes: 3))
        try await images.store([UInt8](repeating: 7, count: 99), .thumbnail, "big")
        #expect(await images.memorySize == ImageCacheSize(images: 2, bytes: 100))
        // Too large for memory, but stored on the disk.
        try await images.store([UInt8](repeating: 8, count: 101), .thumbnail, "bigger")
        #expect(await images.memorySize.bytes == 100)
        #expect(await images.image(.thumbnail, "bigger")?.count == 101)
        #expect(await images.image(.thumbnail, "0") == [0])
        try await bench.store.close()
    }

    @Test(.verifies("IMG-6", "IMG-9"))
    func `the least recently used image is removed in the commit of the new one`() async throws {
        let bench = try await Bench()
        let images = bench.store.images
        for id in ["a", "b", "c"] { try await images.store(Array(id.utf8), .thumbnail, id) }
        try await images.store([1], .preview, "a")
        _ = await images.image(.thumbnail, "a")
        let before = bench.files.usedBytes
        try await images.store([4], .thumbnail, "d")
        #expect(bench.ids() == ["a", "c", "d"])
        #expect(bench.ids(.preview) == ["a"])
        #expect(bench.files.usedBytes > before)
        // A replacement evicts no image.
        try await images.store([5], .thumbnail, "d")
        #expect(bench.ids() == ["a", "c", "d"])
        #expect(try bench.count(ImageRemoved.type) == 1)
        try await bench.store.close()
    }

    @Test(.verifies("IMG-17"))
    func `processes that store little and are killed leave no files behind permanently`()
        async throws
    {
        let (files, clock) = (InMemoryFileSystem(), VirtualClock(milliseconds: 1_771_756_200_000))
        for process in 0..<20 {
            let store = try await Bench.open(files, clock)
            try await store.settings.put(.thumbnailCacheSize, 5)
            for number in 0..<10 {
                try await store.images.store(
                    [UInt8(process), UInt8(number)], .thumbnail, "\(process)-\(number)")
            }
            // A kill: neither the cache nor the store is closed; only the lock is released.
            try await store.events.close()
        }
        #expect(try files.list("/log/files").count <= 16)
    }

    @Test(.verifies("IMG-10"))
    func
        `after removals of a clock that was ahead an image is cached again once, not at each read`()
        async throws
    {
        let (files, clock) = (InMemoryFileSystem(), VirtualClock(milliseconds: 1_771_756_200_000))
        let store = try await Bench.open(files, clock)
        try await store.events.append(
            history: (0..<2_500).map { number in
                try EventDraft(
                    AssetRemoved(assetId: "\(number)"),
                    time: Timestamp(
                        milliseconds: clock.milliseconds + 31_536_000_000 + Int64(number)))
            })
        try await store.images.store([1], .thumbnail, "a")
        for _ in 0..<5 { #expect(await store.images.image(.thumbnail, "a") == [1]) }
        // The removals, the image, and the image once more.
        #expect(await store.events.lastDurable.rawValue == 2_502)
        try await store.close()
    }

    @Test(.verifies("IMG-6"))
    func `the default limits are those of the settings`() async throws {
        let store = try await OfflineStore.inMemory()
        #expect(await store.images.limits == ImageCacheLimits())
        try await store.settings.put(.thumbnailCacheSize, 2)
        try await store.settings.put(.imageCacheSize, 1)
        for id in ["a", "b", "c"] {
            for kind in ImageKind.allCases { try await store.images.store([1], kind, id) }
        }
        let sizes = { store.view(ImagesView.self).size(of: $0).images } as (ImageKind) -> Int
        #expect(ImageKind.allCases.map(sizes) == [2, 1, 3])
        // Takes effect with the next image of its kind, or at once on request.
        try await store.settings.put(.thumbnailCacheSize, 1)
        try await store.settings.put(.albumThumbnailCacheSize, 2)
        try await store.images.store([1], .thumbnail, "d")
        #expect(ImageKind.allCases.map(sizes) == [1, 1, 3])
        try await store.images.setLimits(nil)
        #expect(ImageKind.allCases.map(sizes) == [1, 1, 2])
        try await store.close()
    }

    @Test(.verifies("IMG-6"))
    func `reduced limits remove images, and 0 keeps none`() async throws {
        let bench = try await Bench(thumbnails: 5_000)
        let images = bench.store.images
        // More than one commit removes.
        try await bench.store.files.store([1]) { file in
            try await bench.store.events.append(
                contentsOf: (0..<2_500).map {
                    try EventDraft(
                        ImageCached(kind: .thumbnail, id: "\($0)", file: file, size: 1))
                })
        }
        try await images.setLimits(Bench.limits(2))
        #expect(bench.ids() == ["2498", "2499"])
        #expect(await images.image(.thumbnail, "2499") == [1])
        try await images.setLimits(Bench.limits(0))
        #expect(bench.ids() == [])
        try await images.store([1], .thumbnail, "a")
        #expect(bench.ids() == [])
        #expect(try await images.image(.thumbnail, "a") { [9] } == [9])
        // A negative limit is refused; one above the bound counts as the bound.
        for limit in [\ImageCacheLimits.thumbnails, \.previews, \.memoryBytes] {
            var negative = ImageCacheLimits()
            negative[keyPath: limit] = -1
            await #expect(throws: EventError.self) { try await images.setLimits(negative) }
        }
        var limits = ImageCacheLimits()
        (limits.thumbnails, limits.memoryBytes) = (.max, 0)
        #expect(limits[.thumbnail] == 16_384)
        try await images.setLimits(limits)
        try await images.store([1], .thumbnail, "a")
        #expect(await images.image(.thumbnail, "a") == [1])
        #expect(await images.memorySize.images == 0)
        try await bench.store.close()
    }

    @Test(.verifies("IMG-6"))
    func `limits of the settings above the bounds count as the bounds`() async throws {
        let bench = try await Bench()
        let (settings, images) = (bench.store.settings, bench.store.images)
        try await images.setLimits(nil)
        let bounds = [16_384, 2_048, 2_048]
        for excess in [-1, 0, 1, 1_000_000] {
            try await settings.put(.thumbnailCacheSize, bounds[0] + excess)
            try await settings.put(.imageCacheSize, bounds[1] + excess)
            try await settings.put(.albumThumbnailCacheSize, bounds[2] + excess)
            let limits = await images.limits
            let counting = ImageKind.allCases.map { limits[$0] }
            #expect(counting == bounds.map { $0 + min(excess, 0) })
        }
        // Images above the bound are removed, although the setting allows them.
        try await bench.store.files.store([1]) { file in
            try await bench.store.events.append(
                contentsOf: (0..<2_060).map {
                    try EventDraft(ImageCached(kind: .preview, id: "\($0)", file: file, size: 1))
                })
        }
        try await images.setLimits(nil)
        #expect(bench.view.size(of: .preview).images == 2_048)
        // A negative setting counts as none.
        try await settings.put(.imageCacheSize, -1)
        #expect(await images.limits[.preview] == 350)
        try await bench.store.close()
    }

    @Test(.verifies("IMG-7"))
    func `a missing or damaged file is a miss, and is recorded`() async throws {
        let bench = try await Bench()
        let images = bench.store.images
        for (id, damage) in [("a", nil), ("b", [9, 9])] as [(String, [UInt8]?)] {
            let content = Array("content of \(id)".utf8)
            try await images.store(content, .thumbnail, id)
            await images.releaseMemory()
            bench.files["/log/files/\(FileID(of: content))"] = damage
            #expect(await images.image(.thumbnail, id) == nil)
            #expect(bench.view.image(.thumbnail, id) == nil)
            #expect(bench.names.isEmpty)
            // The image can be stored again.
            try await images.store(content, .thumbnail, id)
            await images.releaseMemory()
            #expect(await images.image(.thumbnail, id) == content)
            try await images.remove(.thumbnail, id)
        }
        #expect(try bench.count(ImageRemoved.type) == 4)
        // An image that cannot be read now is a miss, and remains.
        try await images.store([1], .thumbnail, "c")
        await images.releaseMemory()
        bench.files.failing { operation, path in
            operation == "open" && path.contains("/files/")
                ? FileError(.io, operation: operation, path: path, reason: "no") : nil
        }
        #expect(await images.image(.thumbnail, "c") == nil)
        bench.files.failing(nil)
        #expect(await images.image(.thumbnail, "c") == [1])
        try await bench.store.close()
    }

    @Test(.verifies("IMG-3", "IMG-8"))
    func `an event that ends images ends them in memory at once`() async throws {
        let bench = try await Bench()
        let images = bench.store.images
        try await images.store([1], .thumbnail, "a")
        try await images.store([2], .albumThumbnail, "x")
        #expect(await images.image(.thumbnail, "a") == [1])
        try await bench.store.append(AssetRemoved(assetId: "a"))
        #expect(await images.image(.thumbnail, "a") == nil)
        #expect(await images.image(.albumThumbnail, "x") == [2])
        try await bench.store.append(
            AlbumLinked(AlbumLinks(albumId: "x", assetIds: ["a"])), durability: .relaxed)
        #expect(await images.image(.albumThumbnail, "x") == nil)
        try await bench.store.close()
    }

    @Test(.verifies("IMG-10"))
    func `an access is recorded once an hour, and the order in memory is exact`() async throws {
        let bench = try await Bench()
        let images = bench.store.images
        for id in ["a", "b", "c"] { try await images.store(Array(id.utf8), .thumbnail, id) }
        for _ in 0..<5 { _ = await images.image(.thumbnail, "a") }
        bench.clock.advance(by: .minutes(59))
        _ = await images.image(.thumbnail, "a")
        #expect(bench.view.image(.thumbnail, "a").map { $0.lastAccessedAt == $0.cachedAt } == true)
        bench.clock.advance(by: .minutes(61))
        for _ in 0..<5 { _ = await images.image(.thumbnail, "a") }
        #expect(
            bench.view.image(.thumbnail, "a")?.lastAccessedAt.milliseconds
                == bench.clock.milliseconds)
        try await bench.store.events.flush()
        #expect(try bench.count(ImageAccessed.type) == 1)
        _ = await images.image(.thumbnail, "b")
        try await images.store([4], .thumbnail, "d")
        #expect(bench.ids() == ["a", "b", "d"])
        try await bench.store.close()
    }

    @Test(.verifies("IMG-5", "IMG-9", "IMG-10"))
    func `an access while the clock was ahead does not keep an image for ever`() async throws {
        let bench = try await Bench()
        for id in ["a", "b"] { try await bench.store.images.store(Array(id.utf8), .thumbnail, id) }
        bench.clock.advance(by: .days(1_000))
        _ = await bench.store.images.image(.thumbnail, "a")
        bench.clock.advance(by: .days(-999))
        try await bench.store.images.store([3], .thumbnail, "c")
        try await bench.store.close()
        // Each opening begins with the order on record: of three images the one of the wrong clock goes first.
        let store = try await Bench.open(bench.files, bench.clock)
        try await store.images.setLimits(Bench.limits(3))
        try await store.images.store([4], .thumbnail, "d")
        let view = store.view(ImagesView.self)
        #expect(Set(view.leastRecentlyUsed(.thumbnail).map(\.id)) == ["b", "c", "d"])
        try await store.close()
    }

    @Test(.verifies("IMG-10"))
    func `every access after the clock was ahead counts`() async throws {
        let bench = try await Bench()
        bench.clock.advance(by: .days(1_000))
        try await bench.store.images.store([1], .thumbnail, "a")
        bench.clock.advance(by: .days(-1_000))
        try await bench.store.images.store([2], .thumbnail, "b")
        for _ in 0..<2 {
            bench.clock.advance(by: .hours(2))
            _ = await bench.store.images.image(.thumbnail, "a")
            #expect(
                bench.view.image(.thumbnail, "a")?.lastAccessedAt.milliseconds
                    == bench.clock.milliseconds)
        }
        #expect(bench.view.leastRecentlyUsed(.thumbnail).map(\.id) == ["b", "a"])
        let decoded = try ImagesView(encodedState: #require(bench.view.encodedState()))
        #expect(decoded.leastRecentlyUsed(.thumbnail).map(\.id) == ["b", "a"])
        try await bench.store.close()
    }

    @Test(.verifies("IMG-10"))
    func `an access that is not recorded does not delay a later one`() async throws {
        let bench = try await Bench()
        let images = bench.store.images
        try await images.store([1], .thumbnail, "a")
        bench.clock.advance(by: .minutes(59))
        _ = await images.image(.thumbnail, "a")
        #expect(try bench.count(ImageAccessed.type) == 0)
        bench.clock.advance(by: .minutes(1))
        _ = await images.image(.thumbnail, "a")
        #expect(
            bench.view.image(.thumbnail, "a")?.lastAccessedAt.milliseconds
                == bench.clock.milliseconds)
        try await bench.store.close()
    }

    @Test(.verifies("IMG-4", "IMG-10"))
    func `an image that is read is cached again before the floor reaches it`() async throws {
        let bench = try await Bench()
        let images = bench.store.images
        for id in ["a", "b"] { try await images.store(Array(id.utf8), .preview, id) }
        func removed(_ numbers: Range<Int>) async throws {
            for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 1_000) {
                try await bench.store.events.append(
                    contentsOf: (start..<min(start + 1_000, numbers.upperBound)).map {
                        try EventDraft(ImageRemoved(kind: .preview, id: "\($0)", reason: .user))
                    })
            }
        }
        try await removed(0..<3_000)
        _ = await images.image(.preview, "a")
        #expect(try bench.count(ImageCached.type) == 3)
        try await removed(3_000..<4_200)
        #expect(bench.ids(.preview) == ["a"])
        #expect(await images.image(.preview, "a") == Array("a".utf8))
        try await images.store([1], .preview, "b")
        #expect(bench.ids(.preview) == ["a", "b"])
        try await bench.store.close()
    }

    @Test(.verifies("IMG-15"))
    func `clearing removes images and nothing else`() async throws {
        let bench = try await Bench()
        let images = bench.store.images
        try await bench.store.cities.save("lisbon", by: "u")
        try await images.store([1], .thumbnail, "a")
        try await images.store([2], .preview, "a")
        try await images.store([1], .albumThumbnail, "a")
        try await bench.store.append(AlbumStored(album("x")))
        var gone = try await images.clear([.thumbnail])
        // Another image has the same content.
        #expect(gone == FileCollection())
        #expect(bench.ids() == [])
        #expect(bench.ids(.preview) == ["a"])
        #expect(await images.memorySize.images == 2)
        gone = try await images.clearAll()
        #expect(gone.files == 2)
        #expect(gone.bytes == 2)
        #expect(bench.names.isEmpty)
        #expect(await images.memorySize.images == 0)
        #expect(bench.store.view(CitiesView.self).isSaved("lisbon", by: "u"))
        #expect(bench.store.view(Outbox.self).count == 1)
        let last = await bench.store.events.lastDurable
        try await images.clearAll()
        #expect(await bench.store.events.lastDurable == last)
        #expect(try await !images.remove(.thumbnail, "a"))
        try await bench.store.close()
    }

    @Test(.verifies("IMG-11"))
    func `an image cached by a clock that was ahead can be replaced, removed and cleared`()
        async throws
    {
        let bench = try await Bench()
        let images = bench.store.images
        bench.clock.advance(by: .minutes(600))
        for id in ["a", "b", "c"] { try await images.store([1], .thumbnail, id) }
        bench.clock.advance(by: .minutes(-590))
        try await images.store([2], .thumbnail, "a")
        #expect(await images.image(.thumbnail, "a") == [2])
        try await images.remove(.thumbnail, "b")
        #expect(bench.ids() == ["a", "c"])
        try await images.store([3], .thumbnail, "b")
        try await images.store([4], .thumbnail, "d")
        #expect(bench.ids() == ["a", "b", "d"])
        try await images.clearAll()
        #expect(bench.ids() == [])
        try await images.store([5], .thumbnail, "a")
        #expect(bench.ids() == ["a"])
        try await bench.store.close()
    }

    @Test(.verifies("IMG-16"))
    func `on a full disk fetched bytes are returned, reading works and clearing frees space`()
        async throws
    {
        let bench = try await Bench()
        let images = bench.store.images
        try await images.store([UInt8](repeating: 1, count: 10_000), .thumbnail, "a")
        bench.files.setQuota(bench.files.usedBytes)
        let big = [UInt8](repeating: 2, count: 100_000)
        await #expect { try await images.store(big, .thumbnail, "b") } throws: {
            ($0 as? FileStoreError)?.code == .noSpace
        }
        #expect(try await images.image(.thumbnail, "b") { big } == big)
        #expect(bench.ids() == ["a"])
        #expect(bench.names.count == 1)
        #expect(await images.image(.thumbnail, "a")?.count == 10_000)
        #expect(try await images.clearAll().files == 1)
        bench.files.setQuota(nil)
        try await images.store(big, .thumbnail, "b")
        #expect(await images.image(.thumbnail, "b") == big)
        try await bench.store.close()
    }

    @Test(.verifies("IMG-1"))
    func `an invalid id is refused and leaves no file`() async throws {
        let bench = try await Bench()
        await #expect(throws: EventError.self) {
            try await bench.store.images.store([1], .thumbnail, "")
        }
        await #expect(throws: EventError.self) {
            try await bench.store.images.store([1], .thumbnail, "a\0")
        }
        #expect(bench.names.isEmpty)
        try await bench.store.close()
    }

    @Test(.verifies("IMG-17"))
    func `files of ended images are deleted in groups, and no referenced file is`() async throws {
        let bench = try await Bench(thumbnails: 10)
        let images = bench.store.images
        for number in 0..<300 {
            try await images.store(Array("\(number)".utf8), .thumbnail, "\(number)")
            #expect(bench.names.count <= 10 + 64)
        }
        try await bench.store.files.collect()
        #expect(
            bench.names
                == Set(bench.view.leastRecentlyUsed(.thumbnail).map { $0.file.description }))
        #expect(bench.ids() == Set((290..<300).map(String.init)))
        try await bench.store.close()
    }

    private func album(_ id: String) -> Album {
        let time = ZonedTime(Timestamp(milliseconds: 0))
        return Album(id: id, ownerId: "u", name: "", createdAt: time, modifiedAt: time)
    }
}

@Suite struct ImageFetchTests {
    @Test(.verifies("IMG-12"))
    func `an image is fetched once for all waiting callers, stored, and not fetched again`()
        async throws
    {
        let bench = try await Bench()
        let (images, gate) = (bench.store.images, Gate())
        let all = (0..<20).map { _ in
            Task {
                try await images.image(.thumbnail, "a") {
                    await gate.pass()
                    return [1]
                }
            }
        }
        try await eventually("fetches at the gate", is: 1) { await gate.arrivals }
        await gate.open()
        for one in all { #expect(try await one.value == [1]) }
        #expect(await gate.arrivals == 1)
        #expect(bench.ids() == ["a"])
        #expect(try await images.image(.thumbnail, "a") { throw NoNetwork() } == [1])
        try await bench.store.close()
    }

    @Test(.verifies("IMG-12"))
    func `a failed fetch fails for all waiting callers, and the next one fetches again`()
        async throws
    {
        let bench = try await Bench()
        let (images, gate) = (bench.store.images, Gate())
        let all = (0..<5).map { _ in
            Task {
                try await images.image(.thumbnail, "a") {
                    await gate.pass()
                    throw NoNetwork()
                }
            }
        }
        try await eventually("waiting callers", is: 5) { await images.waiterCount }
        await gate.open()
        for one in all { await #expect(throws: NoNetwork.self) { try await one.value } }
        #expect(try await images.image(.thumbnail, "a") { [2] } == [2])
        #expect(await images.waiterCount == 0)
        try await bench.store.close()
    }

    @Test(.verifies("IMG-13"))
    func `a cancelled caller stops waiting, and the others receive the image`() async throws {
        let bench = try await Bench()
        let (images, gate) = (bench.store.images, Gate())
        let all = (0..<3).map { _ in
            Task {
                try await images.image(.thumbnail, "a") {
                    await gate.pass()
                    try Task.checkCancellation()
                    return [1]
                }
            }
        }
        try await eventually("waiting callers", is: 3) { await images.waiterCount }
        all[0].cancel()
        await #expect(throws: CancellationError.self) { try await all[0].value }
        all[1].cancel()
        await #expect(throws: CancellationError.self) { try await all[1].value }
        await gate.open()
        #expect(try await all[2].value == [1])
        #expect(await gate.arrivals == 1)
        try await bench.store.close()
    }

    @Test(.verifies("IMG-13"))
    func `when all callers are cancelled the fetch is cancelled, and the next one fetches again`()
        async throws
    {
        let bench = try await Bench()
        let (images, gate) = (bench.store.images, Gate())
        let wasCancelled = Mutex(false)
        let first = Task {
            try await images.image(.thumbnail, "a") {
                await gate.pass()
                wasCancelled.withLock { $0 = Task.isCancelled }
                try Task.checkCancellation()
                return [1]
            }
        }
        try await eventually("fetches at the gate", is: 1) { await gate.arrivals }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        // The first fetch has not ended, and no caller joins it.
        #expect(try await images.image(.thumbnail, "a") { [2] } == [2])
        await gate.open()
        try await eventually("the fetch is cancelled", is: true) { wasCancelled.withLock { $0 } }
        #expect(await images.image(.thumbnail, "a") == [2])
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await images.image(.thumbnail, "z") { [1] }
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        try await bench.store.close()
    }

    @Test(.verifies("IMG-14"))
    func `a fetch during an album's change is not stored, and later callers fetch again`()
        async throws
    {
        let bench = try await Bench()
        let (images, gate) = (bench.store.images, Gate())
        let old = Task {
            try await images.image(.albumThumbnail, "x") {
                await gate.pass()
                return [1]
            }
        }
        try await eventually("fetches at the gate", is: 1) { await gate.arrivals }
        try await bench.store.append(AlbumUnlinked(AlbumLinks(albumId: "x", assetIds: ["a"])))
        let new = try await images.image(.albumThumbnail, "x") { [2] }
        #expect(new == [2])
        await gate.open()
        #expect(try await old.value == [1])
        #expect(await images.image(.albumThumbnail, "x") == [2])
        #expect(try bench.count(ImageCached.type) == 1)
        try await bench.store.close()
    }

    @Test(.verifies("IMG-9", "IMG-12"))
    func `after concurrent fetches, reads and removals every cached image can be read`()
        async throws
    {
        let bench = try await Bench(thumbnails: 5)
        let images = bench.store.images
        // The cache is already full.
        for number in 0..<13 {
            let id = "\(number)"
            _ = try await images.image(.thumbnail, id) { Array("content of \(id)".utf8) }
        }
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<400 {
                let id = "\(number * 7 % 13)"
                let content = Array("content of \(id)".utf8)
                group.addTask {
                    switch number % 7 {
                    case 0: _ = try? await images.remove(.thumbnail, id)
                    case 1 where number % 35 == 1:
                        _ = try? await bench.store.append(AssetRemoved(assetId: id))
                    case 2:
                        let found = await images.image(.thumbnail, id)
                        #expect(found == nil || found == content)
                    case 3 where number % 21 == 3: await images.releaseMemory()
                    case 4 where number % 35 == 4: _ = try? await images.clearAll()
                    default:
                        let found = try? await images.image(.thumbnail, id) { content }
                        #expect(found == content)
                    }
                }
            }
        }
        #expect(bench.ids().count <= 5)
        #expect(await images.waiterCount == 0)
        await images.releaseMemory()
        for id in bench.ids() {
            #expect(await images.image(.thumbnail, id) == Array("content of \(id)".utf8))
        }
        #expect(try bench.count(ImageRemoved.type) > 0)
        try await bench.store.close()
    }
}

/// Compares the cache with lists of ids.
private struct Machine: StateMachine {
    enum Command {
        case store(ImageKind, String, UInt8)
        case fetch(ImageKind, String, UInt8)
        case look(ImageKind, String)
        case remove(ImageKind, String)
        case clear(ImageKind)
        case limit(Int)
        case releaseMemory
        case assetRemoved(String)
        case albumChanged(String)
        case minutes(Int)
    }

    struct Wrong: Error { var what: String }

    let bench: Bench
    var limits = Bench.limits(3)
    /// Ids with contents, the least recently used first.
    var images: [ImageKind: [(id: String, content: [UInt8])]] = [:]

    func next(_ choices: inout Choices) -> Command {
        let kind = choices.element(of: ImageKind.allCases)
        let id = choices.element(of: ["a", "b", "c", "d", "e", "caf\u{E9}", "cafe\u{301}"])
        return switch choices.int(in: 0...15) {
        case 0...5: .store(kind, id, UInt8(choices.int(in: 0...9)))
        case 6, 7: .fetch(kind, id, UInt8(choices.int(in: 0...9)))
        case 8, 9: .look(kind, id)
        case 10: .remove(kind, id)
        case 11: choices.bool(oneIn: 4) ? .clear(kind) : .look(kind, id)
        case 12: choices.bool(oneIn: 3) ? .limit(choices.int(in: 0...4)) : .releaseMemory
        case 13: .assetRemoved(id)
        case 14: .albumChanged(id)
        default: .minutes(choices.int(in: -30...90))
        }
    }

    private func place(_ kind: ImageKind, _ id: String) -> Int? {
        images[kind]?.firstIndex { $0.id.utf8.elementsEqual(id.utf8) }
    }

    private mutating func remove(_ kind: ImageKind, _ id: String) -> [UInt8]? {
        place(kind, id).flatMap { images[kind]?.remove(at: $0).content }
    }

    private mutating func put(_ kind: ImageKind, _ id: String, _ content: [UInt8]) {
        guard limits[kind] > 0 else { return }
        _ = remove(kind, id)
        images[kind, default: []].append((id, content))
        trim(kind)
    }

    private mutating func trim(_ kind: ImageKind) {
        let excess = max(0, (images[kind] ?? []).count - limits[kind])
        images[kind]?.removeFirst(excess)
    }

    mutating func run(_ command: Command) async throws {
        let bench = bench
        let cache = bench.store.images
        switch command {
        case .store(let kind, let id, let byte):
            try await cache.store([byte], kind, id)
            put(kind, id, [byte])
        case .fetch(let kind, let id, let byte):
            let found = try await cache.image(kind, id) { [byte] }
            let old = remove(kind, id)
            guard found == old ?? [byte] else { throw Wrong(what: "fetched \(found)") }
            put(kind, id, found)
        case .look(let kind, let id):
            let found = await cache.image(kind, id)
            let old = remove(kind, id)
            guard found == old else { throw Wrong(what: "\(found ?? []) and not \(old ?? [])") }
            if let old { put(kind, id, old) }
        case .remove(let kind, let id):
            let was = try await cache.remove(kind, id)
            guard was == (remove(kind, id) != nil) else { throw Wrong(what: "removed \(was)") }
        case .clear(let kind):
            try await cache.clear([kind])
            images[kind] = nil
        case .limit(let limit):
            limits = Bench.limits(limit, 4 - limit)
            try await cache.setLimits(limits)
            for kind in ImageKind.allCases { trim(kind) }
        case .releaseMemory: await cache.releaseMemory()
        case .assetRemoved(let id):
            try await bench.store.events.write { transaction in
                try transaction.append(
                    AssetRemoved(assetId: id), replacing: bench.view.newest(ofAsset: id))
            }
            for kind in [ImageKind.thumbnail, .preview] { _ = remove(kind, id) }
        case .albumChanged(let id):
            try await bench.store.events.write { transaction in
                try transaction.append(
                    AlbumRemoved(albumId: id), replacing: bench.view.newest(ofAlbum: id))
            }
            _ = remove(.albumThumbnail, id)
        case .minutes(let minutes): bench.clock.advance(by: .minutes(minutes))
        }
    }

    func check() async throws {
        let view = bench.view
        for kind in ImageKind.allCases {
            let expected = images[kind] ?? []
            guard view.size(of: kind).images == expected.count else {
                throw Wrong(what: "\(kind): \(view.size(of: kind)), expected \(expected)")
            }
            for (id, content) in expected {
                guard let image = view.image(kind, id), image.file == FileID(of: content) else {
                    throw Wrong(what: "\(kind) \(id) is not there")
                }
                try await bench.store.files.verify(image.file)
            }
        }
        let memory = await bench.store.images.memorySize
        guard memory.images <= 3, memory.bytes <= 100 else { throw Wrong(what: "\(memory)") }
    }
}

@Suite struct ImageModelTests {
    @Test(.verifies("IMG-2", "IMG-3", "IMG-6", "IMG-8", "IMG-9", "IMG-11"))
    func `the cache equals a list in order of use, also with wrong clocks`() async throws {
        try await Property.check("the image cache is an LRU", runs: 100) { choices in
            var machine = Machine(bench: try await Bench())
            try await choices.run(&machine, steps: 0...60)
            try await machine.bench.store.close()
        }
    }
}
