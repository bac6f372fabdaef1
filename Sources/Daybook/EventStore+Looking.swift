// The history of one event and the statistics of a log, for a support screen. Reads the files, also while a
// store writes them. Spec/operations/logtool.md.

import EventSourcing
import Foundation
import LogStorage
import Replay

extension EventStore {
    /// Reads the story of an event: its segment, causes, verdicts, decisions and present state, as
    /// `logtool why` does. The store can record meanwhile.
    ///
    /// - Parameters:
    ///   - id: the event's id.
    ///   - progress: called with the part of the log that has been read, from 0 to 1, on another thread.
    /// - Returns: the story; nil if no event has the id, or if compaction removed the event more than 90
    ///   days ago.
    /// - Throws: `LogError`: `closed`, `suspended`, `corrupt`, `io`, …; `CancellationError` if the task
    ///   is cancelled.
    /// - Complexity: O(bytes of the log); memory for one frame and the outbox.
    public nonisolated func story(
        of id: UUID, progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> EventStory? {
        try await flush()
        return try await EventStory.read(of: id, in: directory, catalogue, environment, progress)
    }

    /// Reads the statistics of the log: events, bytes, types, times, unsynced events; as `logtool inspect`
    /// does. The store can record meanwhile.
    ///
    /// - Parameter progress: called with the part of the log that has been read, from 0 to 1, on another
    ///   thread.
    /// - Throws: `LogError`: `closed`, `suspended`, `corrupt`, `io`, …; `CancellationError` if the task
    ///   is cancelled.
    /// - Complexity: O(bytes of the log); memory for one frame, the outbox and the stored states.
    public nonisolated func statistics(
        progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> LogStatistics {
        try await flush()
        return try await LogStatistics.read(directory, catalogue, environment, progress)
    }
}

extension ReadOnlyStore {
    /// Opens the log in a folder for reading, also while a store in this or another process has it open.
    /// Takes no lock and changes nothing.
    ///
    /// - Parameters:
    ///   - url: the log's folder.
    ///   - rules: the rules of the app's event types, as for `EventStore.open`: they determine the outbox.
    ///   - upcasters: the upcasters of older event types.
    ///   - views: the views to keep; the outbox is always one of them.
    ///   - catalogue: the event types of a library, to which those of the app are added.
    ///   - environment: file system and clock; tests bring their own.
    ///   - progress: called with the part of the log's bytes that has been read, from 0 to 1, on another
    ///     thread.
    /// - Throws: `EventError` (`refused`) for a URL that is not a folder on this device, and for rules,
    ///   upcasters or views that are inconsistent, with their names. `LogError`: `noSuchLog` if there is no
    ///   log yet, `newerVersion`, `corrupt`, `io`, …; `CancellationError` if the task is cancelled.
    /// - Complexity: O(states + events after the newest checkpoint), not O(history).
    public static func open(
        at url: URL, rules: [EventRule] = [], upcasters: [Upcaster] = [],
        views: [any Projection.Type] = [], extending catalogue: EventCatalogue = .ownTypes,
        environment: LogEnvironment = LogEnvironment(),
        progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> ReadOnlyStore {
        let catalogue = catalogue.adding(rules, upcasters: upcasters)
        return try await open(
            at: try url.localPath(), catalogue: catalogue,
            views: views + [Outbox.self] + catalogue.viewsOfStates, environment: environment,
            progress: progress)
    }

    /// Reads the story of an event. See `EventStore.story(of:progress:)`.
    ///
    /// - Throws: `LogError`: `noSuchLog` if the log was erased, `corrupt`, `io`, …;
    ///   `CancellationError`.
    /// - Complexity: O(bytes of the log).
    public nonisolated func story(
        of id: UUID, progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> EventStory? {
        try await EventStory.read(of: id, in: directory, catalogue, environment, progress)
    }

    /// Reads the statistics of the log. See `EventStore.statistics(progress:)`.
    ///
    /// - Throws: `LogError`: `noSuchLog` if the log was erased, `corrupt`, `io`, …;
    ///   `CancellationError`.
    /// - Complexity: O(bytes of the log).
    public nonisolated func statistics(
        progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> LogStatistics {
        try await LogStatistics.read(directory, catalogue, environment, progress)
    }
}

extension EventStory {
    fileprivate static func read(
        of id: UUID, in directory: String, _ catalogue: EventCatalogue,
        _ environment: LogEnvironment, _ progress: (@Sendable (_ part: Double) -> Void)?
    ) async throws -> EventStory? {
        try await LongRead.run(
            of: directory, environment.fileSystem, progress: progress
        ) { files in
            try read(
                of: id, in: directory, files, catalogue: catalogue, now: environment.now())?.story
        }
    }
}

extension LogStatistics {
    fileprivate static func read(
        _ directory: String, _ catalogue: EventCatalogue, _ environment: LogEnvironment,
        _ progress: (@Sendable (_ part: Double) -> Void)?
    ) async throws -> LogStatistics {
        try await LongRead.run(
            of: directory, environment.fileSystem, progress: progress
        ) { files in try LogStatistics(of: directory, files, catalogue: catalogue) }
    }
}
