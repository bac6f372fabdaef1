// One element of a posted batch, checked as far as that can be done without the database. Comes
// from BatchReader, goes to an EventStorage. Spec/protocol/sync-protocol.md, SYNC-11 to SYNC-15.

import EventSourcing
import Foundation
import LogFormat

/// One element of a posted batch.
package struct ReceivedEvent: Sendable {
    /// The event's id.
    package let id: UUID
    /// The lane whose order it keeps. Lanes are compared byte by byte.
    package let lane: EntityID
    /// What it says; nil if it could not be read.
    package let content: Content?
    /// The rule it breaks. An event that is in the storage already is a duplicate all the same: the
    /// rules may have become stricter since it was accepted.
    package let fault: Fault?

    /// What a readable event says.
    package struct Content: Sendable {
        /// The event. Lane and time are nil where the client left them open.
        package let draft: EventDraft
        /// The log that made it.
        package let source: UUID
        /// Its number under its source.
        package let sequence: Int64
        /// Its place in the order in which events count.
        package let stamp: Stamp
        /// What is stored: the text as received, without a position, complete and on one line.
        package let line: [UInt8]

        /// Whether this is the stored event with its id. Spec/protocol/sync-protocol.md, SYNC-24.
        package func isSame(asLine stored: [UInt8], _ catalogue: EventCatalogue) -> Bool {
            if stored == line { return true }
            guard var other = try? LineDecoder.decode(stored.span.bytes, to: .stored).draft else {
                return false
            }
            // An event accepted under older rules keeps the form it had then.
            try? catalogue.normalise(&other)
            other.lane = catalogue.lane(of: other)
            return other.isSameContent(as: draft)
        }
    }

    /// Bytes of an event, as received. Not less than what any release of a device ships. SYNC-13.
    package static let bytesMax = 256 * 1024

    /// A rule that an event breaks.
    package struct Fault: Hashable, Sendable {
        package let code: Verdict.Code
        package let detail: String
    }
}

extension ReceivedEvent {
    /// Reads an element.
    ///
    /// - Parameters:
    ///   - element: checked JSON.
    ///   - now: the time of an event that has none.
    /// - Returns: nil if the element has no usable id.
    package init?(_ element: RawSpan, catalogue: EventCatalogue, now: Timestamp) {
        guard element.byteCount <= Self.bytesMax else {
            self.init(
                unreadable: element, .tooLarge,
                "the event has \(element.byteCount) bytes; "
                    + "at most \(Self.bytesMax) are taken")
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
            try catalogue.normalise(&draft)
            if let rule = catalogue[draft.type], rule.action == nil {
                fault = Fault(
                    code: .invalidEvent,
                    detail: "\(draft.type) says what a device holds: it is not sent to a server")
            }
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
                stamp: Stamp(time: time, source: source.integer, sequence: number), line: line),
            fault: fault)
    }

    private init?(unreadable element: RawSpan, _ code: Verdict.Code, _ detail: String) {
        guard let outline = EventOutline(element) else { return nil }
        self.init(
            id: outline.id, lane: EntityID(outline.lane), content: nil,
            fault: Fault(code: code, detail: detail))
    }

    /// The text to store: as received where it is a line of a log, else written anew.
    private static func line(
        of element: RawSpan, _ received: EventDraft, _ complete: EventDraft, _ source: UUID,
        _ sequence: UInt64
    ) -> [UInt8] {
        // Swift takes two spellings of one accent for equal, and a lane that follows from the data
        // has the spelling of the data.
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

extension UUID {
    /// The UUID of a CloudEvents source, `urn:uuid:…`.
    package init?(sourceName: String) {
        let bytes = Array(sourceName.utf8)
        guard bytes.count == 45, sourceName.prefix(9).lowercased() == "urn:uuid:",
            let number = LineText.uuid(bytes.span.bytes, at: 9, acceptUppercase: true)
        else { return nil }
        self.init(integer: number)
    }
}
