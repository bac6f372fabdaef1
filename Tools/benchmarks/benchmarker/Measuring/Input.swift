// What all races work on: real events where there are some, else events like them; as many as are
// asked for, with fresh ids.

import DaybookOffline
import DaybookTestKit
import Foundation
import WireHistories

/// Events to record.
struct Input: Sendable {
    /// Where events come from: what a process of its own is told.
    struct Source: Codable, Sendable {
        /// CloudEvents lines; nil for events of the project's generator.
        var file: String?
        /// How many of them are taken before they are repeated; nil for all.
        var patternsMax: Int?

        /// In words.
        var name: String {
            file.map { URL(filePath: $0).lastPathComponent } ?? "generated events"
        }
    }

    private let patterns: [EventDraft]

    init(_ source: Source) throws {
        var patterns = try source.file.map(Self.read) ?? Self.generate()
        if let most = source.patternsMax { patterns = Array(patterns.prefix(most)) }
        self.patterns = patterns
    }

    private static func read(_ file: String) throws -> [EventDraft] {
        try Data(contentsOf: URL(filePath: file)).split(separator: UInt8(ascii: "\n")).map {
            try LineDecoder.decode(Array($0).span.bytes).draft
        }
    }

    private static func generate() throws -> [EventDraft] {
        var events = WireEvents(device: 0, seed: 1)
        return try (0..<20_000).map { number in
            if case .draft(let draft) = try events.next() { return draft }
            return try EventDraft(CitySaved(userId: "ana", cityId: "city-\(number % 500)"))
        }
    }

    /// Drafts from a place on; those behind the last begin anew. The same place gives the same
    /// drafts, and every place ids of its own.
    func drafts(_ range: Range<Int>) -> [EventDraft] {
        range.map { number in
            var draft = patterns[number % patterns.count]
            draft.id = Self.id(number)
            return draft
        }
    }

    /// The types of the events that a device ships.
    private static let payloads: [any EventPayload.Type] = [
        CitySaved.self, CityUnsaved.self, NoteAdded.self, NoteUpdated.self, NoteDeleted.self,
        PreferencesUpdated.self, CourseActivated.self, LessonCompleted.self, ReviewCompleted.self,
    ]

    /// The data of a draft as the type that an app hands in.
    static func payload(_ draft: EventDraft) throws -> any EventPayload {
        guard let type = payloads.first(where: { $0.type == draft.type }) else {
            throw RaceFailure("\(draft.type) is not among the types that are measured")
        }
        return try type.init(json: draft.json ?? [])
    }

    /// The id of the event at a place: a UUID of version 4 that looks like no other.
    static func id(_ number: Int) -> UUID {
        var random = SeededRandom(seed: UInt64(number))
        let value = UInt128(random.next()) << 64 | UInt128(random.next())
        let version = UInt128(0x4) << 76 | UInt128(0b10) << 62
        let mask = UInt128(0xF) << 76 | UInt128(0b11) << 62
        return UUID(integer: value & ~mask | version)
    }

    /// Writes the lines of drafts to a file, for who reads them there.
    static func write(_ drafts: [EventDraft], to file: URL) throws {
        try Data(lines(drafts).joined()).write(to: file)
    }

    /// The lines of drafts as a log would hold them, with newlines.
    static func lines(_ drafts: [EventDraft]) -> [[UInt8]] {
        drafts.enumerated().map { index, draft in
            var line: [UInt8] = []
            var draft = draft
            draft.time = draft.time ?? Timestamp(milliseconds: 1_771_756_214_425)
            draft.lane = draft.lane ?? draft.subject
            LineEncoder.append(
                draft,
                LinePrefix(
                    own: draft.id.integer, source: 7, at: Position(UInt64(index) + 1)), to: &line)
            return line
        }
    }
}
