// The store of the offline model: its commands, views and files, and one call that syncs it. An app with only
// its own events uses the EventStore underneath.

@_exported import Daybook
import Foundation

/// An app's offline store: a log of events, and the views that are computed from it.
///
/// ```swift
/// let store = try await OfflineStore.open(at: url, account: "user-456")
/// try await store.cities.save("city-1", by: "user-456")
/// let note = try await store.notes.add("Great coffee", city: "city-1", by: "user-456")
/// let report = try await store.sync(to: endpoint, credentials: BearerToken("…"))
/// try await store.close()
/// ```
///
/// Every method that records events returns when they are durable, unless its documentation says otherwise.
public struct OfflineStore: Sendable {
    /// The store of events underneath.
    public let events: EventStore
    /// The files beside the log.
    public let files: FileStore
    /// The image cache.
    public let images: ImageCache
    /// The folder of cached images and partial downloads; nil if the log's folder stores them.
    public let cacheFolder: URL?

    /// The user whose `pruneAfterDays` and `maxStorageLimit` apply when the store cleans up: the one passed
    /// to `open`, or else the account. Nil in a store without either, in the one that all accounts share,
    /// and with `cleansUp: false`: cached cities stay until `cities.cleanUp(for:)` or `cities.remove(_:)`
    /// is called.
    public var cleanUpUser: String? { housekeeper?.user }

    let references: ReferenceCheck?
    private let secrets: (any SecretStore)?
    private let housekeeper: Housekeeper?

    private init(
        _ events: EventStore, cache: URL?, _ references: ReferenceCheck?,
        _ secrets: (any SecretStore)?, _ housekeeper: Housekeeper?
    ) async {
        self.events = events
        self.references = references
        self.secrets = secrets
        self.housekeeper = housekeeper
        cacheFolder = cache
        if let cache {
            let imageFiles = FileStore.images(of: events, in: cache.path)
            files = .inLogFolder(events, excludingImagesIn: imageFiles)
            images = ImageCache(events, imageFiles, before: files)
        } else {
            files = FileStore(events)
            images = ImageCache(events, files)
        }
        await startMaintenance()
    }

    /// Records that the images are removed if their folder is missing, then starts the housekeeper.
    private func startMaintenance() async {
        await images.clearIfFolderIsMissing()
        await housekeeper?.begin(events, files)
    }

    /// Saved and cached cities.
    public var cities: CityCommands { CityCommands(events, files, references) }
    /// Notes about cities.
    public var notes: NoteCommands { NoteCommands(events, references) }
    /// The users' settings for offline use.
    public var preferences: PreferencesCommands { PreferencesCommands(events) }
    /// Typed values under keys: the app's settings, and its secrets.
    public var settings: SettingsCommands { SettingsCommands(events, secrets) }
    /// Learning progress.
    public var progress: ProgressCommands { ProgressCommands(events, references) }
    /// Material for learning without a network: courses, lessons, review sessions, vocabulary.
    public var learning: LearningCommands { LearningCommands(events, files, references) }
    /// Cached content: pages, events, points of interest and their files.
    public var content: ContentCommands { ContentCommands(events, files) }
    /// Downloads of cities, which a `DownloadManager` carries out.
    public var downloads: DownloadCommands { DownloadCommands(events, references) }
    /// Photos and videos.
    public var assets: AssetCommands { AssetCommands(events) }
    /// Albums of photos and videos.
    public var albums: AlbumCommands { AlbumCommands(events) }
    /// The device's own media library and its backup.
    public var deviceMedia: DeviceMediaCommands { DeviceMediaCommands(events) }
    /// The events that the server has not settled.
    public var outbox: OutboxCommands { events.outbox }

    /// Opens the store in a folder, or creates it there.
    ///
    /// - Parameters:
    ///   - url: the log's folder; its parent must exist. One process at a time can have it open.
    ///   - cache: a folder that the system may delete, for data that can be fetched again: cached images in
    ///     `daybook-images`, partial downloads in `daybook-downloads`. Several logs may share it. Nil for the
    ///     log's own folder. Every opening of the log must name the same folder: images in another one are
    ///     not found, and not erased.
    ///   - account: the account of the store. A log always belongs to one account.
    ///   - secrets: the store of secret settings. It belongs to this store: `erase()` deletes all its
    ///     contents.
    ///   - rules: the rules of the app's own event types.
    ///   - upcasters: the functions from the app's older event types to their successors.
    ///   - views: the app's own views, in addition to the built-in ones.
    ///   - compaction: the policy of automatic compaction; nil: only `compact()` compacts.
    ///   - references: the app's check of the ids that commands refer to (EVT-17); nil: every id is accepted.
    ///   - user: the user whose `pruneAfterDays` and `maxStorageLimit` apply when the store cleans up; nil
    ///     for the account. Without both, no city is removed automatically (`cleanUpUser`).
    ///   - cleansUp: true if the store removes expired cities and finished download jobs automatically:
    ///     when it is opened, when it is resumed, and every hour (CITY-15).
    ///   - environment: file system, clock and randomness; tests replace them.
    ///   - progress: called at intervals with the number of events folded so far and their total, if there
    ///     are many: at the first opening with a new or changed view.
    /// - Throws: `EventError` (`refused`) for a URL that is not one of a folder on this device, for a cache
    ///   folder in the log's folder, and for contradictory rules, upcasters, views or policies
    ///   (`Spec/model/events.md`, EVT-15), which the message names. `LogError`: `locked` if another store has
    ///   the log open, `wrongAccount`, `newerVersion`, `corrupt`, …
    /// - Complexity: O(state + events after the newest checkpoint), not O(history).
    public static func open(
        at url: URL, cache: URL? = nil, account: String? = nil, secrets: (any SecretStore)? = nil,
        rules: [EventRule] = [], upcasters: [Upcaster] = [],
        views: [any Projection.Type] = [], compaction: CompactionPolicy? = CompactionPolicy(),
        references: ReferenceCheck? = nil, user: String? = nil, cleansUp: Bool = true,
        environment: LogEnvironment = LogEnvironment(),
        progress: (@Sendable (_ folded: Int, _ total: Int) -> Void)? = nil
    ) async throws -> OfflineStore {
        try checkIsOutside(cache, url)
        let events = try await EventStore.open(
            at: url, account: account, secrets: secrets, rules: rules, upcasters: upcasters,
            views: OfflineModel.views + views, extending: OfflineModel.catalogue,
            compaction: compaction, environment: environment, progress: progress)
        let housekeeper = cleansUp ? Housekeeper(user: user ?? events.account) : nil
        return await OfflineStore(events, cache: cache, references, secrets, housekeeper)
    }

    /// Refuses a cache folder in the log's folder, because the system may delete a cache.
    private static func checkIsOutside(_ cache: URL?, _ log: URL) throws(EventError) {
        guard let cache else { return }
        let folder = resolved(try cache.localPath())
        let log = resolved(try log.localPath())
        guard !(folder + "/").utf8.starts(with: (log + "/").utf8) else {
            throw EventError(
                .refused,
                "the cache folder \(folder) is in the log's folder \(log); choose one outside it")
        }
    }

    private static func resolved(_ path: String) -> String {
        URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath().path
    }

    /// Opens the store that all accounts of a device share, or creates it: for data of the device and not
    /// of a user, such as its settings and caches of content that is equal for all users. The store survives
    /// logout and the erasure of an account's store.
    ///
    /// It refuses events of shipped types (`EventError`, `refused`), and syncing, because a request's token
    /// determines an account, and this store has none.
    ///
    /// - Parameters: as `open`.
    /// - Throws: as `open`; `wrongAccount` for the log of an account.
    public static func openShared(
        at url: URL, cache: URL? = nil, secrets: (any SecretStore)? = nil,
        rules: [EventRule] = [], upcasters: [Upcaster] = [], views: [any Projection.Type] = [],
        compaction: CompactionPolicy? = CompactionPolicy(), references: ReferenceCheck? = nil,
        environment: LogEnvironment = LogEnvironment(),
        progress: (@Sendable (_ folded: Int, _ total: Int) -> Void)? = nil
    ) async throws -> OfflineStore {
        try checkIsOutside(cache, url)
        let events = try await EventStore.openShared(
            at: url, secrets: secrets, rules: rules, upcasters: upcasters,
            views: OfflineModel.views + views, extending: OfflineModel.catalogue,
            compaction: compaction, environment: environment, progress: progress)
        return await OfflineStore(
            events, cache: cache, references, secrets, Housekeeper(user: nil))
    }

    /// Opens a new, empty store in memory, for tests and previews. It behaves like a store on a disk, and is
    /// deleted with the last reference to it.
    ///
    /// ```swift
    /// let store = try await OfflineStore.inMemory(clock: { Date(timeIntervalSince1970: 0) })
    /// ```
    ///
    /// A test that opens one log twice creates an `InMemoryFileSystem` and passes it to
    /// `open(at:environment:)`. `DaybookTestKit` has file systems that simulate power cuts.
    ///
    /// - Parameters:
    ///   - account: the account of the store.
    ///   - secrets: the store of secret settings.
    ///   - rules: the rules of the app's own event types.
    ///   - upcasters: the functions from the app's older event types to their successors.
    ///   - views: the app's own views, in addition to the built-in ones.
    ///   - clock: returns the time.
    /// - Throws: `LogError` (`tooLarge`) for an account name that is too long; `EventError`
    ///   (`refused`) for a rule or a view that cannot be used, which the message names.
    public static func inMemory(
        account: String? = nil, secrets: (any SecretStore)? = nil, rules: [EventRule] = [],
        upcasters: [Upcaster] = [], views: [any Projection.Type] = [],
        clock: @escaping @Sendable () -> Date = { Date() }
    ) async throws -> OfflineStore {
        try await open(
            at: URL(filePath: "/log"), account: account, secrets: secrets, rules: rules,
            upcasters: upcasters, views: views, environment: .inMemory(clock: clock))
    }

    /// Returns the state of a view, which includes every append that has returned. O(1).
    public func view<View: Projection>(_ view: View.Type) -> View { events.view(view) }

    /// Records an event of the app's own. See `EventStore.append(_:durability:)`.
    @discardableResult
    public func append(
        _ payload: some EventPayload, durability: Durability = .durable
    ) async throws -> Appended {
        try await events.append(payload, durability: durability)
    }

    /// Records events of the app's own, all or none, in one commit. See
    /// `EventStore.append(contentsOf:durability:)`.
    @discardableResult
    public func append(
        contentsOf payloads: [any EventPayload], durability: Durability = .durable
    ) async throws -> [Appended] {
        try await events.append(contentsOf: payloads, durability: durability)
    }

    /// Records events of one of the app's own types, all or none, in one commit. See
    /// `EventStore.append(contentsOf:durability:)`.
    @discardableResult
    public func append(
        contentsOf payloads: [some EventPayload], durability: Durability = .durable
    ) async throws -> [Appended] {
        try await events.append(contentsOf: payloads, durability: durability)
    }

    /// Records an event of the app's own with an LWW timestamp greater than `lwwTimestamp`, whatever the
    /// clock says, so that it replaces the value of that event. See
    /// `EventStore.append(_:replacing:durability:)`.
    @discardableResult
    public func append(
        _ payload: some EventPayload, replacing lwwTimestamp: LWWTimestamp?,
        durability: Durability = .durable
    ) async throws -> Appended {
        try await events.append(payload, replacing: lwwTimestamp, durability: durability)
    }

    /// Reads the state and records events in one transaction. See `EventStore.write(_:)`.
    @discardableResult
    public func write<Result: Sendable>(
        _ body: @escaping @Sendable (inout EventStore.Transaction) throws -> Result
    ) async throws -> Result {
        try await events.write(body)
    }

    /// Undoes a change of this device by another event. See `EventStore.undo(_:)`.
    @discardableResult
    public func undo(_ id: UUID) async throws -> Appended { try await events.undo(id) }

    /// Redoes a change of this device that was undone. See `EventStore.redo(_:)`.
    @discardableResult
    public func redo(_ id: UUID) async throws -> Appended { try await events.redo(id) }

    /// Ships the outbox, then reads and records the events of the account's other devices. While another call
    /// runs, this one returns at once and says so in its report.
    ///
    /// - Parameters:
    ///   - endpoint: the server's address, an http or https URL, or its `…/v1/events`. A token is sent to
    ///     this machine or over https only; other options are those of `HTTPTransport`.
    ///   - credentials: the source of the token, which identifies the account.
    ///   - http: headers, certificate, proxy and timeout of the requests.
    ///   - resolver: the resolver of conflicts; nil leaves them to the app, and they show as CONFLICT.
    ///   - deadline: the time to stop; nil stops when no more work is possible now, or when the server has
    ///     been silent for `http.timeoutSeconds`.
    ///   - progress: called after each request and each reply.
    /// - Returns: what was done and what remains.
    /// - Throws: `LogError`; `closed` if the store is closed meanwhile. `EventError` (`refused`) for the
    ///   store that all accounts share. `TransportError` for an endpoint or options that cannot be used
    ///   (`badEndpoint`, `tokenInClear`, …), before any request; a certificate that cannot be opened is in
    ///   the report on Linux. Network failures are not thrown; they are in the report.
    @discardableResult
    public func sync(
        to endpoint: URL, credentials: any Credentials = NoCredentials(),
        http: HTTPOptions = HTTPOptions(), resolver: (any ConflictResolver)? = nil,
        until deadline: Date? = nil, progress: (@Sendable (SyncReport) -> Void)? = nil
    ) async throws -> SyncReport {
        try await events.sync(
            to: endpoint, credentials: credentials, http: http, resolver: resolver,
            until: deadline, progress: progress)
    }

    /// Returns the headers and the client certificate of the secret store, as options of requests; none
    /// without a secret store. See `SecretStore.httpOptions()`.
    public func httpOptions() async throws(SecretStoreError) -> HTTPOptions {
        guard let secrets else { return HTTPOptions() }
        return try await secrets.httpOptions()
    }

    /// Syncs like `sync(to:)`, over a transport with options of its own: a timeout, headers, the server's
    /// name for the account.
    ///
    /// - Returns: what was done and what remains.
    /// - Throws: as `sync(to:)`.
    @discardableResult
    public func sync(
        over transport: any Transport, credentials: any Credentials = NoCredentials(),
        resolver: (any ConflictResolver)? = nil, until deadline: Date? = nil,
        progress: (@Sendable (SyncReport) -> Void)? = nil
    ) async throws -> SyncReport {
        try await events.sync(
            over: transport, credentials: credentials, resolver: resolver, until: deadline,
            progress: progress)
    }

    /// Returns the views as of a position. See `EventStore.state(at:)`.
    public func state(at position: Position) async throws -> PastState {
        try await events.state(at: position)
    }

    /// Writes the waiting events and releases the log's lock until `resume()`. See
    /// `EventStore.suspend(storingStates:)`.
    ///
    /// - Parameter storingStates: false to stop a checkpoint under way, for an app with little time.
    /// - Throws: `LogError` if a waiting event could not be written.
    public func suspend(storingStates: Bool = true) async throws {
        guard await !events.isSuspended else {
            // An earlier call may wait for a checkpoint.
            return try await events.suspend(storingStates: storingStates)
        }
        await closeFiles()
        do { try await events.suspend(storingStates: storingStates) } catch {
            await reopenFiles()
            throw error
        }
    }

    /// Acquires the lock again after `suspend()`. See `EventStore.resume()`.
    public func resume() async throws {
        guard await events.isSuspended else { return try await events.resume() }
        // Before the events: resuming wakes tasks that store files.
        await reopenFiles()
        do { try await events.resume() } catch {
            if await events.isSuspended { await closeFiles() }
            throw error
        }
        await startMaintenance()
    }

    /// Writes the waiting events and closes the log, for example at logout. Afterwards recording, reading of
    /// events and shipping throw `LogError` (`closed`), and sequences of changes end. Views keep their last
    /// state. The folder can be opened again.
    ///
    /// - Throws: `LogError` if a waiting event could not be written.
    public func close() async throws { try await close(storingStates: true) }

    /// Closes the store as `close()`. See `EventStore.close(storingStates:)`.
    ///
    /// - Parameter storingStates: false to store no states of views, for an app that must end soon: the next
    ///   opening folds more events.
    /// - Throws: as `close()`.
    public func close(storingStates: Bool) async throws {
        housekeeper?.end()
        await closeFiles()
        try await events.close(storingStates: storingStates)
        await images.releaseMemory()
    }

    /// Deletes the log with its whole folder, its part of the cache folder and the contents of its secret
    /// store, and closes the store, for example when a user leaves the device. The deletion is durable on
    /// return; the empty folder remains. If the process ends before, the next opening of the folder, with the
    /// secret store, completes the deletion and begins a new log.
    ///
    /// All files in the folder are deleted, including those of the app; symbolic links are removed and not
    /// followed.
    ///
    /// - Parameter discardingUnsynced: true to erase the store even if the outbox is not empty.
    /// - Throws: `UnsyncedError` with the number of events that no server has, unless `discardingUnsynced`;
    ///   the store stays open. `LogError`: if the store is still open, no event was deleted, but cached
    ///   images may be; if it is closed, the next opening completes the deletion. `SecretStoreError`: the
    ///   store is closed, and the next opening deletes everything.
    public func erase(discardingUnsynced: Bool = false) async throws {
        // No file may be stored in a folder that is being deleted.
        await closeFiles()
        do {
            try await events.erase(
                discardingUnsynced: discardingUnsynced,
                removing: cacheFolder.map { cache in
                    CacheFolder.allCases.map { $0.url(in: cache, of: events) }
                } ?? [])
        } catch {
            await reopenFiles()
            throw error
        }
        housekeeper?.end()
        await images.releaseMemory()
    }

    private var fileStores: [FileStore] {
        images.files === files ? [files] : [files, images.files]
    }

    private func closeFiles() async { for store in fileStores { await store.close() } }

    private func reopenFiles() async { for store in fileStores { await store.reopen() } }
}

extension OfflineStore: ErasableStore {
    /// The store of events underneath.
    public var eventStore: EventStore { events }
}

extension DeviceStorage {
    /// Deletes all of the app's stores on the device. See
    /// `reset(_:rules:upcasters:extending:discardingUnsynced:)`.
    public func reset(
        _ stores: [OfflineStore], rules: [EventRule] = [], upcasters: [Upcaster] = [],
        discardingUnsynced: Bool = false
    ) async throws {
        try await reset(
            stores, rules: rules, upcasters: upcasters, extending: OfflineModel.catalogue,
            discardingUnsynced: discardingUnsynced)
    }
}
