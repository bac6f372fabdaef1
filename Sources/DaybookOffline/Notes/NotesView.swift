// The notes that exist. A note's text and origin are registers; its deletion is final; a change that arrives
// before its note waits in its register. Spec/model/views.md, VIEW-6.

import Daybook
import Foundation
import HashTreeCollections

/// A note about a city.
public struct Note: Hashable, Sendable, Identifiable {
    /// The note's id.
    public let id: String
    /// The note's city.
    public let cityId: String
    /// Its text.
    public let content: String
    /// The user who added it.
    public let createdBy: String
    /// The time at which it was added.
    public let createdAt: Timestamp
    /// The time of the last change of its text; `createdAt` for a note that was never changed.
    public let updatedAt: Timestamp
}

/// The registers of a note that was not deleted. The view and its lists share the record.
private final class NoteRecord: Sendable {
    struct Origin: Hashable, Sendable {
        var cityId: String
        var createdBy: String
    }

    struct Text: Hashable, Sendable {
        var content: String
        var event: UUID
    }

    /// Nil until the event that added the note arrives.
    let origin: Register<Origin>?
    let text: Register<Text>

    init(origin: Register<Origin>?, text: Register<Text>) {
        self.origin = origin
        self.text = text
    }

    /// Returns the element of the city's list; nil while the note has no origin.
    func listed(_ id: EntityID) -> ListedNote? {
        origin.map { ListedNote(createdAt: $0.lwwTimestamp.time, id: id, record: self) }
    }
}

/// A note in its city's list, sorted by the time at which it was added, then by id.
private struct ListedNote: Comparable, Sendable {
    let createdAt: Timestamp
    let id: EntityID
    let record: NoteRecord

    static func < (lhs: ListedNote, rhs: ListedNote) -> Bool {
        lhs.createdAt != rhs.createdAt ? lhs.createdAt < rhs.createdAt : lhs.id < rhs.id
    }

    static func == (lhs: ListedNote, rhs: ListedNote) -> Bool {
        lhs.record === rhs.record || lhs.id == rhs.id && lhs.note == rhs.note
    }

    var city: EntityID? { record.origin.map { EntityID($0.value.cityId) } }

    var note: Note {
        Note(
            id: id.string, cityId: record.origin?.value.cityId ?? "",
            content: record.text.value.content, createdBy: record.origin?.value.createdBy ?? "",
            createdAt: createdAt, updatedAt: record.text.lwwTimestamp.time)
    }
}

/// The notes of a city, oldest first. A list shares its memory with the view, so copies, comparisons and
/// pages are fast for any number of notes. A `Note` is created on each read.
public struct NoteList: RandomAccessCollection, StructureSharing, Equatable, Sendable,
    ExpressibleByArrayLiteral, CustomStringConvertible
{
    fileprivate var notes = SortedIndex<ListedNote>()

    /// Creates an empty list.
    public init() {}

    /// Creates a list from notes in any order. Of several with one id and `createdAt`, the first remains.
    /// O(n log n).
    public init(_ notes: some Sequence<Note>) {
        var sorted: [ListedNote] = []
        for note in notes.map(ListedNote.init).sorted() where sorted.last.map({ $0 < note }) ?? true
        {
            sorted.append(note)
        }
        self.init(sorted: sorted)
    }

    public init(arrayLiteral notes: Note...) { self.init(notes) }

    fileprivate init(sorted notes: [ListedNote]) { self.notes = SortedIndex(sorted: notes) }

    public var startIndex: Int { 0 }
    public var endIndex: Int { notes.count }

    /// The note at an offset. O(n / 2,048): prefer iteration to indexing.
    public subscript(position: Int) -> Note { notes[position].note }

    public func makeIterator() -> some IteratorProtocol<Note> {
        notes.lazy.map(\.note).makeIterator()
    }

    /// Returns at most `limit` notes after `note`, which may have been deleted meanwhile; the oldest notes
    /// for nil.
    ///
    /// - Complexity: O(log n + limit).
    public func page(after note: Note?, limit: Int) -> [Note] {
        notes.page(after: note.map(ListedNote.init), limit: limit).map(\.note)
    }

    /// Returns the changes since another state of the list. O(n / 2,048 + changes) for few changes.
    public func changes(since other: NoteList) -> CollectionDifference<Note> {
        typealias Change = CollectionDifference<Note>.Change
        let changes = notes.changes(since: other.notes).map { change -> Change in
            switch change {
            case .insert(let offset, let element, let associated):
                .insert(offset: offset, element: element.note, associatedWith: associated)
            case .remove(let offset, let element, let associated):
                .remove(offset: offset, element: element.note, associatedWith: associated)
            }
        }
        guard let difference = CollectionDifference(changes) else {
            preconditionFailure("the offsets are those of a difference")
        }
        return difference
    }

    public var description: String { Array(self).description }
}

extension ListedNote {
    /// Creates an element from a note that is not part of a view.
    fileprivate init(_ note: Note) {
        func register<Value>(_ value: Value, _ time: Timestamp) -> Register<Value> {
            Register(value, LWWTimestamp(time: time, source: 0, sequence: 0))
        }
        self.init(
            createdAt: note.createdAt, id: EntityID(note.id),
            record: NoteRecord(
                origin: register(
                    .init(cityId: note.cityId, createdBy: note.createdBy), note.createdAt),
                text: register(
                    .init(content: note.content, event: UUID()), note.updatedAt)))
    }
}

extension ViewQuery where Value == NoteList {
    /// Returns at most `limit` notes after `note`, which may have been deleted meanwhile; the oldest notes
    /// for nil.
    public func page(after note: Note? = nil, limit: Int) -> ViewQuery<[Note]> {
        map { $0.page(after: note, limit: limit) }
    }
}

/// The notes.
public struct NotesView: KeyedView {
    public static let name = "notes"
    public static let version = 1
    public static let eventTypes: Set<String>? = [
        NoteAdded.type, NoteUpdated.type, NoteDeleted.type,
    ]

    private enum Entry: Sendable {
        case listed(NoteRecord)
        /// The note has no origin yet.
        case waiting(NoteRecord)
        /// The least LWW timestamp of all deletions of the note.
        case deleted(LWWTimestamp)

        init(_ record: NoteRecord) {
            self = record.origin == nil ? .waiting(record) : .listed(record)
        }

        /// The registers of a note that was not deleted.
        var record: NoteRecord? {
            switch self {
            case .listed(let record), .waiting(let record): record
            case .deleted: nil
            }
        }

        var isListed: Bool { if case .listed = self { true } else { false } }

        func listed(_ id: EntityID) -> ListedNote? { record?.listed(id) }
    }

    private var entries: TreeDictionary<EntityID, Entry> = [:]
    private var byCity: TreeDictionary<EntityID, NoteList> = [:]
    /// The number of events with invalid data.
    public private(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        switch event.type {
        case NoteAdded.type:
            guard let note = try? event.payload(as: NoteAdded.self) else { return ignored += 1 }
            update(note.noteId, event, origin: note, content: note.content)
        case NoteUpdated.type:
            guard let note = try? event.payload(as: NoteUpdated.self) else { return ignored += 1 }
            update(note.noteId, event, origin: nil, content: note.content)
        case NoteDeleted.type:
            guard let note = try? event.payload(as: NoteDeleted.self) else { return ignored += 1 }
            let id = EntityID(note.noteId)
            var first = event.lwwTimestamp
            if case .deleted(let lwwTimestamp) = entries[id] { first = min(first, lwwTimestamp) }
            set(id, to: .deleted(first))
        default: break
        }
    }

    private mutating func update(
        _ noteId: String, _ event: Event, origin: NoteAdded?, content: String
    ) {
        let id = EntityID(noteId)
        let new = Register(NoteRecord.Text(content: content, event: event.id), event.lwwTimestamp)
        var (known, text): (Register<NoteRecord.Origin>?, _) = (nil, new)
        if let entry = entries[id] {
            guard let record = entry.record else { return }
            (known, text) = (record.origin, record.text)
        }
        text.set(new.value, new.lwwTimestamp)
        if let origin {
            known.set(
                NoteRecord.Origin(cityId: origin.cityId, createdBy: origin.createdBy),
                event.lwwTimestamp)
        }
        set(id, to: Entry(NoteRecord(origin: known, text: text)))
    }

    /// Replaces a note's entry, and the note in its city's list.
    private mutating func set(_ id: EntityID, to entry: Entry) {
        let old = entries.updateValue(entry, forKey: id)?.listed(id)
        let new = entry.listed(id)
        if let old, let city = old.city, city != new?.city {
            byCity[city]?.notes.remove(old)
            if byCity[city]?.isEmpty ?? false { byCity[city] = nil }
        }
        if let new, let city = new.city {
            byCity[city, default: NoteList()].notes.replace(
                old?.city == city ? old : nil, with: new)
        }
    }

    /// The note with this id; nil if it does not exist or was deleted. O(1).
    public subscript(noteId: String) -> Note? { note(EntityID(noteId)) }

    private func note(_ id: EntityID) -> Note? { entries[id]?.listed(id)?.note }

    /// True if a note was deleted. O(1).
    public func isDeleted(_ noteId: String) -> Bool {
        if case .deleted = entries[EntityID(noteId)] { true } else { false }
    }

    /// Returns the id of the event that set a note's text, on which the next change is based. O(1).
    public func head(_ noteId: String) -> UUID? {
        entries[EntityID(noteId)]?.record?.text.value.event
    }

    /// The LWW timestamp of a note's text; nil for an unknown or deleted note. O(1).
    func textTimestamp(_ noteId: String) -> LWWTimestamp? {
        entries[EntityID(noteId)]?.record?.text.lwwTimestamp
    }

    /// Returns the notes of a city, oldest first. O(1).
    public func notes(in cityId: String) -> NoteList { byCity[EntityID(cityId)] ?? NoteList() }

    /// The number of existing notes, and of changes that wait for a note that has not arrived. O(notes).
    public var counts: (live: Int, waiting: Int) {
        var live = 0
        var waiting = 0
        for entry in entries.values {
            switch entry {
            case .listed: live += 1
            case .waiting: waiting += 1
            case .deleted: break
            }
        }
        return (live, waiting)
    }

    public static let keyNames = ["noteId"]
    public static let columns = [
        "noteId", "cityId", "content", "createdBy", "createdAt", "updatedAt",
    ]

    public func rows() -> ViewRows {
        // Only ids are sorted: copies of the records in a random order take four times as long.
        let ids = entries.compactMap { id, entry in entry.isListed ? id : nil }
        return ViewRows(ids: ids) { id in
            guard let note = note(id) else {
                preconditionFailure("the ids are those of listed notes")
            }
            return note.row
        }
    }

    public func rowKeys(changedBy event: Event) -> [[String]]? {
        let id: String? =
            switch event.type {
            case NoteAdded.type: try? event.payload(as: NoteAdded.self).noteId
            case NoteUpdated.type: try? event.payload(as: NoteUpdated.self).noteId
            case NoteDeleted.type: try? event.payload(as: NoteDeleted.self).noteId
            default: nil
            }
        return id.map { [[$0]] } ?? []
    }

    public func row(key: [String]) -> ViewRow? { self[key[0]]?.row }
}

extension Note {
    fileprivate var row: ViewRow {
        var row = ViewRow()
        row.appendField("noteId", id)
        row.appendField("cityId", cityId)
        row.appendField("content", content)
        row.appendField("createdBy", createdBy)
        row.appendField("createdAt", createdAt.description)
        row.appendField("updatedAt", updatedAt.description)
        return row
    }
}

extension NotesView {
    /// The first byte of an encoded entry.
    private enum Tag {
        static let deleted: UInt8 = 0
        static let waiting: UInt8 = 1
        static let living: UInt8 = 2
    }

    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: ignored)
        var notes = writer.entries(count: entries.count)
        for (noteId, entry) in entries {
            writer.begin(noteId, of: &notes)
            switch entry {
            case .deleted(let lwwTimestamp):
                writer.write(byte: Tag.deleted)
                writer.write(lwwTimestamp)
            case .listed(let note), .waiting(let note):
                writer.write(byte: note.origin == nil ? Tag.waiting : Tag.living)
                writer.write(note.text.value.content)
                writer.write(note.text.value.event)
                writer.write(note.text.lwwTimestamp)
                guard let origin = note.origin else { break }
                writer.write(origin.value.cityId)
                writer.write(origin.value.createdBy)
                writer.write(origin.lwwTimestamp)
            }
        }
        writer.end(notes)
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        ignored = try reader.tally()
        var entries = self.entries
        var cities: [EntityID: [ListedNote]] = [:]
        try reader.entries { (reader, noteId) throws(EventError) in
            let tag = try reader.byte()
            guard tag != Tag.deleted else {
                entries[noteId] = .deleted(try reader.lwwTimestamp())
                return
            }
            let text = Register(
                NoteRecord.Text(content: try reader.string(), event: try reader.uuid()),
                try reader.lwwTimestamp())
            var origin: Register<NoteRecord.Origin>?
            if tag == Tag.living {
                origin = Register(
                    NoteRecord.Origin(cityId: try reader.string(), createdBy: try reader.string()),
                    try reader.lwwTimestamp())
            } else if tag != Tag.waiting {
                throw reader.fault("a note has an unknown tag")
            }
            let note = NoteRecord(origin: origin, text: text)
            entries[noteId] = Entry(note)
            if let listed = note.listed(noteId), let city = listed.city {
                cities[city, default: []].append(listed)
            }
        }
        try reader.finish()
        self.entries = entries
        byCity = TreeDictionary(
            uniqueKeysWithValues: cities.mapValues {
                NoteList(sorted: $0.sorted())
            })
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

extension NotesView: CompactableView {
    /// Deletions are always needed, and supersede all other events of their note. Of an existing note, the
    /// winners of its origin and its text are needed.
    public func retention(of event: Event) -> Retention {
        switch event.type {
        case NoteAdded.type:
            guard let note = try? event.payload(as: NoteAdded.self) else {
                return .needed(.notUnderstood)
            }
            return retention(of: event, note.noteId, setsOrigin: true)
        case NoteUpdated.type:
            guard let note = try? event.payload(as: NoteUpdated.self) else {
                return .needed(.notUnderstood)
            }
            return retention(of: event, note.noteId, setsOrigin: false)
        case NoteDeleted.type:
            guard (try? event.payload(as: NoteDeleted.self)) != nil else {
                return .needed(.notUnderstood)
            }
            return .needed(.deletion)
        default: return .unconcerned
        }
    }

    private func retention(
        of event: Event, _ noteId: String, setsOrigin: Bool
    ) -> Retention {
        switch entries[EntityID(noteId)] {
        case .deleted(let lwwTimestamp): .superseded(by: [lwwTimestamp])
        case .listed(let note), .waiting(let note):
            if setsOrigin, note.origin?.lwwTimestamp == event.lwwTimestamp {
                .needed(.origin)
            } else {
                .of(
                    event,
                    heldBy: setsOrigin
                        ? [note.origin?.lwwTimestamp, note.text.lwwTimestamp]
                        : [note.text.lwwTimestamp])
            }
        case nil: .needed(.current)
        }
    }
}
