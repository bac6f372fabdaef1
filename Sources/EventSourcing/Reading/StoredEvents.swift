// The events of a log for a reader without the writer's lock, from a position to the end. EventSequence is
// the counterpart for the writer, which knows the durable end. Spec/format/following.md.

import LogFormat
import LogStorage

/// The events of a log after a position, in order, each once; ends at the end of the log.
///
/// Events that compaction has removed are skipped. An event whose type was replaced is in its newest form
/// (`EventCatalogue.upcast(_:)`). The iterator reads the disk one chunk at a time, on another thread: at
/// most 256 KiB of lines, or one event.
public struct StoredEvents: AsyncSequence, Sendable {
    public typealias Element = Event
    public typealias Failure = any Error

    private let start: LogCursor
    private let catalogue: EventCatalogue

    init(after start: LogCursor, _ catalogue: EventCatalogue) {
        self.start = start
        self.catalogue = catalogue
    }

    /// Creates an iterator that begins after the position. Iterators are independent.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(start, catalogue) }

    /// One consumer's cursor in the log.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private var chunk: Chunk
        private let catalogue: EventCatalogue

        fileprivate init(_ start: LogCursor, _ catalogue: EventCatalogue) {
            chunk = Chunk(cursor: start)
            self.catalogue = catalogue
        }

        /// The next event; nil at the end, and when the task is cancelled.
        ///
        /// - Throws: `LogError`: `noSuchLog` if the log was erased, `corrupt`, `io`, … after all events
        ///   before the damage. The sequence then ends.
        /// - Complexity: amortised O(bytes of the event).
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws -> Event? {
            guard !Task.isCancelled else { return nil }
            if chunk.events.isEmpty, !chunk.isLast {
                chunk = try await BlockingWork.run { [chunk, catalogue] in chunk.next(catalogue) }
            }
            if let event = chunk.events.popFirst() { return event }
            guard let failure = chunk.failure else { return nil }
            chunk.failure = nil
            throw failure
        }
    }

    /// A chunk of events, and the cursor after them.
    private struct Chunk: Sendable {
        var cursor: LogCursor
        var events: ArraySlice<Event> = []
        var isLast = false
        /// The error to throw after the events.
        var failure: (any Error)?

        func next(_ catalogue: EventCatalogue) -> Chunk {
            var next = Chunk(cursor: cursor)
            var events: [Event] = []
            var bytes = 0
            do {
                next.isLast = try next.cursor.poll { prefix, line in
                    let event = try LogReader.event(
                        line, prefix, catalogue, directory: cursor.directory)
                    events.append(catalogue.newestForm(of: event))
                    bytes += line.byteCount
                    return !EventRuns.isFull(events: events.count, bytes: bytes)
                }
            } catch {
                next.isLast = true
                next.failure = error
            }
            next.events = events[...]
            return next
        }
    }
}
