// Checks an event before anything of a larger whole is recorded. Used where many events are recorded
// in several commits: content, assets.

import Daybook

extension EventDraft {
    /// A draft whose data obey the rules of their type and fit a line.
    ///
    /// - Throws: `EventError`.
    static func checked<Payload: EventPayload>(_ payload: Payload) throws -> EventDraft {
        let draft = try EventDraft(payload)
        let json = draft.json ?? []
        _ = try Payload(json: json)
        // The line has the subject twice, and what the log adds.
        let subject = payload.subject.map(JSONObjectWriter.string) ?? []
        let bytes = json.count + 2 * subject.count + 512
        guard bytes <= Self.lineBytesMax else {
            throw EventError(
                .tooLarge,
                "\(payload.subject ?? Payload.type) has about \(bytes) bytes as an event; at most "
                    + "\(Self.lineBytesMax) fit")
        }
        return draft
    }
}
