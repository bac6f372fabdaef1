// A note about a city is added, changed, deleted. Spec/model/events.md.

import Daybook

/// A note was added to a city.
public struct NoteAdded: EventPayload, Hashable {
    public static let type = "daybook.note.added"
    /// The note.
    public var noteId: String
    /// The city it is about.
    public var cityId: String
    /// Its text.
    public var content: String
    /// Who wrote it.
    public var createdBy: String

    /// Creates the event's data.
    public init(noteId: String, cityId: String, content: String, createdBy: String) {
        self.noteId = noteId
        self.cityId = cityId
        self.content = content
        self.createdBy = createdBy
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        noteId = try fields.identifier("noteId")
        cityId = try fields.identifier("cityId")
        content = try fields.string("content")
        createdBy = try fields.identifier("createdBy")
    }

    public var subject: String? { noteId }
    public var lane: String? { "note:\(noteId)" }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("noteId", noteId)
        writer.add("cityId", cityId)
        writer.add("content", content)
        writer.add("createdBy", createdBy)
        return writer.finished()
    }
}

/// A note's text was changed.
public struct NoteUpdated: EventPayload, Hashable {
    public static let type = "daybook.note.updated"
    /// The note.
    public var noteId: String
    /// Its new text.
    public var content: String
    /// Who changed it.
    public var updatedBy: String

    /// Creates the event's data.
    public init(noteId: String, content: String, updatedBy: String) {
        self.noteId = noteId
        self.content = content
        self.updatedBy = updatedBy
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        noteId = try fields.identifier("noteId")
        content = try fields.string("content")
        updatedBy = try fields.identifier("updatedBy")
    }

    public var subject: String? { noteId }
    public var lane: String? { "note:\(noteId)" }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("noteId", noteId)
        writer.add("content", content)
        writer.add("updatedBy", updatedBy)
        return writer.finished()
    }
}

/// A note was deleted.
public struct NoteDeleted: EventPayload, Hashable {
    public static let type = "daybook.note.deleted"
    /// The note.
    public var noteId: String
    /// Who deleted it.
    public var deletedBy: String

    /// Creates the event's data.
    public init(noteId: String, deletedBy: String) {
        self.noteId = noteId
        self.deletedBy = deletedBy
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        noteId = try fields.identifier("noteId")
        deletedBy = try fields.identifier("deletedBy")
    }

    public var subject: String? { noteId }
    public var lane: String? { "note:\(noteId)" }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("noteId", noteId)
        writer.add("deletedBy", deletedBy)
        return writer.finished()
    }
}
