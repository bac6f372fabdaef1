// Folds a log for somebody who does not hold its lock, without what was taken back.
// Spec/protocol/discarding.md.

import LogFormat
import LogStorage

extension LogReader {
    /// Folds the events that count: what was taken back is passed over, whenever that was.
    ///
    /// Reads the log to its end, and a second time if something was taken back that had been folded
    /// by then.
    ///
    /// - Parameters:
    ///   - end: the last position to fold; nil for all.
    ///   - initial: makes the state before the first event.
    ///   - fold: takes in an event, of whatever type it was recorded as.
    /// - Returns: the state, and what the read came to.
    /// - Throws: as `forEachEvent`, and whatever `fold` throws.
    /// - Complexity: O(bytes).
    package func fold<State>(
        through end: Position? = nil, catalogue: EventCatalogue, from initial: () -> State,
        _ fold: (inout State, Event) throws -> Void
    ) throws -> (state: State, outcome: Outcome) {
        var state = initial()
        var discarded = DiscardedEvents()
        /// Whether something counts again: what was folded of the record before is wrong.
        var isAnyReinstated = false
        let outcome = try forEachLine { prefix, line in
            let isPast = end.map { prefix.position > $0 } ?? false
            guard !isPast || DiscardedEvents.mayBeRecord(prefix, line) else { return true }
            let event = try Self.event(line, prefix, catalogue, directory: directory)
            let changed = discarded.add(event)
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
            // A writer may have gone on meanwhile.
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

    private static let recordTypes = [EventsDiscarded.type, EventsReinstated.type].map {
        Array("\($0)\"".utf8)
    }

    /// Whether a line may be one of the records, without reading all of it.
    fileprivate static func mayBeRecord(_ prefix: LinePrefix, _ line: RawSpan) -> Bool {
        recordTypes.contains { line.matches($0, at: prefix.byteCount) }
    }
}
