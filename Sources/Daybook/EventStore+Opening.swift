// What an app with events of its own imports: a store of them that views follow, that syncs, and that
// removes by itself what nothing needs any more. Spec/overview.md.

@_exported import EventSourcing
import Foundation
// The persistent collections of which states of views are made.
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
    ///   - account: the account that owns the log, fixed when it is created; nil takes what the log says.
    ///   - secrets: the secrets that go with the log: `erase()` deletes all that is in this secret store.
    ///   - rules: the rules of the app's event types.
    ///   - upcasters: the ways from older event types to those that have replaced them.
    ///   - views: the views to keep; the outbox is always one of them.
    ///   - catalogue: the event types of a library, to which those of the app are added. Without one,
    ///     an app can name any type that does not begin with `daybook.` (EVT-16).
    ///   - compaction: when the store takes out what nothing needs any more; nil for only when
    ///     `compact()` is called.
    ///   - environment: file system, clock and randomness; tests bring their own.
    ///   - progress: called now and then with the number of events folded so far and their total,
    ///     where there are many: at the first opening with a new or changed view.
    /// - Throws: `EventError` (`refused`) for a URL that is not one of a folder on this device, and for
    ///   rules, upcasters, views or a policy that do not go together (`Spec/model/events.md`, EVT-15), naming
    ///   them. `LogError`: `locked` if another store has the log open, `wrongAccount`, `newerVersion`,
    ///   `corrupt`, … `SecretStoreError` where an erasure that a kill has interrupted cannot be finished.
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

    /// Opens the store that all accounts of a device share, or creates it there: for what belongs
    /// to the device and not to a user. It survives logout and erasure of an account's store.
    ///
    /// Types that are shipped to the server are refused there (`EventError`, `refused`), and so is
    /// syncing: the account of a request follows from its token, and this store has none.
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

    /// Opens a new, empty store in memory: for tests and previews. It behaves like one on a disk,
    /// and is gone with the last reference to it.
    ///
    /// Where a test opens one log twice, it makes an `InMemoryFileSystem` and hands it to
    /// `open(at:environment:)`; where it cuts the power, `DaybookTestKit` has file systems for it.
    ///
    /// - Parameters:
    ///   - account: the account that owns the log.
    ///   - secrets: the secrets that go with the log.
    ///   - rules: the rules of the app's event types.
    ///   - upcasters: the ways from older event types to those that have replaced them.
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
                "the account is empty. Name it, or pass nil to open the log of any account")
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
            views: views + [Outbox.self], environment: environment, progress: progress,
            eraseSecrets: eraseSecrets)
        // First: what compaction records is stamped with the clock.
        if !isShared { await store.restoreClock() }
        // Sync records are summed up before they are taken out.
        await store.prepareCompaction { try await $0.foldSyncRecords() }
        try await store.setCompactionPolicy(compaction)
        return store
    }

    /// Deletes the secrets of a store that was being erased when the process ended.
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
    /// The catalogue that an app with types of its own extends: it reserves those that begin with
    /// `daybook.` (`Spec/model/events.md`, EVT-16).
    public static let ownTypes = EventCatalogue().reserving("daybook.")
}

extension LogEnvironment {
    /// An environment whose files are in memory, with a clock of its own: for tests and previews.
    public static func inMemory(
        clock: @escaping @Sendable () -> Date = { Date() }
    ) -> LogEnvironment {
        LogEnvironment(
            fileSystem: InMemoryFileSystem(), now: { Timestamp(clock()).milliseconds })
    }
}
