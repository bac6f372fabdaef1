// An app's data on a device: folders of logs, folders of caches, secrets; and the reset that deletes all of
// it. Spec/model/settings.md, SET-9 to SET-12.

import EventSourcing
import Foundation
import LogStorage
import Replay
import Synchronization

/// An app's data on a device: logs, caches and secrets.
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
    /// The folder of files that can be fetched again, such as cached images and unfinished downloads. The
    /// system may delete it. Nothing else may be in it.
    public let cache: URL
    private let secrets: [any SecretStore]
    let environment: LogEnvironment

    /// The folders of a platform, as values: nothing is created.
    public struct Paths: Hashable, Sendable {
        /// The folder of data that must stay.
        public var database: URL
        /// The folder of data that the system may delete when it needs space.
        public var cache: URL

        /// Creates paths from two folders, neither of them in the other. They belong to Daybook alone: a
        /// reset deletes everything in them.
        public init(database: URL, cache: URL) {
            self.database = database
            self.cache = cache
        }

        /// The folders of an Android app: in `databases` and `cache` of its own folder. Secrets
        /// belong into the Android Keystore.
        ///
        /// - Parameter data: the app's folder: `/data/data/<app>` for the first user of the device.
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

    /// Creates the value; nothing is read or created on the disk yet.
    ///
    /// - Parameters:
    ///   - paths: the folders.
    ///   - secrets: all secret stores of the app, of all accounts: a reset deletes their content.
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

    /// Creates missing folders, and finishes a reset that was interrupted by a kill. An app calls it at its
    /// start, before it opens a store.
    ///
    /// - Returns: true if a reset was finished, so that the app shows its login screen.
    /// - Throws: `EventError` (`refused`) if one folder is in the other, and for a URL that is not a folder
    ///   on this device; `LogError` for a folder that cannot be created; `LogError` (`locked`) if another
    ///   process resets, or has a log open that is to be deleted; `SecretStoreError`.
    @discardableResult
    public func prepare() async throws -> Bool {
        let lock = try await lock()
        defer { lock.release() }
        let isUnfinished = try await BlockingWork.run { [marker] in try marker.exists }
        if isUnfinished { try await finish([], []) }
        return isUnfinished
    }

    /// Deletes everything that the app stores on the device: secrets, logs with their files, caches. The
    /// deletion is durable on return; only a lock file is left in the folders. If the process ends before, or
    /// the reset fails after it has begun, the next `prepare()` deletes the rest.
    ///
    /// The app must record nothing meanwhile and renew no token: sign credentials out first.
    ///
    /// - Parameters:
    ///   - stores: all stores that are open in the folders. They are closed, also if the reset fails after
    ///     it has begun.
    ///   - rules: the rules of the app's event types, as for `EventStore.open`. They determine which events
    ///     of closed logs are unsynced.
    ///   - upcasters: the upcasters of older event types, as for `EventStore.open`.
    ///   - catalogue: the event types of a library, as for `EventStore.open`.
    ///   - discardingUnsynced: whether to continue if there are unsynced events, or a log that cannot be
    ///     read.
    /// - Throws: with nothing changed: `UnsyncedError` with the number of unsynced events, those of closed
    ///   logs included, unless `discardingUnsynced`; `EventError` (`refused`) for a store that is not in one
    ///   of the folders, and for rules or upcasters that are inconsistent; `LogError`: `closed` or
    ///   `suspended` for one of the stores, `locked` for a log that is open and not among the stores. After
    ///   it has begun: `LogError`, `SecretStoreError`.
    /// - Complexity: O(files), and O(events after the checkpoint) for each closed log.
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
            if try !marker.exists { try marker.begin() }
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
                "the store at \(directory) is neither in \(database.path) nor in \(cache.path); "
                    + "erase it by itself")
        }
    }

    private func checkAreApart() throws(EventError) {
        let (one, other) = (folders[0], folders[1])
        guard !FolderPath(one).overlaps(FolderPath(other)) else {
            throw EventError(.refused, "the folders \(one) and \(other) overlap; choose others")
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

    /// The number of unsynced events of a closed log.
    private func unsynced(_ log: String, _ catalogue: EventCatalogue) async throws -> Int {
        do {
            let store = try await EventStore.open(
                at: log, create: false, catalogue: catalogue, views: [Outbox.self],
                keepingUnknownStates: true, environment: environment)
            let count = store.view(Outbox.self).count
            try await store.close()
            return count
        } catch let error as LogError where error.code == .noSuchLog {
            // The log was being erased, or has no event yet.
            return 0
        }
    }

    // MARK: Reset

    /// The names of the marker and the lock in the database folder.
    private static let own = [".resetting", ".lock"]
    /// The marker of an unfinished reset.
    private var marker: ErasureMarker {
        ErasureMarker(in: database.path, Self.own[0], environment.fileSystem)
    }

    /// Creates missing folders and locks them against another reset.
    ///
    /// - Returns: the lock, which the caller must release.
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

    /// Deletes everything, the marker last. Can be repeated after a failure.
    private func finish(_ stores: [any ErasableStore], _ claimed: [ClaimedLog]) async throws {
        // A marker that was found may be in the page cache only.
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
        // Under the log's lock: another process may have it open.
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

/// A store that can be erased with its files and secrets.
public protocol ErasableStore: Sendable {
    /// The store's events.
    var eventStore: EventStore { get }

    /// Closes the store. See `EventStore.close()`.
    func close() async throws

    /// Deletes the store with its files and secrets. See `EventStore.erase(discardingUnsynced:removing:)`.
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

/// The lock of `prepare()` and `reset()`. Released by a call and not with the last reference, which another
/// thread may hold for a moment longer.
private final class StorageLock: Sendable {
    private let file: Mutex<(any File)?>

    init(_ path: String, _ fileSystem: any FileSystem) throws(LogError) {
        let (file, isFree) = try storage { () throws(FileError) in
            let file = try fileSystem.open(path, .createIfMissing)
            return (file, try file.lock())
        }
        guard isFree else {
            let holder = fileSystem.lockHolder(of: path)?.text ?? "another process"
            throw LogError(
                .locked, path: path, "\(holder) prepares or resets this storage; try again")
        }
        self.file = Mutex(file)
    }

    func release() { file.withLock { $0 = nil } }
}
