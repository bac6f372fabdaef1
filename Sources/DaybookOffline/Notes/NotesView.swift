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

/// The notes.
public struct NotesView: ListableView {
    public static let name = "notes"
    public static let version = 1
    public static let eventTypes: Set<String>? = [
        NoteAdded.type, NoteUpdated.type, NoteDeleted.type,
    ]

    private struct Origin: Hashable, Sendable {
        var cityId: String
        var createdBy: String
    }

    private struct Text: Hashable, Sendable {
        var content: String
        var event: UUID
    }

    private enum Entry: Sendable {
        /// In a box of its own: a small entry makes the dictionary's nodes small.
        indirect case known(origin: Register<Origin>?, text: Register<Text>)
        /// The least stamp of all events that deleted it.
        case deleted(Stamp)
    }

    private var entries: TreeDictionary<EntityID, Entry> = [:]
    private var byCity: TreeDictionary<EntityID, TreeSet<EntityID>> = [:]
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
            unlist(id)
            entries[id] = .deleted(first)
        default: break
        }
    }

    private mutating func update(
        _ noteId: String, _ event: Event, origin: NoteAdded?, content: String
    ) {
        let id = EntityID(noteId)
        let new = Register(Text(content: content, event: event.id), event.stamp)
        guard case .known(var known, var text) = entries[id] ?? .known(origin: nil, text: new)
        else { return }
        text.set(new.value, new.stamp)
        if let origin {
            unlist(id)
            known.set(
                Origin(cityId: origin.cityId, createdBy: origin.createdBy), event.stamp)
        }
        entries[id] = .known(origin: known, text: text)
        if origin != nil, let city = known?.value.cityId {
            byCity[EntityID(city), default: []].insert(id)
        }
    }

    private mutating func unlist(_ id: EntityID) {
        guard case .known(let origin?, _) = entries[id] else { return }
        let city = EntityID(origin.value.cityId)
        byCity[city]?.remove(id)
        if byCity[city]?.isEmpty ?? false { byCity[city] = nil }
    }

    /// A note, if it lives. O(1).
    public subscript(noteId: String) -> Note? { note(EntityID(noteId)) }

    private func note(_ id: EntityID) -> Note? {
        guard case .known(let origin?, let text) = entries[id] else { return nil }
        return Note(
            id: id.string, cityId: origin.value.cityId, content: text.value.content,
            createdBy: origin.value.createdBy, createdAt: origin.stamp.time,
            updatedAt: text.stamp.time)
    }

    /// Whether a note was deleted. O(1).
    public func isDeleted(_ noteId: String) -> Bool {
        if case .deleted = entries[EntityID(noteId)] { true } else { false }
    }

    /// The event that set a note's text: what the next change is based on. O(1).
    public func head(_ noteId: String) -> UUID? {
        if case .known(_, let text) = entries[EntityID(noteId)] { text.value.event } else { nil }
    }

    /// The LWW timestamp of a note's text; nil for one that is not known, or deleted. O(1).
    func textStamp(_ noteId: String) -> Stamp? {
        if case .known(_, let text) = entries[EntityID(noteId)] { text.stamp } else { nil }
    }

    /// The notes of a city, oldest first. O(notes of the city).
    public func notes(in cityId: String) -> [Note] {
        (byCity[EntityID(cityId)] ?? []).compactMap { note($0) }
            .sorted { ($0.createdAt, EntityID($0.id)) < ($1.createdAt, EntityID($1.id)) }
    }

    /// How many notes live, and how many changes wait for a note that has not arrived. O(notes).
    public var counts: (live: Int, waiting: Int) {
        var live = 0
        var waiting = 0
        for entry in entries.values {
            guard case .known(let origin, _) = entry else { continue }
            if origin == nil { waiting += 1 } else { live += 1 }
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
    /// What stands first in an encoded entry.
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
            case .known(let origin, let text):
                writer.add(byte: origin == nil ? Tag.waiting : Tag.living)
                writer.add(text.value.content)
                writer.add(text.value.event)
                writer.add(text.stamp)
                guard let origin else { break }
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
        var cities: [EntityID: TreeSet<EntityID>] = [:]
        try reader.entries { (reader, noteId) throws(EventError) in
            let tag = try reader.byte()
            guard tag != Tag.deleted else {
                entries[noteId] = .deleted(try reader.stamp())
                return
            }
            let text = Register(
                Text(content: try reader.string(), event: try reader.uuid()), try reader.stamp())
            var origin: Register<Origin>?
            if tag == Tag.living {
                origin = Register(
                    Origin(cityId: try reader.string(), createdBy: try reader.string()),
                    try reader.stamp())
            } else if tag != Tag.waiting {
                throw reader.fault("a note is of no known kind")
            }
            entries[noteId] = .known(origin: origin, text: text)
            if let city = origin?.value.cityId {
                cities[EntityID(city), default: []].insert(noteId)
            }
        }
        try reader.finish()
        self.entries = entries
        byCity = TreeDictionary(uniqueKeysWithValues: cities)
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
        case .known(let origin, let text):
            if setsOrigin, origin?.stamp == event.stamp {
                .needed(.origin)
            } else {
                .of(event, heldBy: setsOrigin ? [origin?.stamp, text.stamp] : [text.stamp])
            }
        case nil: .needed(.current)
        }
    }
}
