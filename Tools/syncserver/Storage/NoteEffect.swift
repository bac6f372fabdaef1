// What an event does to a note on the server: it becomes the note's head, the event on which the
// next change must be based. Used by every EventStorage. Spec/sync-protocol.md, SYNC-25.

import EventSourcing

/// The effect of an event of a note.
struct NoteEffect {
    /// The note.
    let id: String
    /// The event that must be the head for this one to be taken in, in lower case; nil takes it in
    /// whatever the head.
    let base: String?

    /// The effect of an event.
    ///
    /// - Returns: nil for events of anything but a note.
    init?(_ draft: EventDraft) {
        guard let id = draft.subject else { return nil }
        switch draft.type {
        case "daybook.note.added": base = nil
        case "daybook.note.updated", "daybook.note.deleted":
            base = draft.string("baseid")?.lowercased()
        default: return nil
        }
        self.id = id
    }
}
