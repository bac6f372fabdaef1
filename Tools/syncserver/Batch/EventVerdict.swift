// The server's answer to one event of a batch. Spec/protocol/sync-protocol.md, SYNC-20 to SYNC-29.

import EventSourcing
import Foundation
import LogFormat

/// The server's answer to one event.
package struct EventVerdict: Equatable, Sendable {
    /// The outcome for the event. The raw value is the text on the wire.
    package enum Status: String, Sendable {
        /// The event is stored now, durably.
        case applied
        /// The event was stored before, durably.
        case duplicate
        /// The event will never be accepted.
        case rejected
        /// The event's base is not the head of its note.
        case conflict
        /// The event was not processed: an earlier event holds its lane, or the answer would be too large.
        case unprocessed

        /// True if the later events of the lane in this batch are not processed.
        package var holdsLane: Bool { self != .applied && self != .duplicate }
    }

    /// The reason for a status, for machines. The raw value is the text on the wire.
    package enum Code: String, Sendable {
        /// The account has another event with this id.
        case idReused = "id_reused"
        /// The account has another event with this source and sequence.
        case sourceFork = "source_fork"
        /// The event breaks a rule of the envelope or of its type.
        case invalidEvent = "invalid_event"
        /// The event has more bytes than a shipped event may have.
        case tooLarge = "too_large"
    }

    /// The event's id.
    package var id: UUID
    /// The outcome.
    package var status: Status
    /// The reason, for machines.
    package var code: Code?
    /// The reason, for people.
    package var detail: String?
    /// With `conflict`: the head event of the note as JSON text, if the note has one.
    package var current: [UInt8]?

    package init(
        _ id: UUID, _ status: Status, code: Code? = nil, detail: String? = nil,
        current: [UInt8]? = nil
    ) {
        self.id = id
        self.status = status
        self.code = code
        self.detail = detail
        self.current = current
    }

    /// The verdict on a stored event.
    ///
    /// - Parameter isForked: whether the account has another event with its source and sequence.
    package init(_ id: UUID, _ status: Status, isForked: Bool) {
        self.init(
            id, status, code: isForked ? .sourceFork : nil,
            detail: isForked
                ? "the account has another event with this source and sequence" : nil)
    }

    /// The body of a reply that holds verdicts (SYNC-20).
    package static func reply(_ verdicts: [EventVerdict]) -> [UInt8] {
        var reply = Array("{\"verdicts\":[".utf8)
        for (index, verdict) in verdicts.enumerated() {
            if index > 0 { reply.append(UInt8(ascii: ",")) }
            verdict.append(to: &reply)
        }
        reply.append(contentsOf: Array("]}".utf8))
        return reply
    }

    private func append(to json: inout [UInt8]) {
        json.append(contentsOf: Array("{\"id\":\"".utf8))
        LineText.append(uuid: id.integer, to: &json)
        json.append(contentsOf: Array("\",\"status\":\"\(status.rawValue)\"".utf8))
        if let code {
            json.append(contentsOf: Array(",\"code\":\"\(code.rawValue)\"".utf8))
        }
        if let detail {
            json.append(contentsOf: Array(",\"detail\":".utf8))
            JSONText.append(detail, to: &json)
        }
        if let current {
            json.append(contentsOf: Array(",\"current\":".utf8))
            json.append(contentsOf: current)
        }
        json.append(UInt8(ascii: "}"))
    }
}
