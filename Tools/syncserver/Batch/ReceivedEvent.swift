// One element of a posted batch, with all checks that need no database. BatchReader makes it, an
// EventStorage applies it. Spec/protocol/sync-protocol.md, SYNC-11 to SYNC-15.

import EventSourcing
import Foundation
import LogFormat
import SyncWire

/// One element of a posted batch.
package struct ReceivedEvent: Sendable {
    /// The event's id.
    package let id: UUID
    /// The event's lane. Lanes are compared byte by byte.
    package let lane: EntityID
    /// The content; nil if the element is unreadable.
    package private(set) var content: Content?
    /// The rule that the event breaks. If it is stored already, it is a duplicate nevertheless: the
    /// rules may have become stricter since it was accepted.
    package let fault: Fault?

    /// The event as one that another server, or this one before a restore, has accepted.
    package var offered: ReceivedEvent {
        var event = self
        event.content?.isOffered = true
        return event
    }

    /// The content of a readable event.
    package struct Content: Sendable {
        /// The event. Lane and time are nil if the client did not send them.
        package let draft: EventDraft
        /// The id of the log that created the event.
        package let source: UUID
        /// The sequence number of the event in its source.
        package let sequence: Int64
        /// The LWW timestamp.
        package let lwwTimestamp: LWWTimestamp
        /// The line to store: the text as received, without a position, complete and on one line.
        package let line: [UInt8]
        /// Whether another server, or this one before a restore, has accepted the event: what it is based on was
        /// checked there (SYNC-52).
        package fileprivate(set) var isOffered = false

        /// Whether a stored event with the same id has the same content. Spec/protocol/sync-protocol.md,
        /// SYNC-24.
        package func isSame(asLine stored: [UInt8], _ catalogue: EventCatalogue) -> Bool {
            if stored == line { return true }
            guard var other = try? LineDecoder.decode(stored.span.bytes, to: .stored).draft else {
                return false
            }
            // Fails for an event that was accepted under older rules, which keeps its form.
            try? catalogue.normaliseShipped(&other)
            other.lane = catalogue.lane(of: other)
            return other.isSameContent(as: draft)
        }
    }

    /// A rule that an event breaks.
    package struct Fault: Hashable, Sendable {
        package let code: Verdict.Code
        package let detail: String
    }
}

extension EventCatalogue {
    /// Checks a draft against the rule of its type if the type is shipped or unknown. The rules of the types that
    /// stay on a device are not applied, so a server need not have them: SYNC-44.
    fileprivate func normaliseShipped(_ draft: inout EventDraft) throws(EventError) {
        if let rule = self[draft.type], rule.action == nil {
            throw EventError(
                .refused, "\(draft.type) stays on its device: it is not sent to a server")
        }
        try normalise(&draft)
    }
}

extension ReceivedEvent {
    /// Reads an element.
    ///
    /// - Parameters:
    ///   - element: valid JSON.
    ///   - now: the time for an event without one.
    /// - Returns: nil if the element has no usable id.
    package init?(_ element: RawSpan, catalogue: EventCatalogue, now: Timestamp) {
        guard element.byteCount <= WireLimits.eventBytes else {
            self.init(
                unreadable: element, .tooLarge,
                "the event has \(element.byteCount) bytes; "
                    + "at most \(WireLimits.eventBytes) are accepted")
            return
        }
        do throws(EventError) {
            try self.init(readable: element, catalogue, now)
        } catch {
            self.init(unreadable: element, .invalidEvent, error.detail)
        }
    }

    private init(
        readable element: RawSpan, _ catalogue: EventCatalogue, _ now: Timestamp
    ) throws(EventError) {
        let decoded = try LineDecoder.decode(element)
        guard let name = decoded.source, let source = UUID(sourceName: name) else {
            throw EventError(.badAttribute, "source is not urn:uuid: and a UUID")
        }
        guard let number = decoded.sequence, number > 0, let sequence = Int64(exactly: number)
        else { throw EventError(.badAttribute, "sequence is not a decimal number from 1 on") }
        var draft = decoded.draft
        var fault: Fault?
        do throws(EventError) {
            try catalogue.normaliseShipped(&draft)
        } catch {
            fault = Fault(code: .invalidEvent, detail: error.detail)
        }
        let lane = catalogue.lane(of: draft)
        draft.lane = lane
        let time = draft.time ?? now
        draft.time = time
        let line = Self.line(of: element, decoded.draft, draft, source, number)
        if decoded.draft.lane == nil { draft.lane = nil }
        if decoded.draft.time == nil { draft.time = nil }
        self.init(
            id: draft.id, lane: EntityID(lane),
            content: Content(
                draft: draft, source: source, sequence: sequence,
                lwwTimestamp: LWWTimestamp(time: time, source: source.integer, sequence: number),
                line: line),
            fault: fault)
    }

    private init?(unreadable element: RawSpan, _ code: Verdict.Code, _ detail: String) {
        guard let outline = EventOutline(element) else { return nil }
        self.init(
            id: outline.id, lane: EntityID(outline.lane), content: nil,
            fault: Fault(code: code, detail: detail))
    }

    /// The line to store: as received if it is a line of a log, otherwise encoded again.
    private static func line(
        of element: RawSpan, _ received: EventDraft, _ complete: EventDraft, _ source: UUID,
        _ sequence: UInt64
    ) -> [UInt8] {
        // Swift's == treats two Unicode spellings of one accent as equal, and a lane that is derived
        // from the data has the data's spelling.
        if received == complete,
            received.lane.map(EntityID.init) == complete.lane.map(EntityID.init),
            let prefix = try? LinePrefix(element),
            LinePrefix.time(of: element) == complete.time?.milliseconds
        {
            var line: [UInt8] = []
            prefix.appendExported(element, to: &line)
            if !JSONText.hasLineBreaks(line.span.bytes) { return line }
        }
        var line: [UInt8] = []
        LineEncoder.append(
            complete,
            LinePrefix(
                own: complete.id.integer, source: source.integer, at: Position(sequence)),
            to: &line)
        line.removeLast()
        return line
    }
}
