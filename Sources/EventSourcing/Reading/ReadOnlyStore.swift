// A log and its views for a process that only reads: a widget, a share extension, a support screen.
// Reads without the lock of the writer, which may be another process. Between the views and the screens.
// Spec/format/following.md.

import Foundation
import LogFormat
import LogStorage
import Telemetry

/// A log with its views, for reading while another store may write it.
///
/// ```swift
/// let store = try await ReadOnlyStore.open(at: url, rules: rules, views: [Trips.self])
/// show(await store.view(Trips.self))
/// for try await _ in store.changes() { show(await store.view(Trips.self)) }
/// ```
///
/// It takes no lock and changes nothing in the folder, which may be read-only. The views are those of the
/// log at the last `refresh()`. The writer may append, seal, compact, repair or erase the log meanwhile.
/// Once the log is erased, `refresh()` throws `noSuchLog` and the views do not change.
///
/// An event is visible once its commit is in the file, possibly before the commit's sync has returned: a
/// power cut or a failed sync can still remove it. Relaxed events are visible when they are committed.
///
/// Memory: the views; at opening the stored states; while it reads, six runs of 256 KiB of lines, or of
/// one longer line. One file of the log is open while the store exists; there is nothing to close.
public actor ReadOnlyStore {
    /// The log's own id.
    public nonisolated let logID: UUID
    /// The account the log belongs to, if any.
    public nonisolated let account: String?
    /// The log's folder.
    public nonisolated let directory: String
    /// The known event types.
    public nonisolated let catalogue: EventCatalogue
    /// File system and clock.
    public nonisolated let environment: LogEnvironment

    private nonisolated let executor = StoreExecutor()
    /// The store's own serial queue: waiting for the disk blocks no thread of the cooperative pool.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }

    private let followed: FollowedViews

    // MARK: Opening

    /// Opens the log in a folder and folds its views, from stored states if there are any.
    ///
    /// - Parameters:
    ///   - directory: the log's folder.
    ///   - catalogue: the known event types.
    ///   - views: the views to fold.
    ///   - environment: file system and clock.
    ///   - progress: called with the part of the log's bytes that has been read, from 0 to 1, on another
    ///     thread.
    /// - Throws: `EventError` (`refused`) for conflicting rules, upcasters or views, naming them;
    ///   `LogError` as `LogReader.forEachLine`, and `noSuchLog` while the log's writer is creating it;
    ///   `CancellationError`.
    /// - Complexity: O(states + events after the newest checkpoint); O(events) if a view has no stored
    ///   state, or one of another version.
    package static func open(
        at directory: String, catalogue: EventCatalogue, views: [any Projection.Type],
        environment: LogEnvironment = LogEnvironment(),
        progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> ReadOnlyStore {
        if let fault = catalogue.fault { throw fault }
        try ViewSet.check(views)
        let instruments = Instruments()
        return try await instruments.measure(.open) {
            let store = try await LongRead.run(
                of: directory, environment.fileSystem, progress: progress
            ) { files in
                let reader = LogReader(directory, fileSystem: files)
                let catalogue = reader.adding(recordedRulesTo: catalogue, files)
                return try ReadOnlyStore(
                    reader, files, catalogue, ViewSet(views, catalogue), environment, instruments)
            }
            // Rebuilds the views if an event was retracted after the stored states.
            try await store.refresh()
            return store
        }
    }

    private init(
        _ reader: LogReader, _ files: any FileSystem, _ catalogue: EventCatalogue,
        _ views: ViewSet, _ environment: LogEnvironment, _ instruments: Instruments
    ) throws {
        let followed = try FollowedViews(reader, files, catalogue, views, environment, instruments)
        logID = followed.logID
        account = followed.account
        directory = followed.directory
        self.catalogue = catalogue
        self.environment = environment
        self.followed = followed
    }

    // MARK: Reading

    /// The last position that the views have folded; `zero` for a log without events.
    public var position: Position { followed.position }

    /// The state of a view that was passed to `open`, as of the last `refresh()`. Waits for the end of a
    /// running one. O(1).
    public func view<View: Projection>(_ view: View.Type) -> View {
        followed.views.snapshot(view)
    }

    /// The events after a position, up to the end of the log when the iteration reaches it. See
    /// `StoredEvents`. They may extend beyond `self.position`.
    ///
    /// - Parameter position: the position before the first event to read; `zero` for all events.
    public nonisolated func events(after position: Position = .zero) -> StoredEvents {
        StoredEvents(
            after: LogCursor(
                directory, of: logID.integer, after: position, fileSystem: environment.fileSystem),
            catalogue)
    }

    // MARK: Following

    /// Folds the events committed since the last call. A log that was reset to an earlier state, as by a
    /// restored backup, must be opened again.
    ///
    /// - Returns: the last position that the views have folded.
    /// - Throws: `LogError`: `noSuchLog` if the log was erased or the folder has another log; `corrupt`,
    ///   `io`, …; `CancellationError`. Events read before the error are in the views, and the next call
    ///   continues after them.
    /// - Complexity: O(new bytes), and one frame; if folded events were retracted, as `open`.
    @discardableResult
    public func refresh() throws -> Position {
        try followed.refresh()
        return position
    }

    /// Refreshes at intervals, and yields the position of the views: the current one, then each new one.
    /// See `ReadOnlyChanges`.
    ///
    /// - Parameter interval: the time between two refreshes. Each decodes the last frame again, less than
    ///   192 KiB of lines.
    public nonisolated func changes(
        every interval: Duration = .milliseconds(500)
    ) -> ReadOnlyChanges {
        ReadOnlyChanges(self, interval)
    }
}
