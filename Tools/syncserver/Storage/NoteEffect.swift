// What an event does to a note on the server: it may become the note's head, the event on which the
// next change must be based. The rule is the one by which views choose a note's text, so a client
// and the server agree whatever the order of arrival. Used by every EventStorage.
// Spec/protocol/sync-protocol.md, SYNC-27 and SYNC-28.

import EventSourcing
import Foundation

/// The effect of an event of a note.
package struct NoteEffect {
    /// The note.
    package let note: String
    /// The event that must be the head for this one to be taken in, in lower case; nil takes it in
    /// whatever the head.
    package let base: String?
    /// The event as a head.
    package let head: Head

    /// An event in the order in which a note's events count.
    package struct Head: Comparable {
        package let event: UUID
        package let isDeletion: Bool
        package let stamp: Stamp

        /// A deletion is final; otherwise the greater stamp counts.
        package static func < (lhs: Head, rhs: Head) -> Bool {
            lhs.isDeletion == rhs.isDeletion ? lhs.stamp < rhs.stamp : rhs.isDeletion
        }
    }

    /// The effect of an event.
    ///
    /// - Returns: nil for events of anything but a note.
    package init?(_ content: ReceivedEvent.Content) {
        let draft = content.draft
        guard let note = draft.subject else { return nil }
        switch draft.type {
        case "daybook.note.added": base = nil
        case "daybook.note.updated", "daybook.note.deleted":
            base = draft.string("baseid")?.lowercased()
        default: return nil
        }
        self.note = note
        head = Head(
            event: draft.id, isDeletion: draft.type == "daybook.note.deleted",
            stamp: content.stamp)
    }
}
