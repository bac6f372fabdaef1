// Where an app keeps what it keeps on a device: folders of logs, folders of caches, secrets. And how
// all of it goes. Spec/model/settings.md, SET-9 to SET-12.

import EventSourcing
import Foundation
import LogStorage
import Replay
import Synchronization

/// The places of an app's data on a device.
///
/// ```swift
/// let storage = DeviceStorage(.iOS(home: home), secrets: [secrets])
/// try await storage.prepare()
/// let store = try await EventStore.open(
///     at: storage.database.appending(path: "user-456"), account: "user-456", secrets: secrets,
///     rules: rules, views: views)
/// // Nothing is left afterwards: show the login screen.
/// try await storage.reset([store], rules: rules)
/// ```
public struct DeviceStorage: Sendable {
    /// The folder of logs, each in a folder of its own. Nothing else may be in it.
    public let database: URL
    /// The folder of what can be fetched again, such as cached images and downloads on their way. The
    /// system may delete it. Nothing else may be in it.
    public let cache: URL
    private let secrets: [any SecretStore]
    let environment: LogEnvironment

    /// The folders of a platform, as values: nothing is created.
    public struct Paths: Hashable, Sendable {
        /// For what must stay.
        public var database: URL
        /// For what the system may delete when it needs room.
        public var cache: URL

        /// Names folders, neither of them in the other. They belong to Daybook alone: a reset
        /// deletes all that is in them.
        public init(database: URL, cache: URL) {
            self.database = database
            self.cache = cache
        }

        /// The folders of an Android app: in `databases` and `cache` of its own folder. Secrets
        /// belong into the Android Keystore.
        ///
        /// - Parameter data: the app's folder as the system names it: `/data/data/<app>` for the
        ///   first user of the device.
        public static func android(data: URL) -> Paths {
            Paths(
                database: data.appending(path: "databases/daybook"),
                cache: data.appending(path: "cache/daybook"))
        }

        /// The folders of an iOS app: in `Library/Application Support` and `Library/Caches` of its
        /// home. Secrets belong into the keychain (`KeychainSecretStore`).
        ///
        /// - Parameter home: the app's home: `URL.homeDirectory`.
        public static func iOS(home: URL) -> Paths {
            let library = home.appending(path: "Library")
            return Paths(
                database: library.appending(path: "Application Support/daybook"),
                cache: library.appending(path: "Caches/daybook"))
        }
    }

    /// Names the places; nothing is read or created yet.
    ///
    /// - Parameters:
    ///   - paths: the folders.
    ///   - secrets: all secret stores of the app, whosever secrets they keep: a reset deletes what
    ///     is in them.
    ///   - environment: the file system; tests bring their own.
    public init(
        _ paths: Paths, secrets: [any SecretStore] = [],
        environment: LogEnvironment = LogEnvironment()
    ) {
        database = paths.database
        cache = paths.cache
        self.secrets = secrets
        self.environment = environment
    }

    /// Creates what is missing of the folders, and ends a reset that a kill has interrupted: what an
    /// app does at its start, before it opens a store.
    ///
    /// - Returns: whether a reset was ended, so that the app shows its login screen.
    /// - Throws: `EventError` (`refused`) for folders of which one is in the other, and for URLs
    ///   that are not of folders on this device; `LogError` for
    ///   a folder that cannot be created, or, `locked`, where another process resets, or has a log
    ///   open that is to go; `SecretStoreError`.
    @discardableResult
    public func prepare() async throws -> Bool {
        let lock = try await lock()
        defer { lock.release() }
        let isUnfinished = try await BlockingWork.run { [marker] in try marker.isThere }
        if isUnfinished { try await finish([], []) }
        return isUnfinished
    }

    /// Deletes everything that the app keeps on the device: secrets, logs with their files, caches.
    /// On return it is gone, power cuts included; of both folders nothing is left but a lock. If the
    /// process ends before, or this fails when it has begun, the next `prepare()` deletes the rest.
    ///
    /// Have nothing recorded meanwhile, and no token renewed: sign credentials out first.
    ///
    /// - Parameters:
    ///   - stores: all that are open in the folders; they are closed, also if this fails when it
    ///     has begun.
    ///   - rules: the rules of the app's event types, as for `EventStore.open`. With them it is known
    ///     which events of closed logs are unsynced.
    ///   - upcasters: the ways from older event types, as for `EventStore.open`.
    ///   - catalogue: the event types of a library, as for `EventStore.open`.
    ///   - discardingUnsynced: whether to go on if there is something that no server has, or a log
    ///     that cannot be read.
    /// - Throws: with nothing changed: `UnsyncedError` with the number of events that no server
    ///   has, those of closed logs included, if it is not told to discard them; `EventError`
    ///   (`refused`) for a store that is not in one of the folders, and for rules or upcasters that do not
    ///   go together; `LogError`: `closed` or `suspended` for such a store, `locked` for a
    ///   log that is open and not among the stores. Later: `LogError`, `SecretStoreError`.
    /// - Complexity: O(files), and O(events behind the checkpoint) for each closed log.
    public func reset(
        _ stores: [any ErasableStore], rules: [EventRule] = [], upcasters: [Upcaster] = [],
        extending catalogue: EventCatalogue = .ownTypes, discardingUnsynced: Bool = false
    ) async throws {
        let catalogue = catalogue.adding(rules, upcasters: upcasters)
        if let fault = catalogue.fault { throw fault }
        for store in stores { try checkIsInside(store.eventStore.directory) }
        let lock = try await lock()
        defer { lock.release() }
        for store in stores { try await store.eventStore.flush() }
        let open = Set(stores.map { Self.standardized($0.eventStore.directory) })
        let closed = try await BlockingWork.run { [self] in
            try folders.flatMap { try logs(in: $0) }
                .filter { !open.contains(Self.standardized($0)) }
        }
        if !discardingUnsynced {
            var count = stores.reduce(0) { $0 + $1.eventStore.view(Outbox.self).count }
            for log in closed { count += try await unsynced(log, catalogue) }
            guard count == 0 else { throw UnsyncedError(count: count) }
        }
        let claimed = try await BlockingWork.run { [environment] in
            try closed.map { try ClaimedLog($0, environment) }
        }
        defer { for log in claimed { log.release() } }
        try await BlockingWork.run { [marker] in
            if try !marker.isThere { try marker.begin() }
        }
        do {
            try await finish(stores, claimed)
        } catch {
            for store in stores { try? await store.close() }
            throw error
        }
    }

    // MARK: Checks

    private static func standardized(_ path: String) -> String {
        URL(filePath: path).standardizedFileURL.path
    }

    var folders: [String] { [database.path, cache.path] }

    private func checkIsInside(_ directory: String) throws(EventError) {
        let parent = URL(filePath: directory).deletingLastPathComponent().path
        guard folders.map(Self.standardized).contains(Self.standardized(parent)) else {
            throw EventError(
                .refused,
                "the store at \(directory) is neither in \(database.path) nor in \(cache.path). "
                    + "Erase it by itself")
        }
    }

    private func checkAreApart() throws(EventError) {
        let (one, other) = (folders[0], folders[1])
        guard !FolderPath(one).overlaps(FolderPath(other)) else {
            throw EventError(.refused, "one of the folders \(one) and \(other) is in the other")
        }
    }

    /// The folders of logs in a folder.
    func logs(in folder: String) throws(LogError) -> [String] {
        let fileSystem = environment.fileSystem
        let names = try storage { () throws(FileError) in try fileSystem.list(folder) }
        var logs: [String] = []
        for name in names.sorted() where !Self.own.contains(name) {
            let path = folder + "/" + name
            if try ClaimedLog.isLog(at: path, fileSystem) { logs.append(path) }
        }
        return logs
    }

    /// How many events of a closed log no server has.
    private func unsynced(_ log: String, _ catalogue: EventCatalogue) async throws -> Int {
        do {
            let store = try await EventStore.open(
                at: log, create: false, catalogue: catalogue, views: [Outbox.self],
                keepingUnknownStates: true, environment: environment)
            let count = store.view(Outbox.self).count
            try await store.close()
            return count
        } catch let error as LogError where error.code == .noSuchLog {
            // One that was being erased, or has no event yet.
            return 0
        }
    }

    // MARK: The way of a reset

    /// Names in the database folder that are no log's.
    private static let own = [".resetting", ".lock"]
    /// While it is there, everything else is to go.
    private var marker: ErasureMarker {
        ErasureMarker(in: database.path, Self.own[0], environment.fileSystem)
    }

    /// Creates what is missing of the folders, and sees to it that nobody else resets.
    ///
    /// - Returns: the lock, to be released.
    private func lock() async throws -> StorageLock {
        for folder in [database, cache] { _ = try folder.localPath() }
        try checkAreApart()
        let (folders, fileSystem) = (folders, environment.fileSystem)
        return try await BlockingWork.run {
            try storage { () throws(FileError) in
                for folder in folders { try fileSystem.createDirectories(folder) }
            }
            return try StorageLock(folders[0] + "/" + Self.own[1], fileSystem)
        }
    }

    /// Deletes what is there, the marker last. Can be done again.
    private func finish(_ stores: [any ErasableStore], _ claimed: [ClaimedLog]) async throws {
        // One that a start finds may be in the page cache only.
        try await BlockingWork.run { [marker] in try marker.makeDurable() }
        for store in secrets { try await store.deleteAll() }
        for store in stores { try await store.erase(discardingUnsynced: true) }
        try await BlockingWork.run { [self] in
            for log in claimed { try log.erase() }
            for folder in folders { try empty(folder) }
            try marker.remove()
        }
    }

    private func empty(_ folder: String) throws(LogError) {
        // Under their locks: a log that another process writes must not be deleted under it.
        for log in try logs(in: folder) {
            try ClaimedLog(log, environment).erase()
        }
        let fileSystem = environment.fileSystem
        try storage { () throws(FileError) in
            for name in try fileSystem.list(folder) where !Self.own.contains(name) {
                try fileSystem.removeAll(folder + "/" + name)
            }
            try fileSystem.syncDirectory(folder)
        }
    }
}

/// A store that can be erased with what belongs to it.
public protocol ErasableStore: Sendable {
    /// The store's events.
    var eventStore: EventStore { get }

    /// Closes the store. See `EventStore.close()`.
    func close() async throws

    /// Deletes the store and what belongs to it. See `EventStore.erase(discardingUnsynced:removing:)`.
    func erase(discardingUnsynced: Bool) async throws
}

extension EventStore: ErasableStore {
    /// The store itself.
    public nonisolated var eventStore: EventStore { self }

    /// Deletes the log and its secrets. See `erase(discardingUnsynced:removing:)`.
    public func erase(discardingUnsynced: Bool) async throws {
        try await erase(discardingUnsynced: discardingUnsynced, removing: [])
    }
}

/// The lock of one who prepares or resets. Released by a call and not with the last reference, which
/// another thread may hold for a moment longer.
private final class StorageLock: Sendable {
    private let file: Mutex<(any File)?>

    init(_ path: String, _ fileSystem: any FileSystem) throws(LogError) {
        let (file, isFree) = try storage { () throws(FileError) in
            let file = try fileSystem.open(path, .createIfMissing)
            return (file, try file.lock())
        }
        guard isFree else {
            throw LogError(.locked, path: path, "somebody else prepares or resets this storage")
        }
        self.file = Mutex(file)
    }

    func release() { file.withLock { $0 = nil } }
}
