// Images in a cache folder outside the log's folder. Spec/model/images.md, IMG-19.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private struct Bench {
    let files: any FileSystem
    let store: OfflineStore

    /// A store at `/<name>` with images below `/cache`, or beside the log.
    init(
        _ files: any FileSystem = InMemoryFileSystem(), _ name: String = "log",
        cache: String? = "/cache", account: String? = nil
    ) async throws {
        self.files = files
        store = try await OfflineStore.open(
            at: URL(filePath: "/\(name)"), cache: cache.map { URL(filePath: $0) },
            account: account, compaction: nil,
            environment: LogEnvironment(fileSystem: files, sleep: noTimers))
    }

    var folder: String { store.events.imageFolder }
    var view: ImagesView { store.view(ImagesView.self) }
    /// The images' files in the cache folder.
    var cached: Set<String> { names(folder) }
    /// The files beside the log.
    var beside: Set<String> { names(store.events.directory + "/files") }

    private func names(_ folder: String) -> Set<String> { Set((try? files.list(folder)) ?? []) }

    func count(_ type: String) throws -> Int {
        var count = 0
        try LogReader(store.events.directory, fileSystem: files).forEachLine { _, line in
            if try LineDecoder.decode(line).draft.type == type { count += 1 }
            return true
        }
        return count
    }
}

extension EventStore {
    fileprivate nonisolated var imageFolder: String {
        CacheFolder.images.path(in: "/cache", of: self)
    }
}

private func name(_ content: [UInt8]) -> String { FileID(of: content).description }

/// A city with an image of this content.
private func cache(_ content: [UInt8], of city: String, _ store: OfflineStore) async throws {
    try await store.cities.cache(
        json: CityData(
            id: city, name: city, country: "Portugal", description: "", costOfLiving: 1,
            internetSpeed: 1, safetyRating: 1, climate: "mild", touristAttractions: [],
            categories: [], relatedCities: []
        ).json,
        images: [
            CityImage(
                id: "i", url: "https://x.example/i.jpg", kind: .gallery, width: 4, height: 3,
                content: content)
        ], isExplicit: true, for: "u")
}

@Suite struct CacheFolderTests {
    @Test(.verifies("IMG-19"))
    func `images are stored in the cache folder, for their owner only, and none in the log's`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await OfflineStore.open(
            at: folder.appending("log"), cache: folder.appending("cache"))
        try await store.images.store([1, 2], .thumbnail, "a")
        let image = try #require(store.view(ImagesView.self).image(.thumbnail, "a"))
        let path = store.images.path(of: image)
        #expect(
            path == folder.path
                + "/cache/daybook-images/\(store.events.logID.text)/\(name([1, 2]))")
        for (path, mode) in [
            (path, 0o600), (store.images.files.directory, 0o700),
            (folder.path + "/cache/daybook-images", 0o700),
        ] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == mode, "\(path)")
        }
        #expect(try folder.names(in: "log/files") == [])
        await store.images.releaseMemory()
        #expect(await store.images.image(.thumbnail, "a") == [1, 2])
        try await store.close()
    }

    @Test(.verifies("IMG-19"))
    func `deleting an asset removes its image from the cache folder`() async throws {
        let bench = try await Bench()
        try await bench.store.images.store([1], .thumbnail, "a")
        try await bench.store.images.store([2], .thumbnail, "b")
        try await bench.store.append(AssetRemoved(assetId: "a"))
        #expect(await bench.store.images.image(.thumbnail, "a") == nil)
        try await bench.store.images.clear([.preview])
        #expect(bench.cached == [name([2])])
    }

    @Test(.verifies("IMG-19"))
    func `the user's limits apply to the cache folder`() async throws {
        let bench = try await Bench()
        try await bench.store.settings.put(.thumbnailCacheSize, 2)
        for number in 0..<70 {
            try await bench.store.images.store([UInt8(number)], .thumbnail, "\(number)")
        }
        #expect(bench.view.size(of: .thumbnail).images == 2)
        try await bench.store.images.clear([.preview])
        #expect(bench.cached == [name([68]), name([69])])
    }

    @Test(.verifies("IMG-19"))
    func `a cache folder that the system deletes costs a fetch, and one event`() async throws {
        let files = InMemoryFileSystem()
        let first = try await Bench(files)
        for number in 0..<20 {
            try await first.store.images.store([UInt8(number)], .thumbnail, "\(number)")
        }
        try await first.store.close()
        try files.removeAll("/cache")
        let second = try await Bench(files)
        #expect(second.view.size(of: .thumbnail).images == 0)
        #expect(try second.count("daybook.images.cleared") == 1)
        #expect(try second.count("daybook.image.removed") == 0)
        let image = try await second.store.images.image(.thumbnail, "3") { [3] }
        #expect(image == [3])
        try await second.store.close()
        let third = try await Bench(files)
        #expect(await third.store.images.image(.thumbnail, "3") == [3])
        #expect(try third.count("daybook.images.cleared") == 1)
    }

    @Test(.verifies("IMG-19"), arguments: ["/cache", "/cache/daybook-images"])
    func `a folder that is deleted while the store is open is created again`(gone: String)
        async throws
    {
        let bench = try await Bench()
        try await bench.store.images.store([1], .thumbnail, "a")
        try await bench.store.images.store([2], .thumbnail, "b")
        await bench.store.images.releaseMemory()
        try bench.files.removeAll(gone)
        #expect(await bench.store.images.image(.thumbnail, "a") == nil)
        #expect(bench.view.size(of: .thumbnail).images == 0)
        try await bench.store.images.store([3], .thumbnail, "c")
        #expect(bench.cached == [name([3])])
        try bench.files.removeAll(gone)
        #expect(try await bench.store.images.clearAll().files == 0)
        try await bench.store.images.store([4], .thumbnail, "d")
        #expect(await bench.store.images.image(.thumbnail, "d") == [4])
    }

    @Test(.verifies("IMG-19"))
    func `images from before the cache folder are found, and moved there one by one`()
        async throws
    {
        let files = InMemoryFileSystem()
        let before = try await Bench(files, cache: nil)
        try await before.store.images.store([1], .thumbnail, "a")
        try await before.store.images.store([2], .thumbnail, "b")
        try await before.store.images.store([3], .preview, "c")
        try await cache([2], of: "lisbon", before.store)
        try await before.store.close()

        let bench = try await Bench(files)
        try await bench.store.files.collect()
        #expect(bench.beside == [name([1]), name([2]), name([3])])
        #expect(await bench.store.images.image(.thumbnail, "a") == [1])
        #expect(await bench.store.images.image(.thumbnail, "b") == [2])
        // A city has the same content, and the third was never accessed.
        #expect(bench.beside == [name([2]), name([3])])
        #expect(bench.cached == [name([1]), name([2])])
        try await bench.store.images.remove(.thumbnail, "b")
        try await bench.store.files.collect()
        #expect(try await bench.store.files.read(FileID(of: [2])) == [2])
        try await bench.store.images.clearAll()
        #expect(bench.beside == [name([2])])
        #expect(bench.cached == [])
        #expect(try bench.count("daybook.image.removed") == 1)
    }

    @Test(.verifies("IMG-19", "FILE-6"))
    func `whatever cities and images share, every named file exists`()
        async throws
    {
        try await Property.check("each file in its place", runs: 30, covering: ["shared"]) {
            choices in
            let bench = try await Bench()
            for _ in 0..<choices.int(in: 1...25) {
                let content = [UInt8(choices.int(in: 0...4))]
                let id = "\(choices.int(in: 0...3))"
                switch choices.int(in: 0...9) {
                case 0...2: try await bench.store.images.store(content, .thumbnail, id)
                case 3...4: try await cache(content, of: id, bench.store)
                case 5:
                    guard bench.store.cities.offline(id).current != nil else { break }
                    try await bench.store.cities.remove(id)
                case 6: try await bench.store.images.remove(.thumbnail, id)
                case 7: try await bench.store.files.collect()
                case 8: try await bench.store.images.clear([.preview])
                default:
                    await bench.store.images.releaseMemory()
                    _ = await bench.store.images.image(.thumbnail, id)
                }
            }
            try await bench.store.images.clear([.preview])
            try await bench.store.files.collect()
            let cities = bench.store.cities.offlineCities.current
            let ofCities = Set(cities.flatMap { $0.images.map(\.file.description) })
            let ofImages = Set(
                bench.view.leastRecentlyUsed(.thumbnail).map(\.file.description))
            if !ofCities.isDisjoint(with: ofImages) { choices.count("shared") }
            try #require(bench.beside == ofCities)
            try #require(bench.cached == ofImages)
        }
    }

    @Test(.verifies("IMG-19", "ACC-5"))
    func `an erased store leaves nothing in the cache folder, and another account's stays`()
        async throws
    {
        let files = InMemoryFileSystem()
        let ada = try await Bench(files, "ada", account: "ada")
        let grace = try await Bench(files, "grace", account: "grace")
        try await ada.store.images.store([1], .thumbnail, "a")
        try await grace.store.images.store([1], .thumbnail, "a")
        try files.createDirectories(CacheFolder.downloads.path(in: "/cache", of: ada.store.events))
        try await ada.store.cities.save("lisbon", by: "ada")
        await #expect(throws: UnsyncedError(count: 1)) { try await ada.store.erase() }
        #expect(ada.cached == [name([1])])
        #expect(await ada.store.images.image(.thumbnail, "a") == [1])
        try await ada.store.erase(discardingUnsynced: true)
        #expect(try files.list("/cache/daybook-images") == [grace.store.events.logID.text])
        #expect(try files.list("/cache/daybook-downloads") == [])
        await grace.store.images.releaseMemory()
        #expect(await grace.store.images.image(.thumbnail, "a") == [1])
    }

    @Test(.verifies("IMG-19", "ACC-6"))
    func `after an interrupted erasure, a deleted log has left nothing in the cache folder`()
        async throws
    {
        let files = SimulatedFileSystem()
        let bench = try await Bench(files)
        try await bench.store.images.store([1], .thumbnail, "a")
        files.record()
        try await bench.store.erase()
        var whole = 0
        for point in files.crashPoints {
            var machines = [point.afterKill()]
            point.forEachState(in: .init(combinationsMax: 32, samples: 8)) { machine, _ in
                machines.append(machine)
            }
            for machine in machines {
                let isThere = (try? ClaimedLog.isLog(at: "/log", machine)) ?? false
                let left = (try? machine.list("/cache/daybook-images")) ?? []
                if isThere { whole += 1 } else { #expect(left == [], "before \(point.next)") }
            }
        }
        #expect(whole > 0)
    }

    @Test(.verifies("IMG-19"))
    func `a suspended store stores no image, and handles a deleted folder when it is resumed`()
        async throws
    {
        let bench = try await Bench()
        try await bench.store.images.store([1], .thumbnail, "a")
        try await bench.store.suspend()
        await #expect(throws: LogError.self) {
            try await bench.store.images.store([2], .thumbnail, "b")
        }
        #expect(bench.cached == [name([1])])
        try bench.files.removeAll("/cache")
        try await bench.store.resume()
        #expect(bench.view.size(of: .thumbnail).images == 0)
        try await bench.store.images.store([2], .thumbnail, "b")
        #expect(bench.cached == [name([2])])
    }

    @Test(.verifies("DL-14"), arguments: [nil, "/other"])
    func `unfinished downloads are in the store's cache folder, or in one that the app names`(
        other: String?
    ) async throws {
        let bench = try await Bench()
        var options = DownloadManager.Options()
        options.cacheFolder = other
        let manager = DownloadManager(
            bench.store, base: URL(string: "http://127.0.0.1:1")!, user: "ada",
            reachability: AlwaysReachable(), options: options)
        let work = Task { try await manager.run() }
        let folder = (other ?? "/cache") + "/daybook-downloads"
        try await eventually("files in \(folder)", is: [bench.store.events.logID.text]) {
            (try? bench.files.list(folder)) ?? []
        }
        work.cancel()
        _ = await work.result
    }

    @Test(.verifies("IMG-19"))
    func `a cache folder in the log's folder is refused, and so is a link in its place`()
        async throws
    {
        await #expect {
            _ = try await Bench(cache: "/log/../log/cache")
        } throws: {
            ($0 as? EventError)?.code == .refused
        }
        await #expect {
            _ = try await OfflineStore.openShared(
                at: URL(filePath: "/log"), cache: URL(filePath: "/log/cache"),
                environment: LogEnvironment(fileSystem: InMemoryFileSystem(), sleep: noTimers))
        } throws: {
            ($0 as? EventError)?.code == .refused
        }
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let outside = folder.appending("outside").path
        let cache = folder.appending("cache")
        for path in [outside, cache.path] {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false)
        }
        try FileManager.default.createSymbolicLink(
            atPath: cache.path + "/daybook-images", withDestinationPath: outside)
        let store = try await OfflineStore.open(
            at: folder.appending("log"), cache: cache)
        await #expect(throws: FileStoreError.self) {
            try await store.images.store([1], .thumbnail, "a")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: outside) == [])
        try await store.close()
    }
}
