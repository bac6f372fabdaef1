// Checks every event of a large command before its first commit, so that an invalid event does not leave
// half of the command recorded.

import Daybook

extension EventDraft {
    /// Returns a draft whose data obey the rules of their type and fit a line.
    ///
    /// - Throws: `EventError`.
    static func checked<Payload: EventPayload>(_ payload: Payload) throws -> EventDraft {
        let draft = try EventDraft(payload)
        let json = draft.json ?? []
        _ = try Payload(json: json)
        // An upper bound: the line has the subject twice, and up to 512 bytes of envelope.
        let subject = draft.subject.map(JSONObjectWriter.string) ?? []
        let bytes = json.count + 2 * subject.count + 512
        guard bytes <= Self.lineBytesMax else {
            throw EventError(
                .tooLarge,
                "\(draft.subject ?? Payload.type) has about \(bytes) bytes as an event; at most "
                    + "\(Self.lineBytesMax) fit")
        }
        return draft
    }
}
