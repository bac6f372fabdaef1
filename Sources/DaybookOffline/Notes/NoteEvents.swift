// The events of notes about cities: added, updated, deleted. Spec/model/events.md.

import Daybook

/// A note was added to a city.
public struct NoteAdded: DeclaredPayload, Hashable {
    public static let type = "daybook.note.added"
    /// The note.
    public var noteId: String
    /// The note's city.
    public var cityId: String
    /// Its text.
    public var content: String  // .text
    /// The user who added it.
    public var createdBy: String

    public var subject: String? { noteId }
    public var lane: String? { "note:\(noteId)" }
}

/// A note's text was changed.
public struct NoteUpdated: DeclaredPayload, Hashable {
    public static let type = "daybook.note.updated"
    /// The note.
    public var noteId: String
    /// Its new text.
    public var content: String  // .text
    /// The user who changed it.
    public var updatedBy: String

    public var subject: String? { noteId }
    public var lane: String? { "note:\(noteId)" }
}

/// A note was deleted.
public struct NoteDeleted: DeclaredPayload, Hashable {
    public static let type = "daybook.note.deleted"
    /// The note.
    public var noteId: String
    /// The user who deleted it.
    public var deletedBy: String

    public var subject: String? { noteId }
    public var lane: String? { "note:\(noteId)" }
}
