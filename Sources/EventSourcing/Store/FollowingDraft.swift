// What makes an event count although a clock that was ahead has recorded another. Used by commands on
// things that are kept by the greatest stamp. Spec/views.md; Spec/content.md, CONT-17.

import Foundation

extension EventDraft {
    /// Sees to it that an event counts more than another one, whatever the clock says now: the other
    /// may have a time that is yet to come. Such a time is passed by a millisecond; else the event
    /// gets the time of its recording.
    ///
    /// - Parameters:
    ///   - stamp: of the event that it must pass.
    ///   - now: when it is recorded, or a moment before.
    ///   - incarnation: by whom.
    package mutating func follow(_ stamp: Stamp?, at now: Timestamp, by incarnation: UUID) {
        guard let stamp,
            stamp >= Stamp(time: now, source: incarnation.integer, sequence: .max)
        else { return }
        time = Timestamp(milliseconds: stamp.time.milliseconds + 1)
    }
}

extension EventStore.Transaction {
    /// Adds an event that counts more than another one.
    package mutating func append(_ draft: EventDraft, after stamp: Stamp?) {
        var draft = draft
        draft.follow(stamp, at: now, by: incarnation)
        append(draft)
    }

    /// Adds a typed event that counts more than another one.
    ///
    /// - Throws: what the payload's encoder throws.
    package mutating func append(_ payload: some EventPayload, after stamp: Stamp?) throws {
        append(try EventDraft(payload), after: stamp)
    }
}
