// Recorded events without a log, for tests of views.

import DaybookOffline
import Foundation

/// Events as a log would have them, in order of position.
package struct EventHistory: Sendable {
    /// The events.
    package private(set) var events: [Event] = []
    /// The source of own events from now on.
    package var incarnation: UUID

    private let catalogue: EventCatalogue
    /// The pairs of source and sequence that are in use; no two events share one.
    private var taken: Set<Name> = []

    private struct Name: Hashable {
        var source: UUID
        var sequence: UInt64
    }

    package init(
        incarnation: UUID = UUID(integer: 1), catalogue: EventCatalogue = OfflineModel.catalogue
    ) {
        self.incarnation = incarnation
        self.catalogue = catalogue
    }

    /// The position of the next event.
    package var next: Position { Position(UInt64(events.count + 1)) }

    /// Adds an event of this log.
    @discardableResult
    package mutating func addOwn(_ draft: EventDraft) -> Event {
        let prefix = LinePrefix(
            own: draft.id.integer, source: incarnation.integer, at: next)
        taken.insert(Name(source: incarnation, sequence: next.rawValue))
        return add(prefix, draft)
    }

    /// Adds an event from another log. If its sequence is taken, it gets the next free one.
    @discardableResult
    package mutating func addForeign(
        _ draft: EventDraft, source: UUID, sequence: UInt64
    ) -> Event {
        var sequence = sequence
        while !taken.insert(Name(source: source, sequence: sequence)).inserted { sequence += 1 }
        return add(
            LinePrefix(
                id: draft.id.integer, source: source.integer, sequence: sequence, position: next),
            draft)
    }

    private mutating func add(_ prefix: LinePrefix, _ draft: EventDraft) -> Event {
        var draft = draft
        // A draft that breaks the rule of its type is recorded all the same, as in old logs.
        try? catalogue.normalise(&draft)
        draft.lane = catalogue.lane(of: draft)
        draft.time = draft.time ?? Timestamp(milliseconds: 0)
        let event = Event(prefix, content: draft, catalogue: catalogue, lineBytes: 300)
        events.append(event)
        return event
    }
}

extension Projection {
    /// The state that follows from events.
    package init(folding events: some Sequence<Event>) {
        self.init()
        for event in events { fold(event) }
    }
}
