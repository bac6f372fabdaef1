// A reset deletes everything or nothing: two logs with files and checkpoints, a cache,
// and secrets on the same disk, which loses its power at every operation.

import DaybookOffline
import DaybookSecrets
import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

private struct Device {
    static let paths = DeviceStorage.Paths(
        database: URL(filePath: "/app/databases/daybook"),
        cache: URL(filePath: "/app/cache/daybook"))

    let files: SimulatedFileSystem
    let secrets: SealedFileSecretStore
    let storage: DeviceStorage

    init(_ files: SimulatedFileSystem) throws {
        self.files = files
        secrets = try SealedFileSecretStore(
            file: URL(filePath: "/keys/secrets"), key: SealedFileTests.key, fileSystem: files)
        storage = DeviceStorage(
            Self.paths, secrets: [secrets], environment: LogEnvironment(fileSystem: files))
    }

    func open(_ folder: URL, _ name: String, account: String? = nil) async throws -> OfflineStore {
        try await OfflineStore.open(
            at: folder.appending(path: name), account: account, secrets: secrets,
            environment: LogEnvironment(fileSystem: files))
    }

    /// Two logs of accounts, of which one is open, a log of the cache, and secrets.
    func fill() async throws -> [OfflineStore] {
        try await storage.prepare()
        let other = try await open(storage.database, "grace", account: "grace")
        try await other.settings.put(.themeMode, "dark")
        try await other.close()
        let store = try await open(storage.database, "ada", account: "ada")
        try await store.settings.put(.accessToken, AccessToken("t"))
        try await store.settings.put(.themeMode, "dark")
        try await store.events.checkpoint()
        let cache = try await open(storage.cache, "images")
        try await cache.files.store([1, 2, 3]) { _ in }
        return [store, cache]
    }

    /// The remaining files and secrets, without the lock.
    func left() async throws -> [String] {
        var left = try await secrets.read("daybook.token") == nil ? [] : ["token"]
        for folder in [storage.database.path, storage.cache.path] {
            for name in try files.list(folder) where name != ".lock" {
                left.append(name)
                left += (try? files.list(folder + "/" + name).map { name + "/" + $0 }) ?? []
            }
        }
        return left.sorted()
    }

    /// Whether everything that `fill` created is there.
    func checkUntouched() async throws {
        for (name, account) in [("ada", "ada"), ("grace", "grace")] {
            let store = try await open(storage.database, name, account: account)
            try #require(store.settings.get(.themeMode) == "dark", "\(name)")
            try await store.close()
        }
        try #require(try await secrets.read("daybook.token") != nil)
        let cache = try await open(storage.cache, "images")
        try await cache.files.verify(FileID(of: [1, 2, 3]))
        try await cache.close()
    }
}

@Suite struct ResetTests {
    private func machine() throws -> SimulatedFileSystem {
        let files = SimulatedFileSystem()
        try files.createDirectory("/keys")
        return files
    }

    @Test(.verifies("SET-9", "SET-11"))
    func `a reset leaves nothing, and a new store can be created`() async throws {
        let device = try Device(try machine())
        let stores = try await device.fill()
        try await device.storage.reset(stores)
        #expect(try await device.left() == [])
        #expect(try await device.storage.prepare() == false)
        let store = try await device.open(device.storage.database, "ada", account: "ada")
        #expect(store.settings.get(.themeMode) == "system")
        try await store.close()
    }

    @Test(.verifies("SET-11", "SET-12"))
    func `after a power cut or a kill at any operation all is there, or nothing after the start`()
        async throws
    {
        let files = try machine()
        let device = try Device(files)
        let stores = try await device.fill()
        files.record()
        try await device.storage.reset(stores)
        let points = files.crashPoints
        #expect(points.count > 40)
        var (states, ended, untouched) = (0, 0, 0)
        for point in points {
            var machines = [point.afterKill()]
            point.forEachState(in: .init(combinationsMax: 32, samples: 16)) { machine, _ in
                machines.append(machine)
            }
            for machine in machines {
                states += 1
                let after = try Device(machine)
                if try await after.storage.prepare() {
                    ended += 1
                    try #require(try await after.left() == [], "\(point)")
                } else if try await !after.left().isEmpty {
                    untouched += 1
                    try await after.checkUntouched()
                }
                // A new store can be used like any other.
                let store = try await after.open(after.storage.database, "new")
                try await store.settings.put(.tilesPerRow, 5)
                try await store.close()
                try #require(try await after.storage.prepare() == false)
            }
        }
        #expect(ended > 40)
        #expect(untouched > 0)
        print("\(points.count) operations, \(states) states, \(ended) resets ended at the start")
    }

    @Test(.verifies("SET-11"))
    func `a reset that is killed again while it is finished is finished by the next start`()
        async throws
    {
        let files = try machine()
        let device = try Device(files)
        let stores = try await device.fill()
        files.record()
        try await device.storage.reset(stores)
        for point in files.crashPoints {
            let machine = point.afterKill()
            machine.record()
            guard try await Device(machine).storage.prepare() else { continue }
            for second in machine.crashPoints {
                let after = try Device(second.afterKill())
                _ = try await after.storage.prepare()
                try #require(try await after.left() == [], "\(point), then \(second)")
            }
        }
    }

    @Test(.verifies("SET-11"))
    func `a call that fails leaves all, or nothing after the next start`() async throws {
        for fault in SimulatedFault.all {
            for call in 0..<400 {
                let files = try machine()
                let device = try Device(files)
                let stores = try await device.fill()
                files.fail(call: files.calls + call, fault)
                var failed = false
                do { try await device.storage.reset(stores) } catch { failed = true }
                let wasHit = files.faultsHit > 0
                files.endFaults()
                if failed {
                    for store in stores { try? await store.close() }
                    let again = try Device(files)
                    let ended = try await again.storage.prepare()
                    let left = try await again.left()
                    if ended || left.isEmpty {
                        try #require(left == [])
                    } else {
                        try await again.checkUntouched()
                    }
                } else {
                    try #require(try await device.left() == [])
                }
                if !wasHit { break }
            }
        }
    }

    @Test(.verifies("SET-10"))
    func `a reset is refused while something is unsynced, or for a store somewhere else`()
        async throws
    {
        let device = try Device(try machine())
        var stores = try await device.fill()
        try await stores[0].cities.save("lisbon", by: "ada")
        await #expect(throws: UnsyncedError(count: 1)) { try await device.storage.reset(stores) }
        #expect(stores[0].settings.get(.themeMode) == "dark")
        // The events of a closed log count, too.
        let other = try await device.open(device.storage.database, "grace", account: "grace")
        try await other.cities.save("oslo", by: "grace")
        try await other.close()
        await #expect(throws: UnsyncedError(count: 2)) { try await device.storage.reset(stores) }
        try await stores[0].cities.save("porto", by: "ada")
        stores.append(try await device.open(URL(filePath: "/keys"), "elsewhere"))
        await #expect(throws: EventError.self) {
            try await device.storage.reset(stores, discardingUnsynced: true)
        }
        try await stores.removeLast().close()
        try await device.storage.reset(stores, discardingUnsynced: true)
        #expect(try await device.left() == [])
    }

    @Test(.verifies("SET-11"))
    func `a log that another process has open is not deleted`() async throws {
        let device = try Device(try machine())
        let stores = try await device.fill()
        let other = try await device.open(device.storage.database, "grace", account: "grace")
        for _ in 0..<2 {
            await #expect { try await device.storage.reset(stores) } throws: {
                ($0 as? LogError)?.code == .locked
            }
            // Nothing was changed, and both stores can be used.
            try await other.settings.put(.tilesPerRow, 5)
            try await stores[0].settings.put(.tilesPerRow, 5)
            #expect(try await device.storage.prepare() == false)
        }
        try await other.close()
        try await device.storage.reset(stores)
        #expect(try await device.left() == [])
    }

    @Test(.verifies("SET-10"))
    func `a store that is closed or suspended is refused before anything is deleted`() async throws
    {
        let device = try Device(try machine())
        let stores = try await device.fill()
        try await stores[0].suspend()
        await #expect { try await device.storage.reset(stores) } throws: {
            ($0 as? LogError)?.code == .suspended
        }
        try await stores[0].close()
        await #expect { try await device.storage.reset(stores) } throws: {
            ($0 as? LogError)?.code == .closed
        }
        try await stores[1].close()
        try await device.checkUntouched()
    }

    @Test(.verifies("SET-11"))
    func `secrets that cannot be deleted stop the reset, and the next start finishes it`()
        async throws
    {
        let files = SimulatedFileSystem()
        let secrets = [InMemorySecretStore(), InMemorySecretStore()]
        for store in secrets { try store.write([1], for: "daybook.token") }
        let storage = DeviceStorage(
            Device.paths, secrets: secrets, environment: LogEnvironment(fileSystem: files))
        try await storage.prepare()
        let store = try await OfflineStore.open(
            at: storage.database.appending(path: "ada"),
            environment: LogEnvironment(fileSystem: files))
        secrets[1].fail(with: SecretStoreError(.locked, location: "here", "locked"))
        await #expect(throws: SecretStoreError.self) { try await storage.reset([store]) }
        await #expect(throws: LogError.self) { try await store.settings.put(.tilesPerRow, 5) }
        await #expect(throws: SecretStoreError.self) { try await storage.prepare() }
        secrets[1].fail(with: nil)
        #expect(try await storage.prepare())
        #expect(secrets.allSatisfy { $0.values.isEmpty })
        #expect(try files.list(storage.database.path) == [".lock"])
    }

    @Test(.verifies("SET-11"))
    func `of two concurrent resets, one is refused`() async throws {
        let files = try machine()
        let device = try Device(files)
        let stores = try await device.fill()
        let lock = try files.open(device.storage.database.path + "/.lock", .createIfMissing)
        #expect(try lock.lock())
        await #expect { try await device.storage.prepare() } throws: {
            ($0 as? LogError)?.code == .locked
        }
        await #expect { try await device.storage.reset(stores) } throws: {
            ($0 as? LogError)?.code == .locked
        }
        for store in stores { try await store.close() }
        try await device.checkUntouched()
    }

    @Test(.verifies("SET-9"))
    func `overlapping folders are refused, and a missing cache folder is no error`()
        async throws
    {
        let device = try Device(try machine())
        let inner = DeviceStorage.Paths(
            database: Device.paths.database, cache: Device.paths.database.appending(path: "c"))
        for paths in [
            inner, .init(database: inner.cache, cache: inner.database),
            .init(database: inner.database, cache: inner.database),
        ] {
            await #expect(throws: EventError.self) { try await DeviceStorage(paths).prepare() }
        }
        try await device.storage.prepare()
        let store = try await device.open(device.storage.database, "ada")
        try device.files.removeDirectory(device.storage.cache.path)
        try await device.storage.reset([store])
        #expect(try await device.left() == [])
    }

    /// Records which folders were created and synced.
    private final class FolderRecorder: ForwardingFileSystem {
        let base: any FileSystem = InMemoryFileSystem()
        let calls = Mutex<[String]>([])

        func createDirectory(_ path: String) throws(FileError) {
            try base.createDirectory(path)
            calls.withLock { $0.append("create \(path)") }
        }
        func syncDirectory(_ path: String) throws(FileError) {
            try base.syncDirectory(path)
            calls.withLock { $0.append("sync \(path)") }
        }
    }

    @Test(.verifies("SET-9"))
    func `a created folder is durable, and so is its parent`() throws {
        let files = FolderRecorder()
        try files.createDirectory("/app")
        try files.createDirectories("/app/a/b")
        #expect(
            files.calls.withLock(\.self) == [
                "create /app", "create /app/a", "sync /app", "create /app/a/b", "sync /app/a",
            ])
        // A kill may have happened between the two calls.
        try files.createDirectories("/app/a/b")
        #expect(files.calls.withLock(\.last) == "sync /app/a")
    }

    @Test(.verifies("ACC-8"))
    func `after a power cut in an erasure, the store and its secrets are both there or both gone`()
        async throws
    {
        let files = try machine()
        let device = try Device(files)
        let stores = try await device.fill()
        files.record()
        try await stores[0].erase()
        let points = files.crashPoints
        var (states, there) = (0, 0)
        for point in points {
            var machines = [point.afterKill()]
            point.forEachState(in: .init(combinationsMax: 64, samples: 16)) { machine, _ in
                machines.append(machine)
            }
            for machine in machines {
                states += 1
                let after = try Device(machine)
                // If the secrets cannot be deleted, the erasure is not finished.
                if let plain = try? await OfflineStore.open(
                    at: after.storage.database.appending(path: "ada"),
                    environment: LogEnvironment(fileSystem: machine))
                {
                    let isThere = plain.settings.get(.themeMode) == "dark"
                    let token = try await after.secrets.read("daybook.token")
                    try #require(isThere == (token != nil), "\(point)")
                    try await plain.close()
                }
                let store = try await after.open(after.storage.database, "ada")
                let isThere = store.settings.get(.themeMode) == "dark"
                let token = try await store.settings.tryGet(.accessToken)
                try #require(isThere == (token != nil), "\(point)")
                there += isThere ? 1 : 0
                try await store.close()
            }
        }
        #expect(there > 0)
        #expect(there < states)
        print("\(points.count) operations, \(states) states")
        try await stores[1].close()
    }

    @Test(.verifies("SET-9", "SET-11"))
    func `folders are for the owner only, and the target of a symbolic link is not deleted`()
        async throws
    {
        let manager = FileManager.default
        let home = try TemporaryFolder()
        defer { home.remove() }
        let storage = DeviceStorage(.iOS(home: home.url))
        try await storage.prepare()
        for folder in [storage.database, storage.cache] {
            let attributes = try manager.attributesOfItem(atPath: folder.path)
            #expect(attributes[.posixPermissions] as? Int == 0o700)
        }
        let outside = try await OfflineStore.open(at: home.appending("outside"))
        try await outside.settings.put(.themeMode, "dark")
        try await outside.close()
        try manager.createSymbolicLink(
            at: storage.database.appending(path: "link"),
            withDestinationURL: home.appending("outside"))
        try await storage.reset([])
        #expect(try manager.contentsOfDirectory(atPath: storage.database.path) == [".lock"])
        let again = try await OfflineStore.open(at: home.appending("outside"))
        #expect(again.settings.get(.themeMode) == "dark")
        try await again.close()
        // The folder itself must not be a symbolic link.
        try manager.removeItem(at: storage.database)
        try manager.createSymbolicLink(
            at: storage.database, withDestinationURL: home.appending("outside"))
        await #expect(throws: LogError.self) { try await storage.prepare() }
        await #expect(throws: LogError.self) { try await storage.reset([]) }
    }

    @Test(.verifies("SET-9")) func `the folders of both platforms are those of the table`() {
        let android = DeviceStorage.Paths.android(data: URL(filePath: "/data/data/com.example.app"))
        #expect(android.database.path == "/data/data/com.example.app/databases/daybook")
        #expect(android.cache.path == "/data/data/com.example.app/cache/daybook")
        let iOS = DeviceStorage.Paths.iOS(home: URL(filePath: "/home"))
        #expect(iOS.database.path == "/home/Library/Application Support/daybook")
        #expect(iOS.cache.path == "/home/Library/Caches/daybook")
    }
}
