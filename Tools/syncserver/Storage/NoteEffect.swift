// The effect of an event on a note: it may become the note's head, the event on which the next change
// must be based. The rule is the one by which views choose a note's text, so clients and server agree
// in any order of arrival. Spec/protocol/sync-protocol.md, SYNC-27 and SYNC-28.

import EventSourcing
import Foundation

/// The effect of an event of a note.
package struct NoteEffect {
    /// The note.
    package let note: String
    /// The id, in lower case, that the head must have for this event to be applied: `noBase` if there must be
    /// none; nil accepts any head, as for an event that another server has accepted.
    package let base: String?
    /// The event as a head.
    package let head: Head

    /// An event in the order in which a later one becomes a note's head.
    package struct Head: Comparable {
        package let event: UUID
        package let isDeletion: Bool
        package let lwwTimestamp: LWWTimestamp

        /// A deletion is final; otherwise the greater LWW timestamp wins.
        package static func < (lhs: Head, rhs: Head) -> Bool {
            lhs.isDeletion == rhs.isDeletion ? lhs.lwwTimestamp < rhs.lwwTimestamp : rhs.isDeletion
        }
    }

    /// The effect of an event.
    ///
    /// - Returns: nil for events of anything but a note.
    package init?(_ content: ReceivedEvent.Content) {
        let draft = content.draft
        guard let note = draft.subject else { return nil }
        switch draft.type {
        case "daybook.note.added", "daybook.note.updated", "daybook.note.deleted":
            base = content.isOffered ? nil : draft.string("baseid")?.lowercased()
        default: return nil
        }
        self.note = note
        head = Head(
            event: draft.id, isDeletion: draft.type == "daybook.note.deleted",
            lwwTimestamp: content.lwwTimestamp)
    }
}
