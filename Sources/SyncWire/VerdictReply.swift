// The reply to a batch, as a server writes it. Spec/protocol/sync-protocol.md, SYNC-20.

import EventSourcing
import Foundation
import LogFormat

extension Verdict.Status {
    /// True if the later events of the lane in a batch are not processed.
    package var holdsLane: Bool { self != .applied && self != .duplicate }
}

extension Verdict {
    /// The reasons that a server gives for a status, for machines. The raw value is the text on the wire.
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

    /// The body of a reply that holds verdicts.
    package static func reply(_ verdicts: [Verdict]) -> [UInt8] {
        reply(verdicts) { verdict, json in
            append(
                verdict.id, verdict.status, code: verdict.code, detail: verdict.detail,
                current: verdict.current?.json, retryAfterSeconds: verdict.retryAfterSeconds,
                to: &json)
        }
    }

    /// The body of a reply that holds verdicts of a type of the server.
    ///
    /// - Parameter append: appends one verdict; see `append(_:_:code:detail:current:to:)`.
    package static func reply<Element>(
        _ verdicts: [Element], append: (Element, inout [UInt8]) -> Void
    ) -> [UInt8] {
        var reply = Array("{\"\(listName)\":[".utf8)
        for (index, verdict) in verdicts.enumerated() {
            if index > 0 { reply.append(UInt8(ascii: ",")) }
            append(verdict, &reply)
        }
        reply += "]}".utf8
        return reply
    }

    /// Appends a verdict without white space, which the client parses fast.
    ///
    /// - Parameter current: with `conflict`, the server's event as JSON text.
    package static func append(
        _ id: UUID, _ status: Status, code: String?, detail: String?, current: [UInt8]?,
        retryAfterSeconds: Double? = nil, to json: inout [UInt8]
    ) {
        json += "{\"id\":\"".utf8
        LineText.append(uuid: id.integer, to: &json)
        json += "\",\"status\":\"\(status.rawValue)\"".utf8
        if let code {
            json += ",\"code\":".utf8
            JSONText.append(code, to: &json)
        }
        if let detail {
            json += ",\"detail\":".utf8
            JSONText.append(detail, to: &json)
        }
        if let current {
            json += ",\"current\":".utf8
            json += current
        }
        if let retryAfterSeconds { json += ",\"retryAfterSeconds\":\(retryAfterSeconds)".utf8 }
        json.append(UInt8(ascii: "}"))
    }
}
