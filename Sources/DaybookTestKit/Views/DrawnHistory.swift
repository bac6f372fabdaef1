// A random history with the choices that the laws of views need for each event. An event and its choices are
// one group, so that shrinking removes them together.

import Daybook
import EventSourcing

/// A random history, with random choices for the laws of views.
struct DrawnHistory {
    /// The events in order of position.
    private(set) var events: [Event] = []
    /// The events that are folded again, or removed if a compaction can remove them.
    private(set) var chosen: [Event] = []
    /// The events that are retracted: the server had not settled them.
    private(set) var retracted: [Event] = []
    /// The number of events that are recorded before the state is stored, or the log compacted.
    private var pastCount: Int?
    /// The rank of each event in another order of arrival; events of equal rank are in order of position.
    private var ranks: [Int] = []

    /// Draws a history: any events of any devices at any times, noted for the failure report. Two histories in
    /// three have at most two or three event types, which then meet often; with many types, a pair of events that
    /// breaks a law is otherwise rare and hidden by later events (Groce et al., "Swarm testing", 2012).
    ///
    /// - Parameters:
    ///   - empty: a history without events.
    ///   - eventsMax: the highest number of events.
    ///   - draft: draws an event; its id and its time are replaced.
    init(
        _ choices: inout Choices, from empty: SampleHistory, eventsMax: Int,
        _ draft: (inout Choices) throws -> EventDraft
    ) throws {
        var history = empty
        var types: Set<String> = []
        let typesMax = choices.element(of: [Int.max, 2, 3])
        _ = try choices.array(0...eventsMax) { choices in
            var draft = try Self.draft(&choices, of: &types, typesMax: typesMax, draft)
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

    /// Draws an event, and others in its place while its type would be one too many.
    private static func draft(
        _ choices: inout Choices, of types: inout Set<String>, typesMax: Int,
        _ draft: (inout Choices) throws -> EventDraft
    ) throws -> EventDraft {
        // A closure may draw few events of the types so far; after this many tries another type is accepted.
        var triesLeft = 20
        while true {
            let drawn = try draft(&choices)
            triesLeft -= 1
            guard types.contains(drawn.type) || types.count < typesMax || triesLeft == 0 else {
                continue
            }
            types.insert(drawn.type)
            return drawn
        }
    }

    /// The events in another order of arrival.
    var reordered: [Event] {
        zip(ranks, events).sorted { ($0.0, $0.1.position) < ($1.0, $1.1.position) }.map(\.1)
    }

    /// The events before the state is stored, or the log compacted.
    var past: ArraySlice<Event> { events.prefix(pastCount ?? events.count) }

    /// The events after the state is stored, or the log compacted.
    var later: ArraySlice<Event> { events.dropFirst(pastCount ?? events.count) }
}
