// Opens the stores of an app: of an account, shared by all accounts, or in memory. Spec/overview.md.

@_exported import EventSourcing
import Foundation
// The persistent collections for the states of views.
@_exported import HashTreeCollections
@_exported import LogFormat
@_exported import LogStorage
@_exported import Replay

extension EventStore {
    /// Opens the store in a folder, or creates it there.
    ///
    /// ```swift
    /// let store = try await EventStore.open(
    ///     at: url, account: "user-456",
    ///     rules: [.of(TripPlanned.self, action: "PLAN_TRIP")], views: [Trips.self])
    /// try await store.append(TripPlanned(trip: "spring", stop: "north pier"))
    /// print(store.view(Trips.self).stops)
    /// try await store.sync(to: endpoint, credentials: BearerToken("…"))
    /// try await store.close()
    /// ```
    ///
    /// - Parameters:
    ///   - url: the log's folder; its parent must exist. One process at a time can have it open.
    ///   - create: whether a missing or empty folder becomes a new log.
    ///   - account: the account that owns the log, fixed when the log is created; nil accepts any account.
    ///   - secrets: the secret store of the log: `erase()` deletes all secrets in it.
    ///   - rules: the rules of the app's event types.
    ///   - upcasters: the upcasters of older event types.
    ///   - views: the views to keep; the outbox is always one of them.
    ///   - catalogue: the event types of a library, to which those of the app are added. Without one,
    ///     an app can name any type that does not begin with `daybook.` (EVT-16).
    ///   - compaction: when the store removes events that no view needs any more; nil for only when
    ///     `compact()` is called.
    ///   - environment: file system, clock and randomness; tests bring their own.
    ///   - progress: called with the number of events folded so far and their total, if there are many: at
    ///     the first opening with a new or changed view.
    /// - Throws: `EventError` (`refused`) for a URL that is not a folder on this device, and for rules,
    ///   upcasters, views or a policy that are inconsistent (`Spec/model/events.md`, EVT-15), with their
    ///   names. `LogError`: `locked` if another store has the log open, `wrongAccount`, `newerVersion`,
    ///   `corrupt`, … `SecretStoreError` if an interrupted erasure cannot be finished.
    /// - Complexity: O(states + events after the newest checkpoint), not O(history).
    public static func open(
        at url: URL, create: Bool = true, account: String? = nil,
        secrets: (any SecretStore)? = nil,
        rules: [EventRule] = [], upcasters: [Upcaster] = [], views: [any Projection.Type] = [],
        extending catalogue: EventCatalogue = .ownTypes,
        compaction: CompactionPolicy? = CompactionPolicy(),
        environment: LogEnvironment = LogEnvironment(),
        progress: (@Sendable (_ folded: Int, _ total: Int) -> Void)? = nil
    ) async throws -> EventStore {
        try await open(
            url, create: create, account: account, isShared: false, secrets,
            catalogue.adding(rules, upcasters: upcasters), views, compaction, environment, progress)
    }

    /// Opens the store that all accounts of a device share, or creates it: for data of the device and not of
    /// a user. It survives logout and erasure of an account's store.
    ///
    /// Shipped types are refused in it (`EventError`, `refused`), and so is syncing: a request is for the
    /// account of its token, and this store has no account.
    ///
    /// - Parameters: as `open`.
    /// - Throws: as `open`; `wrongAccount` for the log of an account.
    public static func openShared(
        at url: URL, secrets: (any SecretStore)? = nil,
        rules: [EventRule] = [], upcasters: [Upcaster] = [], views: [any Projection.Type] = [],
        extending catalogue: EventCatalogue = .ownTypes,
        compaction: CompactionPolicy? = CompactionPolicy(),
        environment: LogEnvironment = LogEnvironment(),
        progress: (@Sendable (_ folded: Int, _ total: Int) -> Void)? = nil
    ) async throws -> EventStore {
        try await open(
            url, create: true, account: nil, isShared: true, secrets,
            catalogue.adding(rules, upcasters: upcasters).withoutShipping, views, compaction,
            environment, progress)
    }

    /// Opens a new, empty store in memory: for tests and previews. It behaves like a store on a disk, and is
    /// released with the last reference to it.
    ///
    /// A test that opens one log twice creates an `InMemoryFileSystem` and passes it to
    /// `open(at:environment:)`; `DaybookTestKit` has file systems that simulate power failures.
    ///
    /// - Parameters:
    ///   - account: the account that owns the log.
    ///   - secrets: the secret store of the log.
    ///   - rules: the rules of the app's event types.
    ///   - upcasters: the upcasters of older event types.
    ///   - views: the views to keep.
    ///   - catalogue: the event types of a library, to which those of the app are added.
    ///   - clock: the source of the time.
    /// - Throws: `LogError` (`tooLarge`) for an account name that is too long; `EventError`
    ///   (`refused`) for a rule or a view that cannot be used, naming it.
    public static func inMemory(
        account: String? = nil, secrets: (any SecretStore)? = nil, rules: [EventRule] = [],
        upcasters: [Upcaster] = [], views: [any Projection.Type] = [],
        extending catalogue: EventCatalogue = .ownTypes,
        clock: @escaping @Sendable () -> Date = { Date() }
    ) async throws -> EventStore {
        try await open(
            at: URL(filePath: "/log"), account: account, secrets: secrets, rules: rules,
            upcasters: upcasters, views: views, extending: catalogue,
            environment: .inMemory(clock: clock))
    }

    private static func open(
        _ url: URL, create: Bool, account: String?, isShared: Bool,
        _ secrets: (any SecretStore)?,
        _ catalogue: EventCatalogue, _ views: [any Projection.Type],
        _ compaction: CompactionPolicy?, _ environment: LogEnvironment,
        _ progress: (@Sendable (_ folded: Int, _ total: Int) -> Void)?
    ) async throws -> EventStore {
        try compaction?.check()
        guard account != "" else {
            throw EventError(
                .refused,
                "the account is empty; name it, or pass nil to open the log of any account")
        }
        let directory = try url.localPath()
        var eraseSecrets: (@Sendable () async throws -> Void)?
        if let secrets {
            try await finishErasure(of: secrets, with: directory, environment)
            eraseSecrets = { try await secrets.deleteAll() }
        }
        let store = try await open(
            at: directory, account: account, create: create, isShared: isShared,
            catalogue: catalogue,
            views: views + [Outbox.self] + catalogue.viewsOfStates, environment: environment,
            progress: progress,
            eraseSecrets: eraseSecrets)
        // Before compaction, whose records get their time from the corrected clock.
        if !isShared { await store.restoreClock() }
        // A folded record must replace the sync records before compaction removes them.
        await store.prepareCompaction { try await $0.foldSyncRecords() }
        try await store.setCompactionPolicy(compaction)
        return store
    }

    /// Finishes an erasure that was interrupted before the secrets were deleted.
    private static func finishErasure(
        of secrets: any SecretStore, with directory: String, _ environment: LogEnvironment
    ) async throws {
        let claimed = try await BlockingWork.run {
            try ClaimedLog.beingErasedWithSecrets(at: directory, environment)
        }
        guard let claimed else { return }
        defer { claimed.release() }
        try await secrets.deleteAll()
        try await BlockingWork.run { try claimed.erase() }
    }
}

extension EventCatalogue {
    /// The catalogue without any types that an app extends. It reserves the types that begin with `daybook.`
    /// (`Spec/model/events.md`, EVT-16).
    public static let ownTypes = EventCatalogue().reservingLibraryTypes
}

extension LogEnvironment {
    /// An environment with files in memory and a given clock: for tests and previews.
    public static func inMemory(
        clock: @escaping @Sendable () -> Date = { Date() }
    ) -> LogEnvironment {
        LogEnvironment(
            fileSystem: InMemoryFileSystem(), now: { Timestamp(clock()).milliseconds })
    }
}
