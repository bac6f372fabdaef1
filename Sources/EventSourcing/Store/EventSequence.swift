// A subscription: the events of a log from a position on, first from the disk, then as they are
// committed. Comes after the store's commits, before the app's subscribers. Spec/format/following.md.

import LogFormat
import LogStorage

/// The durable events of a store behind a position, in order, without gap or repeat.
///
/// ```swift
/// for try await event in store.events(after: lastHandled) {
///     try await handle(event)
///     lastHandled = event.position
/// }
/// ```
///
/// Whoever stores the position of the last event that was dealt with goes on behind it, also after a
/// restart. An event is delivered once it is on the disk: no power cut takes it back. Events that
/// compaction has removed are left out. An event of a type that was replaced comes in its newest
/// form (`EventCatalogue.upcast(_:)`).
///
/// Iterating reads the disk a batch at a time, when the one before has been taken: a slow consumer
/// holds at most 256 KiB of lines (or one event), however far behind it is, and slows nobody.
///
/// `store.recordedEvents(after:)` ends behind the last event that there is when it begins. Otherwise
/// the sequence ends once the store is closed and what was recorded before has been taken, and when
/// the iterating task is cancelled. While the store is suspended it waits.
public struct EventSequence: AsyncSequence, Sendable {
    public typealias Element = Event
    public typealias Failure = any Error

    private let store: EventStore
    private let position: Position
    /// Whether it goes on with what is recorded after it began.
    private let isLive: Bool

    init(_ store: EventStore, after position: Position, isLive: Bool) {
        self.store = store
        self.position = position
        self.isLive = isLive
    }

    /// Begins behind the position; every iterator by itself.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(store, after: position, isLive: isLive)
    }

    /// One consumer's place in the log.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let store: EventStore
        private var cursor: LogCursor
        private var batch: ArraySlice<Event> = []
        /// The error that follows the batch.
        private var failure: (any Error)?
        private var signals: AsyncStream<Void>.AsyncIterator?
        private let isLive: Bool
        /// Where a sequence that is not live ends, once it has begun.
        private var end: Position?
        private var isOver = false

        private static let batchBytesMax = 256 * 1024
        private static let batchEventsMax = 1024

        init(_ store: EventStore, after position: Position, isLive: Bool) {
            self.store = store
            self.isLive = isLive
            cursor = LogCursor(
                store.directory, of: store.logID.integer, after: position,
                fileSystem: store.environment.fileSystem)
        }

        /// The next event; nil at the end. Waits where there is none yet.
        ///
        /// - Throws: `EventError` (`refused`) where the position is behind the end of the log, as
        ///   after a restored backup; `LogError` where the log cannot be read. Then it is over.
        /// - Complexity: amortised O(bytes of the event).
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws -> Event? {
            do {
                if !isLive {
                    if end == nil {
                        try await checkStart()
                        end = await store.lastDurable
                    }
                    if batch.isEmpty, !isOver, !Task.isCancelled {
                        try await fill()
                        isOver = batch.isEmpty
                    }
                    return Task.isCancelled ? nil : batch.popFirst()
                }
                if signals == nil, !isOver {
                    // Before the first look, so that no commit is missed.
                    signals = await store.commits().makeAsyncIterator()
                    try await checkStart()
                }
                while batch.isEmpty, !isOver, !Task.isCancelled {
                    try await fill()
                    guard batch.isEmpty, await signals?.next(isolation: actor) == nil else {
                        continue
                    }
                    // Closed: what was recorded last may have come after the look.
                    isOver = true
                    try await fill()
                }
            } catch {
                isOver = true
                signals = nil
                throw error
            }
            guard !Task.isCancelled else { return nil }
            return batch.popFirst()
        }

        nonisolated(nonsending) private func checkStart() async throws {
            let last = await store.lastDurable
            guard cursor.position <= last else {
                throw EventError(
                    .refused,
                    "the log ends at position \(last); position \(cursor.position) is of another "
                        + "log, or of a later state of this one. Begin anew")
            }
        }

        /// Reads what is durable, up to a batch. Not on the store's queue: appends go on.
        nonisolated(nonsending) private mutating func fill() async throws {
            if let failure { throw failure }
            let last = await store.lastDurable
            let durable = Swift.min(last, end ?? last)
            guard durable > cursor.position else { return }
            let (start, catalogue) = (cursor, store.catalogue)
            (cursor, batch, failure) = try await BlockingWork.run {
                var cursor = start
                var failure: (any Error)?
                var events: [Event] = []
                var bytes = 0
                do {
                    var before: Position
                    repeat {
                        before = cursor.position
                        try cursor.poll(through: durable) { prefix, line in
                            let event = try LogReader.event(
                                line, prefix, catalogue, directory: start.directory)
                            events.append(catalogue.newestForm(of: event))
                            bytes += line.byteCount
                            return bytes < Self.batchBytesMax && events.count < Self.batchEventsMax
                        }
                        // Removed events move the cursor without an event.
                    } while events.isEmpty && before < cursor.position && cursor.position < durable
                    if events.isEmpty, cursor.position < durable {
                        throw LogError(
                            .corrupt, path: start.directory,
                            positions: cursor.position.next...durable,
                            "a committed line is not there any more")
                    }
                } catch {
                    // The events before the damage come first.
                    guard !events.isEmpty else { throw error }
                    failure = error
                }
                return (cursor, events[...], failure)
            }
        }
    }
}

extension EventStore {
    /// The durable events behind a position, from the disk and then live: where there is none yet,
    /// iterating waits. `recordedEvents(after:)` ends instead. See `EventSequence`.
    ///
    /// - Parameter position: the last event that is not wanted any more; `zero` for all.
    public nonisolated func events(after position: Position = .zero) -> EventSequence {
        EventSequence(self, after: position, isLive: true)
    }

    /// The durable events behind a position, up to the last one that there is when the iteration
    /// begins. Ends there; on an empty log at once. See `EventSequence`.
    ///
    /// - Parameter position: the last event that is not wanted any more; `zero` for all.
    public nonisolated func recordedEvents(after position: Position = .zero) -> EventSequence {
        EventSequence(self, after: position, isLive: false)
    }
}
