// An event that another log has recorded, as received from a server. Its line keeps source and sequence,
// and gets a position in this log. Spec/format/line.md, LINE-3.

import Foundation
import LogFormat

/// An event from another log, or from an earlier incarnation of this one.
package struct ForeignEvent: Hashable, Sendable {
    /// The content, with the lane and the time that its source has set.
    package let draft: EventDraft
    /// The incarnation that recorded the event.
    package let source: UUID
    /// The event's number under its source.
    package let sequence: UInt64

    /// Reads an event in JSON format. Ignores a `position`: it is one of the sender's log.
    ///
    /// - Throws: `EventError`: `notJSON`, `badAttribute`, `tooLarge`.
    package init(_ json: RawSpan) throws(EventError) {
        let line = try LineDecoder.decode(json)
        guard let source = line.source, let uuid = UUID(sourceName: source) else {
            throw EventError(.badAttribute, "source is not urn:uuid: and a UUID")
        }
        guard let sequence = line.sequence, sequence > 0, sequence <= UInt64(Int64.max) else {
            throw EventError(.badAttribute, "sequence is missing or not a position")
        }
        draft = line.draft.inLineForm
        self.source = uuid
        self.sequence = sequence
    }
}

extension UUID {
    /// The UUID of a CloudEvents source, `urn:uuid:…` in either case. Spec/format/line.md, LINE-9.
    package init?(sourceName: String) {
        let bytes = Array(sourceName.utf8)
        guard bytes.count == 45, sourceName.prefix(9).lowercased() == "urn:uuid:",
            let number = LineText.uuid(bytes.span.bytes, at: 9, acceptUppercase: true)
        else { return nil }
        self.init(integer: number)
    }
}

/// The result of receiving events from a server.
package struct Received: Hashable, Sendable {
    /// The positions of the events that were recorded now.
    package var new: [Position] = []
    /// The positions of the events that the log already had, its own included.
    package var known: [Position] = []
    /// The ids of events that were skipped: the log has the id with different content.
    package var clashing: [UUID] = []
    /// The ids of events that were skipped: their type is kept on the device, or is a record of a log.
    package var refused: [UUID] = []
    /// True if an event has this log's incarnation as its source but is new to it: another log writes
    /// under the same incarnation, or this log was restored from an old copy.
    package var isForked = false

    /// Creates an empty result.
    package init() {}
}

extension EventStore {
    /// Restores the clock offset of the last contact with the server, unless the device's clock has been
    /// corrected since. Spec/protocol/replay.md, CLOCK-2.
    ///
    /// - Parameters:
    ///   - offset: the milliseconds to add to the device's clock at that time.
    ///   - contact: the time of the contact, by the server's clock.
    package func restoreClock(offset: Int64, contact: Timestamp) {
        guard Self.isValid(offset: offset, contact: contact, deviceNow: deviceNow) else { return }
        setClockOffset(offset)
    }

    /// True if the clock offset of the last contact with the server still holds.
    package static func isValid(
        offset: Int64, contact: Timestamp, deviceNow: Int64
    ) -> Bool {
        let present = deviceNow - contact.milliseconds
        // The corrected time must not be before the contact. If both clocks fit, the one nearer to the
        // contact is more likely.
        return present + offset >= 0 && (present < 0 || present + offset < present)
    }

    /// Records events received from a server, and records about them, in one commit. Durable on return.
    ///
    /// Events that the log has are skipped, also those that compaction has removed and whose ids are
    /// still known. A known event that was retracted is reinstated, since the server has it. Events of
    /// types that never leave a device are skipped. The data are not checked by the rules of their types:
    /// the server has accepted them.
    ///
    /// - Parameters:
    ///   - events: the events, in the order in which they are recorded.
    ///   - drafts: own events to record after them, if any of them is new.
    /// - Throws: as `append(_:durability:)`; then nothing is recorded.
    /// - Complexity: O(bytes), and an index lookup for each event.
    package nonisolated(nonsending) func receive(
        _ events: [ForeignEvent], recordingIfNew drafts: [EventDraft] = []
    ) async throws -> Received {
        let (result, appended) = try await enqueueAppend(.durable) { store in
            try store.decide(events, recordingIfNew: drafts)
        }
        var received = result.received
        received.new = appended.prefix(result.count).filter(\.isNew).map(\.position)
        return received
    }

    /// Divides the server's events into new, known, clashing and refused ones.
    ///
    /// - Returns: the events to record, own ones last, and the number of foreign ones among them.
    private func decide(
        _ events: [ForeignEvent], recordingIfNew drafts: [EventDraft]
    ) throws -> (events: [PreparedEvent], result: (received: Received, count: Int)) {
        try checkOpen()
        var received = Received()
        var prepared: [PreparedEvent] = []
        var reinstated: [EventTarget] = []
        let discarded = views.discarded
        for event in events {
            guard catalogue.acceptsForeign(event.draft.type) else {
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

    /// True if an unknown event of this incarnation was recorded by another log: this log has another line
    /// at that position, or ends before it. If compaction has removed the line at that position, the
    /// event is taken for the removed one.
    private func isForked(at position: Position) throws -> Bool {
        try position >= log.next || log.line(at: position) != nil
    }
}
