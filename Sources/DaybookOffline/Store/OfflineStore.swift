// One store with everything that the four documents describe, and one call that ships it. An app whose
// events are all its own uses the EventStore underneath.

@_exported import Daybook
import Foundation

/// An app's offline store: a log of everything the user did, and the views that follow from it.
///
/// ```swift
/// let store = try await OfflineStore.open(at: url, account: "user-456")
/// try await store.cities.save("city-1", by: "user-456")
/// let note = try await store.notes.add("Great coffee", city: "city-1", by: "user-456")
/// let report = try await store.sync(to: endpoint, credentials: BearerToken("…"))
/// try await store.close()
/// ```
///
/// Every method that records something returns when it is on the disk, unless it says otherwise.
public struct OfflineStore: Sendable {
    /// The store of events underneath.
    public let events: EventStore
    /// The files beside the log.
    public let files: FileStore
    /// The image cache.
    public let images: ImageCache
    /// The folder of cached images and partial downloads; nil if the log's folder stores them.
    public let cacheFolder: URL?

    private let references: ReferenceCheck
    private let secrets: (any SecretStore)?
    private let housekeeper: Housekeeper?

    private init(
        _ events: EventStore, cache: URL?, _ references: ReferenceCheck,
        _ secrets: (any SecretStore)?, _ housekeeper: Housekeeper?
    ) async {
        self.events = events
        self.references = references
        self.secrets = secrets
        self.housekeeper = housekeeper
        cacheFolder = cache
        if let cache {
            let imageFiles = FileStore.images(of: events, in: cache.path)
            files = .besideLog(events, excludingImagesIn: imageFiles)
            images = ImageCache(events, imageFiles, before: files)
        } else {
            files = FileStore(events)
            images = ImageCache(events, files)
        }
        await startMaintenance()
    }

    /// Records that images are lost with their folder, then starts the housekeeper.
    private func startMaintenance() async {
        await images.clearIfFolderIsMissing()
        await housekeeper?.begin(events, files)
    }

    /// Saved and cached cities.
    public var cities: CityCommands { CityCommands(events, files, references) }
    /// Notes about cities.
    public var notes: NoteCommands { NoteCommands(events, references) }
    /// What a user has set for offline use.
    public var preferences: PreferencesCommands { PreferencesCommands(events) }
    /// Typed values under keys: the app's settings, and its secrets.
    public var settings: SettingsCommands { SettingsCommands(events, secrets) }
    /// Learning progress.
    public var progress: ProgressCommands { ProgressCommands(events, references) }
    /// What is kept for learning without a network: courses, lessons, review sessions, vocabulary.
    public var learning: LearningCommands { LearningCommands(events, files) }
    /// Cached content: pages, events, points of interest and their files.
    public var content: ContentCommands { ContentCommands(events, files) }
    /// Downloads of cities; a `DownloadManager` works them off.
    public var downloads: DownloadCommands { DownloadCommands(events, references) }
    /// Photos and videos.
    public var assets: AssetCommands { AssetCommands(events) }
    /// Albums of photos and videos.
    public var albums: AlbumCommands { AlbumCommands(events) }
    /// The device's own media library and its backup.
    public var deviceMedia: DeviceMediaCommands { DeviceMediaCommands(events) }
    /// What the server has not settled.
    public var outbox: OutboxCommands { events.outbox }

    /// Opens the store in a folder, or creates it there.
    ///
    /// - Parameters:
    ///   - url: the log's folder; its parent must exist. One process at a time can have it open.
    ///   - cache: a folder for what can be fetched again, which the system may delete: the bytes of
    ///     cached images, in `daybook-images`, and downloads on their way, in `daybook-downloads`.
    ///     Several logs may share it. nil for the log's own folder. Every opening of the log names the
    ///     same: images in another folder are not found, and not erased.
    ///   - account: whose store it is. A log belongs to one account for ever.
    ///   - secrets: where secret settings are kept. It belongs to this store: `erase()` deletes all
    ///     that is in it.
    ///   - rules: the rules of the app's own event types.
    ///   - upcasters: the ways from the app's older event types to those that have replaced them.
    ///   - views: the app's own views, beside the built-in ones.
    ///   - compaction: when the store takes out what nothing needs any more; nil for only when
    ///     `compact()` is called.
    ///   - references: what commands check before they record that something is about a city or a
    ///     course (EVT-17). An app whose cities have other ids than the list of cities of its cached
    ///     content gives `[]`.
    ///   - user: the user whose `pruneAfterDays` and `maxStorageLimit` count when the store cleans
    ///     up; nil for the account.
    ///   - cleansUp: whether the store removes by itself what was kept long enough, when it is opened
    ///     and resumed and every hour: such cities, and finished download jobs (CITY-15).
    ///   - environment: file system, clock and randomness; tests bring their own.
    ///   - progress: called now and then with the number of events folded so far and their total,
    ///     where there are many: at the first opening with a new or changed view.
    /// - Throws: `EventError` (`refused`) for a URL that is not one of a folder on this device, for a
    ///   cache folder in the log's folder, and for rules, upcasters, views or a policy that do not go
    ///   together (`Spec/model/events.md`, EVT-15), naming them. `LogError`: `locked` if another store has the log open, `wrongAccount`,
    ///   `newerVersion`, `corrupt`, …
    /// - Complexity: O(state + events behind the newest checkpoint), not O(history).
    public static func open(
        at url: URL, cache: URL? = nil, account: String? = nil, secrets: (any SecretStore)? = nil,
        rules: [EventRule] = [], upcasters: [Upcaster] = [],
        views: [any Projection.Type] = [], compaction: CompactionPolicy? = CompactionPolicy(),
        references: ReferenceCheck = .cities, user: String? = nil, cleansUp: Bool = true,
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

    /// Refuses a cache folder in the log's folder: the system may delete a cache.
    private static func checkIsOutside(_ cache: URL?, _ log: URL) throws(EventError) {
        guard let cache else { return }
        let folder = resolved(try cache.localPath())
        let log = resolved(try log.localPath())
        guard !(folder + "/").hasPrefix(log + "/") else {
            throw EventError(
                .refused,
                "the cache folder \(folder) is in the log's folder \(log). Choose one outside it")
        }
    }

    private static func resolved(_ path: String) -> String {
        URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath().path
    }

    /// Opens the store that all accounts of a device share, or creates it there: for what belongs
    /// to the device and not to a user, such as its settings and caches of content that is the same
    /// for everybody. It survives logout and erasure of an account's store.
    ///
    /// Types that are shipped to the server are refused there (`EventError`, `refused`), and so is
    /// syncing: the account of a request follows from its token, and this store has none.
    ///
    /// - Parameters: as `open`.
    /// - Throws: as `open`; `wrongAccount` for the log of an account.
    public static func openShared(
        at url: URL, cache: URL? = nil, secrets: (any SecretStore)? = nil,
        rules: [EventRule] = [], upcasters: [Upcaster] = [], views: [any Projection.Type] = [],
        compaction: CompactionPolicy? = CompactionPolicy(), references: ReferenceCheck = .cities,
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

    /// Opens a new, empty store in memory: for tests and previews. It behaves like one on a disk,
    /// and is gone with the last reference to it.
    ///
    /// ```swift
    /// let store = try await OfflineStore.inMemory(clock: { Date(timeIntervalSince1970: 0) })
    /// ```
    ///
    /// Where a test opens one log twice, it makes an `InMemoryFileSystem` and hands it to
    /// `open(at:environment:)`; where it cuts the power, `DaybookTestKit` has file systems for it.
    ///
    /// - Parameters:
    ///   - account: whose store it is.
    ///   - secrets: where secret settings are kept.
    ///   - rules: the rules of the app's own event types.
    ///   - upcasters: the ways from the app's older event types to those that have replaced them.
    ///   - views: the app's own views, beside the built-in ones.
    ///   - clock: what time it is.
    /// - Throws: `LogError` (`tooLarge`) for an account name that is too long; `EventError`
    ///   (`refused`) for a rule or a view that cannot be used, naming it.
    public static func inMemory(
        account: String? = nil, secrets: (any SecretStore)? = nil, rules: [EventRule] = [],
        upcasters: [Upcaster] = [], views: [any Projection.Type] = [],
        clock: @escaping @Sendable () -> Date = { Date() }
    ) async throws -> OfflineStore {
        try await open(
            at: URL(filePath: "/log"), account: account, secrets: secrets, rules: rules,
            upcasters: upcasters, views: views, environment: .inMemory(clock: clock))
    }

    /// The state of a view. It includes every append that has returned. O(1).
    public func view<View: Projection>(_ view: View.Type) -> View { events.view(view) }

    /// Records an event of the app's own. See `EventStore.append(_:durability:)`.
    @discardableResult
    public func append(
        _ payload: some EventPayload, durability: Durability = .durable
    ) async throws -> Appended {
        try await events.append(payload, durability: durability)
    }

    /// Records events of the app's own, all or none, in one commit. See `EventStore.append(_:durability:)`.
    @discardableResult
    public func append(
        _ payloads: [any EventPayload], durability: Durability = .durable
    ) async throws -> [Appended] {
        try await events.append(payloads, durability: durability)
    }

    /// Records an event of the app's own that replaces what another has set: it counts more, whatever
    /// the clock says. See `EventStore.append(_:replacing:durability:)`.
    @discardableResult
    public func append(
        _ payload: some EventPayload, replacing stamp: Stamp?, durability: Durability = .durable
    ) async throws -> Appended {
        try await events.append(payload, replacing: stamp, durability: durability)
    }

    /// Checks the state and records events, with nothing in between. See `EventStore.write(_:)`.
    @discardableResult
    public func write<Result: Sendable>(
        _ body: @escaping @Sendable (inout EventStore.Transaction) throws -> Result
    ) async throws -> Result {
        try await events.write(body)
    }

    /// Ships what the server has not settled, then takes in what other devices of the account have
    /// recorded. One call at a time: while another is under way, this one leaves everything to it,
    /// ends at once and says so in its report.
    ///
    /// - Parameters:
    ///   - endpoint: the server's address, an http or https URL, or its `…/v1/events`. A
    ///     token goes to this machine or over https only; other options are `HTTPTransport`'s.
    ///   - credentials: where the token comes from that says for which account they are.
    ///   - http: headers, certificate and proxy of the requests, and how long the server may be
    ///     silent.
    ///   - resolver: who decides conflicts; nil leaves them to the app, and they show as CONFLICT.
    ///   - deadline: when to stop at the latest; nil stops when nothing more can be done now, or
    ///     when the server has been silent for `http.timeoutSeconds`.
    ///   - progress: called when something was sent, and after every reply.
    /// - Returns: what was done and what is left.
    /// - Throws: `LogError`; `closed` where the store is closed meanwhile. `EventError` (`refused`) for
    ///   the store that all accounts share. `TransportError` for an endpoint or options that cannot be
    ///   used (`badEndpoint`, `tokenInClear`, …), before anything is sent; a certificate that cannot be
    ///   opened is in the report on Linux. Failures of the network are no errors; they are in the report.
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

    /// The headers and the client certificate that the secret store keeps, as options of requests; none
    /// without a secret store. See `SecretStore.httpOptions()`.
    public func httpOptions() async throws(SecretStoreError) -> HTTPOptions {
        guard let secrets else { return HTTPOptions() }
        return try await secrets.httpOptions()
    }

    /// Ships and reads as `sync(to:)` does, over a transport with options of its own: a time-out,
    /// headers, the server's name for the account.
    ///
    /// - Returns: what was done and what is left.
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

    /// The views as they were at a position. See `EventStore.state(at:)`.
    public func state(at position: Position) async throws -> PastState {
        try await events.state(at: position)
    }

    /// Writes what waits and releases the log's lock until `resume()`. See `EventStore.suspend()`.
    public func suspend() async throws {
        guard await !events.isSuspended else { return }
        await closeFiles()
        do { try await events.suspend() } catch {
            await reopenFiles()
            throw error
        }
    }

    /// Takes the lock again after `suspend()`. See `EventStore.resume()`.
    public func resume() async throws {
        guard await events.isSuspended else { return try await events.resume() }
        // First: resuming wakes those who store files.
        await reopenFiles()
        do { try await events.resume() } catch {
            if await events.isSuspended { await closeFiles() }
            throw error
        }
        await startMaintenance()
    }

    /// Writes what waits and closes the log: what an app does at logout. The store cannot be used
    /// any more: recording, reading of events and shipping throw `LogError` (`closed`), and
    /// sequences of changes end. Views keep the state that they had. The folder can be opened again.
    ///
    /// - Throws: `LogError` where something that waited could not be written.
    public func close() async throws {
        housekeeper?.end()
        await closeFiles()
        try await events.close()
        await images.releaseMemory()
    }

    /// Deletes the log with everything in its folder, what it has in its cache folder and all that is
    /// in its secret store, for good, and closes the store: what an app does when a user leaves the device. On return it is gone,
    /// power cuts included; the empty folder stays. If the process ends before, the next opening of
    /// the folder, with the secret store, deletes the rest and begins a new log.
    ///
    /// Files that are in the folder are deleted whoever put them there; symbolic links are removed
    /// and not followed.
    ///
    /// - Parameter discardingUnsynced: whether to go on if the outbox is not empty.
    /// - Throws: `UnsyncedError` with the number of events that no server has, if it is not told to
    ///   discard them; the store stays open. `LogError`: with the store open, no event was deleted, cached images may be;
    ///   with the store closed, the next opening deletes the rest. `SecretStoreError`: the store is
    ///   closed, and the next opening deletes all.
    public func erase(discardingUnsynced: Bool = false) async throws {
        // No file may be stored in what is being deleted.
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
    /// Deletes everything that the app keeps on the device. See
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
