// The commands of an app on notes.

import Daybook
import Foundation

/// Commands on notes.
public struct NoteCommands: Sendable {
    private let store: EventStore
    private let references: ReferenceCheck?

    init(_ store: EventStore, _ references: ReferenceCheck? = nil) {
        self.store = store
        self.references = references
    }

    /// Adds a note to a city. Durable on return.
    ///
    /// - Returns: the note, with its new id.
    /// - Throws: `EventError`: `refused` for an empty id, `unknownReference` for a city that the
    ///   `ReferenceCheck` does not know; `LogError` as `EventStore.append`.
    @discardableResult
    public func add(
        _ content: String, city cityId: String, by userId: String
    ) async throws -> Note {
        let note = try Self.newNote(content, cityId, userId)
        try await store.write { transaction in
            try references?.require(.city(cityId), transaction)
            try transaction.append(note)
        }
        return try recorded(note)
    }

    /// Changes a note's text. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a note that does not exist or was deleted; `LogError`
    ///   as `EventStore.append`.
    public func update(_ noteId: String, _ content: String, by userId: String) async throws {
        try await appendToNote(noteId, userId) {
            try EventDraft(
                NoteUpdated(noteId: noteId, content: content, updatedBy: userId), basedOn: $0)
        }
    }

    /// Deletes a note. Durable on return.
    ///
    /// - Throws: as `update(_:_:by:)`.
    public func delete(_ noteId: String, by userId: String) async throws {
        try await appendToNote(noteId, userId) {
            try EventDraft(NoteDeleted(noteId: noteId, deletedBy: userId), basedOn: $0)
        }
    }

    /// Decides a conflict between changes of a note and its deletion on another device: the changes are
    /// retracted, and a new note has their text. Durable on return, in one commit.
    ///
    /// - Parameters:
    ///   - conflict: the conflict, from `OutboxCommands.conflict(_:)`.
    ///   - cityId: the city of the new note.
    ///   - userId: the user who adds it.
    /// - Returns: the new note.
    /// - Throws: `EventError`: `refused` for an empty id, or if no pending event has a text, `unknownReference`
    ///   for a city that the `ReferenceCheck` does not know; as `OutboxCommands.resolve(_:_:)`.
    @discardableResult
    public func addAgain(
        _ conflict: Conflict, city cityId: String, by userId: String
    ) async throws -> Note {
        guard let text = conflict.pending.compactMap(Self.text).last else {
            throw EventError(.refused, "no pending event of the note has a text")
        }
        let note = try Self.newNote(text, cityId, userId)
        if let references {
            try await store.write { try references.require(.city(cityId), $0) }
        }
        try await store.outbox.resolve(conflict, .replace([try EventDraft(note)]))
        return try recorded(note)
    }

    private static func newNote(
        _ content: String, _ cityId: String, _ userId: String
    ) throws -> NoteAdded {
        try NoteAdded.require(cityId, "city id")
        try NoteAdded.require(userId, "user id")
        return NoteAdded(
            noteId: UUID().text, cityId: cityId, content: content, createdBy: userId)
    }

    /// The note that an event has added.
    ///
    /// - Throws: `EventError` (`refused`) for a note that was deleted meanwhile.
    private func recorded(_ added: NoteAdded) throws -> Note {
        guard let note = store.view(NotesView.self)[added.noteId] else {
            throw EventError(.refused, "the note \(added.noteId) was deleted while it was added")
        }
        return note
    }

    private static func text(of event: Event) -> String? {
        (try? event.payload(as: NoteUpdated.self))?.content
            ?? (try? event.payload(as: NoteAdded.self))?.content
    }

    /// Appends an event that is based on the note's head.
    private func appendToNote(
        _ noteId: String, _ userId: String,
        _ draft: @escaping @Sendable (_ head: UUID) throws -> EventDraft
    ) async throws {
        try NoteAdded.require(noteId, "note id")
        try NoteAdded.require(userId, "user id")
        try await store.write { transaction in
            let notes = transaction.view(NotesView.self)
            guard notes[noteId] != nil, let head = notes.head(noteId) else {
                throw EventError(
                    .refused,
                    notes.isDeleted(noteId)
                        ? "the note \(noteId) was deleted" : "there is no note \(noteId)")
            }
            transaction.append(try draft(head), replacing: notes.textTimestamp(noteId))
        }
    }
}
