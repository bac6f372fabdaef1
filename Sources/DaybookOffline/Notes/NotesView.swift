// The notes that live. A note's text and origin are registers; its deletion is final; a change whose
// note has not arrived waits in its register. Spec/model/views.md, VIEW-6.

import Daybook
import Foundation
import HashTreeCollections

/// A note about a city.
public struct Note: Hashable, Sendable, Identifiable {
    /// The note's id.
    public let id: String
    /// The city it is about.
    public let cityId: String
    /// Its text.
    public let content: String
    /// Who wrote it.
    public let createdBy: String
    /// When it was added.
    public let createdAt: Timestamp
    /// When its text was set last: `createdAt` for a note that was never changed.
    public let updatedAt: Timestamp
}

/// What a view knows of a note that was not deleted. Lists share it with the view.
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

    /// The note as its city's list has it; nil while it has no origin.
    func listed(_ id: EntityID) -> ListedNote? {
        origin.map { ListedNote(createdAt: $0.stamp.time, id: id, record: self) }
    }
}

/// A note in its city's list. Ordered by the time at which it was added, then by its id.
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
            createdAt: createdAt, updatedAt: record.text.stamp.time)
    }
}

/// The notes of a city, oldest first. A list shares its memory with the view: it is quick to copy, to
/// compare and to page through, however many notes there are. A note is built when it is read.
public struct NoteList: RandomAccessCollection, StructureSharing, Equatable, Sendable,
    ExpressibleByArrayLiteral, CustomStringConvertible
{
    fileprivate var notes = SortedIndex<ListedNote>()

    /// An empty list.
    public init() {}

    /// A list of notes in any order; of two with one id and time of origin, the first. O(n log n).
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

    /// The note at an offset. O(n / 2,048): iterate rather than index.
    public subscript(position: Int) -> Note { notes[position].note }

    public func makeIterator() -> some IteratorProtocol<Note> {
        notes.lazy.map(\.note).makeIterator()
    }

    /// At most `limit` notes after another, which may have been deleted meanwhile; the oldest for nil.
    ///
    /// - Complexity: O(log n + limit).
    public func page(after note: Note?, limit: Int) -> [Note] {
        notes.page(after: note.map(ListedNote.init), limit: limit).map(\.note)
    }

    /// What changed since another state of the list. O(n / 2,048) where little did, and the changes.
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
    /// A note that no view holds.
    fileprivate init(_ note: Note) {
        func register<Value>(_ value: Value, _ time: Timestamp) -> Register<Value> {
            Register(value, Stamp(time: time, source: 0, sequence: 0))
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
    /// At most `limit` notes after another, which may have been deleted meanwhile; the oldest for nil.
    public func page(after note: Note? = nil, limit: Int) -> ViewQuery<[Note]> {
        map { $0.page(after: note, limit: limit) }
    }
}

/// The notes.
public struct NotesView: ListableView {
    public static let name = "notes"
    public static let version = 1
    public static let eventTypes: Set<String>? = [
        NoteAdded.type, NoteUpdated.type, NoteDeleted.type,
    ]

    private enum Entry: Sendable {
        case known(NoteRecord)
        /// The least stamp of all events that deleted it.
        case deleted(Stamp)

        func listed(_ id: EntityID) -> ListedNote? {
            if case .known(let record) = self { record.listed(id) } else { nil }
        }
    }

    private var entries: TreeDictionary<EntityID, Entry> = [:]
    private var byCity: TreeDictionary<EntityID, NoteList> = [:]
    /// Events whose data no rule can make sense of.
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
            var first = event.stamp
            if case .deleted(let stamp) = entries[id] { first = min(first, stamp) }
            set(id, to: .deleted(first))
        default: break
        }
    }

    private mutating func update(
        _ noteId: String, _ event: Event, origin: NoteAdded?, content: String
    ) {
        let id = EntityID(noteId)
        let new = Register(NoteRecord.Text(content: content, event: event.id), event.stamp)
        var (known, text): (Register<NoteRecord.Origin>?, _) = (nil, new)
        switch entries[id] {
        case .deleted: return
        case .known(let record): (known, text) = (record.origin, record.text)
        case nil: break
        }
        text.set(new.value, new.stamp)
        if let origin {
            known.set(
                NoteRecord.Origin(cityId: origin.cityId, createdBy: origin.createdBy), event.stamp)
        }
        set(id, to: .known(NoteRecord(origin: known, text: text)))
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

    /// A note, if it lives. O(1).
    public subscript(noteId: String) -> Note? { note(EntityID(noteId)) }

    private func note(_ id: EntityID) -> Note? { entries[id]?.listed(id)?.note }

    /// Whether a note was deleted. O(1).
    public func isDeleted(_ noteId: String) -> Bool {
        if case .deleted = entries[EntityID(noteId)] { true } else { false }
    }

    /// The event that set a note's text: what the next change is based on. O(1).
    public func head(_ noteId: String) -> UUID? {
        if case .known(let note) = entries[EntityID(noteId)] { note.text.value.event } else { nil }
    }

    /// The LWW timestamp of a note's text; nil for one that is not known, or deleted. O(1).
    func textStamp(_ noteId: String) -> Stamp? {
        if case .known(let note) = entries[EntityID(noteId)] { note.text.stamp } else { nil }
    }

    /// The notes of a city, oldest first. O(1).
    public func notes(in cityId: String) -> NoteList { byCity[EntityID(cityId)] ?? NoteList() }

    /// How many notes live, and how many changes wait for a note that has not arrived. O(notes).
    public var counts: (live: Int, waiting: Int) {
        var live = 0
        var waiting = 0
        for entry in entries.values {
            guard case .known(let note) = entry else { continue }
            if note.origin == nil { waiting += 1 } else { live += 1 }
        }
        return (live, waiting)
    }

    public func rows() -> [ViewRow] {
        entries.keys.sorted().compactMap { note($0) }.map { note in
            var row = ViewRow()
            row.add("noteId", note.id)
            row.add("cityId", note.cityId)
            row.add("content", note.content)
            row.add("createdBy", note.createdBy)
            row.add("createdAt", note.createdAt.description)
            row.add("updatedAt", note.updatedAt.description)
            return row
        }
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
        writer.add(count: ignored)
        var notes = writer.entries(count: entries.count)
        for (noteId, entry) in entries {
            writer.begin(noteId, of: &notes)
            switch entry {
            case .deleted(let stamp):
                writer.add(byte: Tag.deleted)
                writer.add(stamp)
            case .known(let note):
                writer.add(byte: note.origin == nil ? Tag.waiting : Tag.living)
                writer.add(note.text.value.content)
                writer.add(note.text.value.event)
                writer.add(note.text.stamp)
                guard let origin = note.origin else { break }
                writer.add(origin.value.cityId)
                writer.add(origin.value.createdBy)
                writer.add(origin.stamp)
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
                entries[noteId] = .deleted(try reader.stamp())
                return
            }
            let text = Register(
                NoteRecord.Text(content: try reader.string(), event: try reader.uuid()),
                try reader.stamp())
            var origin: Register<NoteRecord.Origin>?
            if tag == Tag.living {
                origin = Register(
                    NoteRecord.Origin(cityId: try reader.string(), createdBy: try reader.string()),
                    try reader.stamp())
            } else if tag != Tag.waiting {
                throw reader.fault("a note is of no known kind")
            }
            let note = NoteRecord(origin: origin, text: text)
            entries[noteId] = .known(note)
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

extension NotesView: CompactableView {
    /// Deletions are needed for ever, and supersede everything else of their note. Of a note that
    /// lives, the events that hold its origin and its text are needed.
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
        case .deleted(let stamp): .superseded(by: [stamp])
        case .known(let note):
            if setsOrigin, note.origin?.stamp == event.stamp {
                .needed(.origin)
            } else {
                .of(
                    event,
                    heldBy: setsOrigin
                        ? [note.origin?.stamp, note.text.stamp] : [note.text.stamp])
            }
        case nil: .needed(.current)
        }
    }
}
