// The verdict on one event of a batch, with the stored text of a conflict. Spec/protocol/sync-protocol.md, SYNC-20
// to SYNC-29.

import Foundation
import SyncWire

/// The server's answer to one event.
package struct EventVerdict: Equatable, Sendable {
    /// The event's id.
    package var id: UUID
    /// The outcome.
    package var status: Verdict.Status
    /// The reason, for machines.
    package var code: Verdict.Code?
    /// The reason, for people.
    package var detail: String?
    /// With `conflict`: the head event of the note as JSON text, if the note has one.
    package var current: [UInt8]?

    package init(
        _ id: UUID, _ status: Verdict.Status, code: Verdict.Code? = nil, detail: String? = nil,
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
    package init(_ id: UUID, _ status: Verdict.Status, isForked: Bool) {
        self.init(
            id, status, code: isForked ? .sourceFork : nil,
            detail: isForked
                ? "the account has another event with this source and sequence" : nil)
    }

    /// The body of a reply that holds verdicts (SYNC-20).
    package static func reply(_ verdicts: [EventVerdict]) -> [UInt8] {
        Verdict.reply(verdicts) { verdict, json in
            Verdict.append(
                verdict.id, verdict.status, code: verdict.code?.rawValue, detail: verdict.detail,
                current: verdict.current, to: &json)
        }
    }
}
