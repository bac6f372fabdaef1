// A subscription: the events of a log after a position, first from the disk, then as they are
// committed. Between the store's commits and the app's subscribers. Spec/format/following.md.

import LogFormat
import LogStorage

/// The durable events of a store after a position, in order, without gaps or repetitions.
///
/// ```swift
/// for try await event in store.events(after: lastHandled) {
///     try await handle(event)
///     lastHandled = event.position
/// }
/// ```
///
/// A subscriber that stores the position of the last event it has handled resumes after it, also after
/// a restart. An event is delivered once it is synced: a power cut cannot remove it. Events that
/// compaction has removed are skipped. An event whose type was replaced is delivered in its newest form
/// (`EventCatalogue.upcast(_:)`).
///
/// The iterator reads the disk one batch at a time, when the last batch is consumed. A slow consumer
/// holds at most 256 KiB of lines (or one event), however far behind it is, and does not slow the
/// writer.
///
/// `store.recordedEvents(after:)` ends after the last event that is durable when the iteration begins.
/// A live sequence ends when the store is closed and all recorded events are delivered, and when the
/// iterating task is cancelled. While the store is suspended, it waits.
public struct EventSequence: AsyncSequence, Sendable {
    public typealias Element = Event
    public typealias Failure = any Error

    private let store: EventStore
    private let position: Position
    /// True if the sequence continues with events that are recorded during the iteration.
    private let isLive: Bool

    init(_ store: EventStore, after position: Position, isLive: Bool) {
        self.store = store
        self.position = position
        self.isLive = isLive
    }

    /// Creates an iterator that begins after the position. Iterators are independent.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(store, after: position, isLive: isLive)
    }

    /// One consumer's cursor in the log.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let store: EventStore
        private var cursor: LogCursor
        private var batch: ArraySlice<Event> = []
        /// The error to throw after the batch.
        private var failure: (any Error)?
        private var signals: AsyncStream<Void>.AsyncIterator?
        private let isLive: Bool
        /// The last position of a sequence that is not live; nil before the first call.
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

        /// The next event; nil at the end. A live sequence waits for it.
        ///
        /// - Throws: `EventError` (`refused`) if the position is after the end of the log, as after a
        ///   restored backup; `LogError` if the log cannot be read. The sequence then ends.
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
                    // Before the first read, so that no commit is missed.
                    signals = await store.commits().makeAsyncIterator()
                    try await checkStart()
                }
                while batch.isEmpty, !isOver, !Task.isCancelled {
                    try await fill()
                    guard batch.isEmpty, await signals?.next(isolation: actor) == nil else {
                        continue
                    }
                    // The store is closed. Its last events may have come after the last read.
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
                    "the log ends at position \(last); position \(cursor.position) belongs to another "
                        + "log, or to a later state of this one. Start again from position 0")
            }
        }

        /// Reads the next batch of durable events, outside the store's queue: appends continue.
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
                        // The cursor passes removed events without yielding one.
                    } while events.isEmpty && before < cursor.position && cursor.position < durable
                    if events.isEmpty, cursor.position < durable {
                        throw LogError(
                            .corrupt, path: start.directory,
                            positions: cursor.position.next...durable,
                            "a committed line is missing")
                    }
                } catch {
                    // The events before the damage are delivered first.
                    guard !events.isEmpty else { throw error }
                    failure = error
                }
                return (cursor, events[...], failure)
            }
        }
    }
}

extension EventStore {
    /// The durable events after a position, from the disk and then live: at the end of the log, the
    /// iteration waits. `recordedEvents(after:)` ends instead. See `EventSequence`.
    ///
    /// - Parameter position: the position before the first event to read; `zero` for all events.
    public nonisolated func events(after position: Position = .zero) -> EventSequence {
        EventSequence(self, after: position, isLive: true)
    }

    /// The durable events after a position, up to the last one when the iteration begins. See
    /// `EventSequence`.
    ///
    /// - Parameter position: the position before the first event to read; `zero` for all events.
    public nonisolated func recordedEvents(after position: Position = .zero) -> EventSequence {
        EventSequence(self, after: position, isLive: false)
    }
}
