// Folds a log without holding its lock, and without retracted events. Spec/protocol/discarding.md.

import LogFormat
import LogStorage

extension LogReader {
    /// Folds the events that are not retracted, even if the retraction is after `end`.
    ///
    /// Reads the log to its end, and a second time if an already folded event is retracted.
    ///
    /// - Parameters:
    ///   - end: the last position to fold; nil for all.
    ///   - initial: creates the state before the first event.
    ///   - fold: applies an event, with the type under which it was recorded.
    /// - Returns: the state, and the outcome of the read.
    /// - Throws: as `forEachEvent`, and what `fold` throws.
    /// - Complexity: O(bytes).
    package func fold<State>(
        through end: Position? = nil, catalogue: EventCatalogue, from initial: () -> State,
        _ fold: (inout State, Event) throws -> Void
    ) throws -> (state: State, outcome: Outcome) {
        var state = initial()
        var discarded = DiscardedEvents()
        /// True if an event is reinstated: then the fold of the earlier record of its retraction is wrong.
        var isAnyReinstated = false
        let outcome = try forEachLine { prefix, line in
            let isPast = end.map { prefix.position > $0 } ?? false
            guard !isPast || DiscardedEvents.mayBeRecord(prefix, line) else { return true }
            let event = try Self.event(line, prefix, catalogue, directory: directory)
            let changed = discarded.apply(event)
            if changed.contains(where: { !discarded.contains($0) }) { isAnyReinstated = true }
            if !isPast { try fold(&state, event) }
            return true
        }
        let last = min(end ?? outcome.last, outcome.last)
        guard isAnyReinstated || discarded.first.map({ $0 <= last }) ?? false else {
            return (state, outcome)
        }
        state = initial()
        try forEachEvent(catalogue: catalogue) { event in
            // The writer may have appended meanwhile.
            guard event.position <= last else { return false }
            if let event = discarded.counted(event, by: catalogue) { try fold(&state, event) }
            return true
        }
        return (state, outcome)
    }
}

extension DiscardedEvents {
    /// The first of the positions.
    fileprivate var first: Position? { positions.first.map { Position($0) } }

    private static let recordTypeBytes = recordTypes.sorted().map {
        Array("\($0)\"".utf8)
    }

    /// True if a line has the type of a record. Compares bytes, and does not decode the line.
    fileprivate static func mayBeRecord(_ prefix: LinePrefix, _ line: RawSpan) -> Bool {
        recordTypeBytes.contains { line.matches($0, at: prefix.byteCount) }
    }
}
