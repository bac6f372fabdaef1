// A random history with what the laws of views do with its events. What concerns one event is drawn together,
// so that it is shrunk away as a whole. Between Property+Projection and ProjectionCheck.

import Daybook
import EventSourcing

/// A random history, and what the laws of views do with it.
struct DrawnHistory {
    /// The events in order of position.
    private(set) var events: [Event] = []
    /// The events that are folded again, or removed where a compaction can remove them.
    private(set) var chosen: [Event] = []
    /// The events that are retracted: the server had not settled them.
    private(set) var retracted: [Event] = []
    /// How many events are recorded before the state is stored, or the log compacted.
    private var pastCount: Int?
    /// For each event when it arrives in another order; among equal ranks the order of position holds.
    private var ranks: [Int] = []

    /// Draws a history: any events of any devices at any times, noted for the failure report.
    ///
    /// - Parameters:
    ///   - empty: a history without events.
    ///   - eventsMax: the most events.
    ///   - draft: draws an event; its id and its time are replaced.
    init(
        _ choices: inout Choices, from empty: SampleHistory, eventsMax: Int,
        _ draft: (inout Choices) throws -> EventDraft
    ) throws {
        var history = empty
        _ = try choices.array(0...eventsMax) { choices in
            var draft = try draft(&choices)
            draft.id = history.nextID
            draft.time = Timestamp(milliseconds: Int64(choices.int(in: 0...9)))
            let event = history.record(
                draft, on: choices.element(of: SampleHistory.Device.allCases))
            ranks.append(choices.int(in: 0...9))
            if choices.bool() { chosen.append(event) }
            if choices.bool(oneIn: 4), event.isOwn, event.action != nil { retracted.append(event) }
            if choices.bool(oneIn: 12) { pastCount = pastCount ?? events.count }
            events.append(event)
        }
        for line in history.lines { choices.note(line) }
    }

    /// The events in another order of arrival.
    var reordered: [Event] {
        zip(ranks, events).sorted { ($0.0, $0.1.position) < ($1.0, $1.1.position) }.map(\.1)
    }

    /// The events before the state is stored, or the log compacted.
    var past: ArraySlice<Event> { events.prefix(pastCount ?? events.count) }

    /// The events after that.
    var later: ArraySlice<Event> { events.dropFirst(pastCount ?? events.count) }
}
