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
    public var content: String
    /// The user who added it.
    public var createdBy: String

    /// Creates the event's data.
    public init(noteId: String, cityId: String, content: String, createdBy: String) {
        self.noteId = noteId
        self.cityId = cityId
        self.content = content
        self.createdBy = createdBy
    }

    public static var example: Self {
        Self(noteId: "-", cityId: "-", content: "", createdBy: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("noteId", &noteId, .identifier)
        try members.required("cityId", &cityId, .identifier)
        try members.required("content", &content, .text)
        try members.required("createdBy", &createdBy, .identifier)
    }

    public var subject: String? { noteId }
    public var lane: String? { "note:\(noteId)" }
}

/// A note's text was changed.
public struct NoteUpdated: DeclaredPayload, Hashable {
    public static let type = "daybook.note.updated"
    /// The note.
    public var noteId: String
    /// Its new text.
    public var content: String
    /// The user who changed it.
    public var updatedBy: String

    /// Creates the event's data.
    public init(noteId: String, content: String, updatedBy: String) {
        self.noteId = noteId
        self.content = content
        self.updatedBy = updatedBy
    }

    public static var example: Self {
        Self(noteId: "-", content: "", updatedBy: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("noteId", &noteId, .identifier)
        try members.required("content", &content, .text)
        try members.required("updatedBy", &updatedBy, .identifier)
    }

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

    /// Creates the event's data.
    public init(noteId: String, deletedBy: String) {
        self.noteId = noteId
        self.deletedBy = deletedBy
    }

    public static var example: Self {
        Self(noteId: "-", deletedBy: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("noteId", &noteId, .identifier)
        try members.required("deletedBy", &deletedBy, .identifier)
    }

    public var subject: String? { noteId }
    public var lane: String? { "note:\(noteId)" }
}
