// An event that another log made: what a server hands out. Its line keeps source and sequence, and
// gains a position here. Spec/format/line.md, LINE-3.

import Foundation
import LogFormat

/// An event from another log, or from an earlier life of this one.
package struct ForeignEvent: Hashable, Sendable {
    /// Content; lane and time are set by whoever made it.
    package let draft: EventDraft
    /// The incarnation that made it.
    package let source: UUID
    /// Its number under its source.
    package let sequence: UInt64

    /// Reads an event in JSON format. A `position` is the sender's own business and is dropped.
    ///
    /// - Throws: `EventError`: `notJSON`, `badAttribute`, `tooLarge`.
    package init(_ json: RawSpan) throws(EventError) {
        let line = try LineDecoder.decode(json)
        guard let source = line.source, source.hasPrefix(Self.sourcePrefix),
            let uuid = UUID(text: String(source.dropFirst(Self.sourcePrefix.count)))
        else { throw EventError(.badAttribute, "source is not urn:uuid: and a UUID") }
        guard let sequence = line.sequence, sequence > 0, sequence <= UInt64(Int64.max) else {
            throw EventError(.badAttribute, "sequence is missing or no position")
        }
        draft = line.draft.inLineForm
        self.source = uuid
        self.sequence = sequence
    }

    private static let sourcePrefix = "urn:uuid:"
}

/// What became of received events.
package struct Received: Hashable, Sendable {
    /// Events that were recorded now.
    package var new: [Position] = []
    /// Where the events are that the log had, own ones included.
    package var known: [Position] = []
    /// Events whose id the log has with another content. They were left out.
    package var clashing: [UUID] = []
    /// Events of types that are kept on the device, or of a log's own records. They were left out.
    package var refused: [UUID] = []
    /// Whether an event under this log's own name is new to it: somebody else writes under that
    /// name, or this log is an old copy that came back.
    package var isForked = false

    /// Nothing came of them.
    package init() {}
}

extension EventStore {
    /// Takes over how far the device's clock was off the server's when it was last heard of, unless
    /// the clock has been put right since. Spec/protocol/replay.md, CLOCK-2.
    ///
    /// - Parameters:
    ///   - offset: what had to be added to the device's clock then, in milliseconds.
    ///   - contact: when that was, by the server's clock.
    package func restoreClock(offset: Int64, contact: Timestamp) {
        let present = deviceNow - contact.milliseconds
        // Time does not go backwards, and of two that fit the nearer one is likelier.
        let fits = present + offset >= 0
        guard fits, present < 0 || present + offset < present else { return }
        setClockOffset(offset)
    }

    /// Records events that a server has handed out, and what is to be remembered of them, all in one
    /// commit. Events that the log has are passed over, also those that compaction has taken out
    /// and that are remembered; but what was taken back counts again, since the server has it. Events
    /// of types that never leave a device are left out. Rules for the data of types do not count: the
    /// server has accepted them. Durable on return.
    ///
    /// - Parameters:
    ///   - events: in the order in which they are to stand.
    ///   - drafts: own events to be recorded behind them, if any of them is new.
    /// - Throws: as `append(_:durability:)`; nothing was recorded then.
    /// - Complexity: O(bytes), and an index lookup for each event.
    package nonisolated(nonsending) func receive(
        _ events: [ForeignEvent], recordingIfNew drafts: [EventDraft] = []
    ) async throws -> Received {
        let (result, appended) = try await commit(.durable) { store in
            try store.decide(events, recordingIfNew: drafts)
        }
        var received = result.received
        received.new = appended.prefix(result.count).filter(\.isNew).map(\.position)
        return received
    }

    /// Sorts the server's events into those to record and those known, clashing or refused.
    ///
    /// - Returns: the events to record, own ones last, and the number of the foreign ones among them.
    private func decide(
        _ events: [ForeignEvent], recordingIfNew drafts: [EventDraft]
    ) throws -> (events: [PreparedEvent], result: (received: Received, count: Int)) {
        try checkOpen()
        var received = Received()
        var prepared: [PreparedEvent] = []
        var reinstated: [EventTarget] = []
        let discarded = views.discarded
        for event in events {
            guard catalogue.takesIn(event.draft.type) else {
                received.refused.append(event.draft.id)
                continue
            }
            do {
                var draft = event.draft
                try? catalogue.normalise(&draft)
                if let appended = try known(draft.id, { draft }) {
                    received.known.append(appended.position)
                    if discarded.contains(appended.position) {
                        reinstated.append(EventTarget(position: appended.position, id: draft.id))
                    }
                    continue
                }
            } catch let error as EventError where error.code == .idReused {
                received.clashing.append(event.draft.id)
                continue
            }
            if event.source == incarnation, try isForked(at: Position(event.sequence)) {
                received.isForked = true
            }
            prepared.append(.received(event))
        }
        var own = prepared.isEmpty ? [] : drafts
        if !reinstated.isEmpty {
            let record = EventsReinstated(by: incarnation, events: reinstated)
            own.append(try EventDraft(record, id: newID()))
        }
        return (try prepared + prepare(own), (received, prepared.count))
    }

    /// Whether an own event that the log does not know was made by somebody else: there is another
    /// line in its place, or the log does not reach so far. If compaction has taken out what stood
    /// there, it was that.
    private func isForked(at position: Position) throws -> Bool {
        try position >= log.next || log.line(at: position) != nil
    }
}
