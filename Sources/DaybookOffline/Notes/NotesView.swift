// The notes that exist. A note's text and origin are registers; its deletion is final; a change that arrives
// before its note waits in its register. Spec/model/views.md, VIEW-6.

import Daybook
import Foundation

/// A note about a city. Notes are ordered by the time at which they were added, then by id.
public struct Note: Hashable, Comparable, Sendable, Identifiable {
    /// The time at which it was added.
    public let createdAt: Timestamp
    fileprivate let entityID: EntityID
    /// Shared with the view, so that a list of notes is small.
    fileprivate let registers: Boxed<NoteRegisters>

    /// The note's id.
    public var id: String { entityID.string }
    /// The note's city.
    public var cityId: String { registers.value.origin?.value.cityId ?? "" }
    /// Its text.
    public var content: String { registers.value.text?.value.content ?? "" }
    /// The user who added it.
    public var createdBy: String { registers.value.origin?.value.createdBy ?? "" }
    /// The time of the last change of its text; `createdAt` for a note that was never changed.
    public var updatedAt: Timestamp { registers.value.text?.lwwTimestamp.time ?? createdAt }

    /// Creates the note with an id; nil while it has no origin.
    fileprivate init?(_ entityID: EntityID, _ registers: Boxed<NoteRegisters>?) {
        guard let registers, let origin = registers.value.origin else { return nil }
        (createdAt, self.entityID, self.registers) = (origin.lwwTimestamp.time, entityID, registers)
    }

    private var texts: [String] { [id, cityId, content, createdBy] }

    public static func == (lhs: Note, rhs: Note) -> Bool {
        lhs.registers.isIdentical(to: rhs.registers)
            || lhs.createdAt == rhs.createdAt && lhs.updatedAt == rhs.updatedAt
                && lhs.texts == rhs.texts
    }

    public static func < (lhs: Note, rhs: Note) -> Bool {
        lhs.createdAt != rhs.createdAt
            ? lhs.createdAt < rhs.createdAt : lhs.entityID < rhs.entityID
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(texts) }
}

extension Note: CustomStringConvertible {
    /// The note's values. The printed properties of the struct would show its id only.
    public var description: String {
        "Note(id: \(id), cityId: \(cityId), content: \(content), createdBy: \(createdBy), "
            + "createdAt: \(createdAt), updatedAt: \(updatedAt))"
    }
}

/// The notes of a city, oldest first. A list shares its memory with the view, so copies, comparisons and
/// pages are fast for any number of notes.
public typealias NoteList = SortedIndex<Note>

extension ViewQuery where Value == NoteList {
    /// Returns at most `limit` notes after `note`, which may have been deleted meanwhile; the oldest notes
    /// for nil.
    public func page(after note: Note? = nil, limit: Int) -> ViewQuery<[Note]> {
        map { $0.page(after: note, limit: limit) }
    }
}

/// The registers of a note.
struct NoteRegisters: StateObject {
    struct Origin: StateObject, Hashable {
        var cityId = ""
        var createdBy = ""
        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&cityId, &createdBy)
        }
    }

    struct Text: StateObject, Hashable {
        var content = ""
        var event = EventDraft.noBase
        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&content, &event)
        }
    }

    /// Nil until the event that added the note arrives.
    var origin: Register<Origin>?
    var text: Register<Text>?

    mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&text, &origin)
    }

    var stateFault: String? { text == nil ? "a note has no text" : nil }
}

/// The notes.
public struct NotesView: DeclaredRows {
    public static let name = "notes"
    public static let version = 2
    public static let events: ViewEvents<NotesView> = [
        .on(NoteAdded.self) { note, view, change in
            view.update(note.noteId, note.content, &change) { registers, change in
                let origin = NoteRegisters.Origin(cityId: note.cityId, createdBy: note.createdBy)
                change.set(&registers.origin, to: origin, neededAs: .origin)
            }
        },
        .on(NoteUpdated.self) { note, view, change in
            view.update(note.noteId, note.content, &change) { _, _ in }
        },
        .on(NoteDeleted.self) { note, view, change in
            view.updateIndex(view.notes.delete(note.noteId, &change))
        },
    ]
    public static let fields: [ViewField<Note>] = [
        .init("noteId") { $0.id }, .init("cityId") { $0.cityId },
        .init("content") { $0.content }, .init("createdBy") { $0.createdBy },
        .init("createdAt") { $0.createdAt }, .init("updatedAt") { $0.updatedAt },
    ]

    private var notes = EntityTable<Boxed<NoteRegisters>>()
    private var byCity = GroupedIndex<EntityID, Note>()
    public var ignored = 0

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&notes)
    }

    public mutating func computeIndexes() {
        byCity = GroupedIndex(notes.entities.compactMap { Note($0.id, $0.entity) }) {
            EntityID($0.cityId)
        }
    }

    private mutating func updateIndex(_ replaced: EntityTable<Boxed<NoteRegisters>>.Replaced?) {
        guard let replaced else { return }
        byCity.replace(Note(replaced.id, replaced.old), with: Note(replaced.id, replaced.new)) {
            EntityID($0.cityId)
        }
    }

    private mutating func update(
        _ noteId: String, _ content: String, _ change: inout ViewChange,
        _ body: (inout NoteRegisters, inout ViewChange) -> Void
    ) {
        let text = NoteRegisters.Text(content: content, event: change.event)
        updateIndex(
            notes.update(noteId, &change) { registers, change in
                body(&registers, &change)
                change.set(&registers.text, to: text)
            })
    }

    /// The note with this id; nil if it does not exist or was deleted. O(1).
    public subscript(noteId: String) -> Note? { rowValue(EntityID(noteId)) }

    public func rowValue(_ id: EntityID) -> Note? { Note(id, notes[id]) }
    public var rowIDs: [EntityID] { notes.ids { $0.value.origin != nil } }

    /// True if a note was deleted. O(1).
    public func isDeleted(_ noteId: String) -> Bool { notes.isDeleted(noteId) }

    /// Returns the id of the event that set a note's text, on which the next change is based. O(1).
    public func head(_ noteId: String) -> UUID? { notes[noteId]?.value.text?.value.event }

    /// The LWW timestamp of a note's text; nil for an unknown or deleted note. O(1).
    func textTimestamp(_ noteId: String) -> LWWTimestamp? {
        notes[noteId]?.value.text?.lwwTimestamp
    }

    /// Returns the notes of a city, oldest first. O(1).
    public func notes(in cityId: String) -> NoteList { byCity[EntityID(cityId)] }

    /// The number of existing notes, and of changes that wait for a note that has not arrived. O(notes).
    public var counts: (live: Int, waiting: Int) {
        let live = rowIDs.count
        return (live, notes.ids().count - live)
    }
}

extension EventRule {
    /// The rule, which refuses a new event of a deleted note: the deletion is final.
    var refusingDeletedNotes: EventRule {
        refusing(by: NotesView.self) { draft, notes in
            guard let note = draft.subject, notes.isDeleted(note) else { return nil }
            return "the note \(note) was deleted; add a note with another id"
        }
    }
}
