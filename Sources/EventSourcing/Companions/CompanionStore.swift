// A store for a process that is not the log's owner: a widget, an extension, a command. It appends to spools of its
// own, and reads the owner's views with its own unabsorbed events folded in. Spec/format/companions.md.

import Foundation
import LogFormat
import LogStorage
import Telemetry

/// A log of another process, with a companion's own events.
///
/// ```swift
/// let companion = try await EventStore.openCompanion(
///     at: url, name: "widget", rules: rules, views: [Trips.self])
/// try await companion.append(TripPlanned(city: "lisbon"))
/// show(await companion.view(Trips.self))
/// ```
///
/// It never takes the lock of the log. `append` holds the lock of one small spool until it returns; between calls
/// the companion holds no lock, so a system that suspends its process finds none. There is nothing to close.
///
/// The owner absorbs the events when it is open: then they are in the log under their ids, and are shipped like the
/// owner's own. Memory: the views, and the waiting events.
public actor CompanionStore {
    /// The companion's name.
    public nonisolated let name: String
    /// The main log's id.
    public nonisolated let logID: UUID
    /// The account the log belongs to, if any.
    public nonisolated let account: String?
    /// The log's folder.
    public nonisolated let directory: String
    /// The known event types.
    public nonisolated let catalogue: EventCatalogue
    /// File system, clock and randomness.
    public nonisolated let environment: LogEnvironment
    /// The bounds of what may wait.
    public nonisolated let limits: CompanionLimits

    private nonisolated let executor = StoreExecutor()
    /// The store's own serial queue: waiting for the disk blocks no thread of the cooperative pool.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }

    let followed: FollowedViews
    nonisolated let folder: SpoolFolder
    var spooled = SpooledEvents()
    private var previews = CompanionPreviews()
    /// Milliseconds to add to the device's clock to get the server's, as the owner has recorded.
    var clockOffset: Int64 = 0
    /// The number of looks at the disk.
    package private(set) var looks = 0

    // MARK: Opening

    /// Opens a companion of the log in a folder.
    ///
    /// - Parameters:
    ///   - directory: the log's folder. The owner has created the log.
    ///   - name: the companion's name: 1 to 64 characters `[a-z0-9-]`, the first no hyphen. Processes that may run at
    ///     the same time can share it.
    ///   - account: the account that the log must belong to; nil for any.
    ///   - catalogue: the known event types.
    ///   - views: the views to fold.
    ///   - limits: the bounds of what may wait for the owner.
    ///   - environment: file system, clock and randomness.
    /// - Throws: `EventError` (`refused`) for a wrong name, and for conflicting rules, upcasters or views.
    ///   `LogError`: `noSuchLog`, `wrongAccount`, `newerVersion`, `corrupt`, `io`; `CancellationError`.
    /// - Complexity: O(states + events after the newest checkpoint + waiting events).
    package static func open(
        at directory: String, name: String, account: String? = nil, catalogue: EventCatalogue,
        views: [any Projection.Type], limits: CompanionLimits = CompanionLimits(),
        environment: LogEnvironment = LogEnvironment()
    ) async throws -> CompanionStore {
        if let fault = catalogue.fault { throw fault }
        try ViewSet.check(views)
        guard SpoolName.isCompanion(name) else {
            throw EventError(
                .refused,
                "the companion's name has other characters than a-z, 0-9 and hyphens, begins with a hyphen, or has "
                    + "not 1 to 64 of them")
        }
        let instruments = Instruments()
        return try await instruments.measure(.open) {
            let store = try await BlockingWork.run {
                let files = environment.fileSystem
                let reader = LogReader(directory, fileSystem: files)
                let catalogue = reader.adding(recordedRulesTo: catalogue, files)
                return try CompanionStore(
                    FollowedViews(
                        reader, files, catalogue, ViewSet(views, catalogue), environment,
                        instruments, keepsFloor: true), name, account, limits, environment)
            }
            try await store.refresh()
            return store
        }
    }

    private init(
        _ followed: sending FollowedViews, _ name: String, _ account: String?,
        _ limits: CompanionLimits, _ environment: LogEnvironment
    ) throws {
        if let account, followed.account != account {
            throw LogError(
                .wrongAccount, path: followed.directory,
                "the log belongs to \(followed.account == nil ? "no" : "another") account; open a companion of "
                    + "this account's log")
        }
        self.name = name
        self.account = followed.account
        self.limits = limits
        self.environment = environment
        logID = followed.logID
        directory = followed.directory
        catalogue = followed.catalogue
        folder = SpoolFolder(
            of: directory, logID.integer, account: followed.account, environment)
        self.followed = followed
    }

    // MARK: Reading

    /// The last position of the main log that the views have folded.
    public var position: Position { followed.position }

    /// The companion's events that the owner has not absorbed, as of the last look.
    public var backlog: CompanionBacklog { spooled.backlog }

    /// The state of a view that was passed to `open`: of the main log as of the last `refresh()`, with the companion's
    /// waiting events, those appended just now included.
    ///
    /// - Complexity: O(1); each waiting event is folded once, and again after the view has changed in the main log.
    public func view<View: Projection>(_ view: View.Type) -> View {
        previews.state(of: view, followed, spooled, folder)
    }

    /// Reads the companion's spools, then what was committed to the main log since the last call. An event that the
    /// owner absorbs meanwhile is in the views once.
    ///
    /// - Throws: `LogError`: `noSuchLog` if the log was erased or the folder has another log; `corrupt`, `io`, …;
    ///   `CancellationError`. The next call continues.
    /// - Complexity: O(new bytes), and one frame of each; events found in a spool for the first time are looked up
    ///   in the main log.
    public func refresh() throws {
        looks += 1
        // The cursor takes a folder without segments for a log that is being created.
        try folder.requireMain()
        // First, so that an event that is absorbed meanwhile is in both, and counts once.
        let states = try folder.readFromLast(of: name) { spool in
            let state = folder.state(of: spool)
            if state == .own { try spooled.read(spool, in: folder, catalogue) }
            return (spool, state)
        }
        var found: Set<UInt128> = []
        do {
            defer { spooled.markAbsorbed(found) }
            try followed.refresh { event in
                let id = event.id.integer
                if spooled.isWaiting(id) { found.insert(id) }
            }
        }
        try resolve()
        // The events of a spool that is empty or set aside are in the main log.
        spooled.forget(
            except: states.filter {
                switch $0.1 {
                case .own, .unreadable: true
                case .empty, .foreign, .aside: false
                }
            }.map(\.0))
    }

    /// Looks up the events of spools that the companion has found and not appended.
    private func resolve() throws {
        let ids = spooled.unresolved
        guard !ids.isEmpty else { return }
        let known = try lookUp(ids)
        // A later position is folded at the next refresh.
        spooled.markAbsorbed(Set(known.filter { $0.value.position <= position }.keys))
        spooled.resolve()
    }

    /// Sets the clock's correction, as the owner's outbox has it.
    package func setClockOffset(_ milliseconds: Int64) { clockOffset = milliseconds }

    /// The corrected time, in milliseconds since 1970.
    var now: Int64 { environment.now() + clockOffset }

    /// What the main log knows of ids.
    func lookUp(_ ids: Set<UInt128>) throws -> [UInt128: LogReader.KnownID] {
        let reader = LogReader(directory, fileSystem: environment.fileSystem)
        let now = environment.now()
        // A segment that was compacted during the call looks damaged.
        return try (try? reader.known(ids, now: now)) ?? reader.known(ids, now: now)
    }
}

/// The states of views with waiting events.
private struct CompanionPreviews {
    private struct Preview {
        var state: any Projection
        /// The view's revision in the main log.
        var revision: UInt64
        var rewrites: Int
        /// The number of waiting events in the state.
        var count: Int
    }

    private var previews: [ObjectIdentifier: Preview] = [:]

    mutating func state<View: Projection>(
        of view: View.Type, _ followed: FollowedViews, _ spooled: SpooledEvents,
        _ folder: SpoolFolder
    ) -> View {
        let present = followed.views.present(view)
        let key = ObjectIdentifier(view)
        guard !spooled.waiting.isEmpty else {
            previews[key] = nil
            return present.view
        }
        // Removed from the dictionary, so that the fold changes it in place.
        let known = previews.removeValue(forKey: key)
        var (state, count) = (present.view, 0)
        if let known, known.revision == present.revision, known.rewrites == spooled.rewrites,
            let folded = known.state as? View
        {
            (state, count) = (folded, known.count)
        }
        if count < spooled.waiting.count {
            // As if the owner absorbed them now.
            let source = folder.mainIncarnation
            let events = spooled.waiting[count...].enumerated().map { index, event in
                let position = followed.position.advanced(by: count + index + 1)
                return Event(
                    LinePrefix(
                        own: event.id.integer, source: source ?? event.source.integer, at: position),
                    content: event.content, catalogue: followed.catalogue,
                    lineBytes: event.lineBytes)
            }
            state.fold(events, by: followed.catalogue)
        }
        previews[key] = Preview(
            state: state, revision: present.revision, rewrites: spooled.rewrites,
            count: spooled.waiting.count)
        return state
    }
}
