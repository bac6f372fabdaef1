// The input of all races: real events from a file, otherwise generated ones; any number of them, with
// fresh ids.

import DaybookOffline
import DaybookTestKit
import Foundation
import WireHistories

/// Events to record.
struct Input: Sendable {
    /// The origin of the events, as passed to another process.
    struct Source: Codable, Sendable {
        /// CloudEvents lines; nil for events of the project's generator.
        var file: String?
        /// The number of events that are used before they are repeated; nil for all.
        var patternsMax: Int?

        /// The name in reports.
        var name: String {
            file.map { URL(filePath: $0).lastPathComponent } ?? "generated events"
        }
    }

    private let patterns: [EventDraft]

    init(_ source: Source) throws {
        var patterns = try source.file.map(Self.read) ?? Self.generate()
        if let countMax = source.patternsMax { patterns = Array(patterns.prefix(countMax)) }
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

    /// Returns the drafts with these numbers. The patterns are repeated, and each number has its own id,
    /// so equal ranges give equal drafts.
    func drafts(_ range: Range<Int>) -> [EventDraft] {
        range.map { number in
            var draft = patterns[number % patterns.count]
            draft.id = Self.id(number)
            return draft
        }
    }

    /// The payload types of the events that a device ships.
    private static let payloads: [any EventPayload.Type] = [
        CitySaved.self, CityUnsaved.self, NoteAdded.self, NoteUpdated.self, NoteDeleted.self,
        PreferencesUpdated.self, CourseActivated.self, LessonCompleted.self, ReviewCompleted.self,
    ]

    /// Decodes the data of a draft into its payload type, which an app would record.
    static func payload(_ draft: EventDraft) throws -> any EventPayload {
        guard let type = payloads.first(where: { $0.type == draft.type }) else {
            throw RaceFailure("\(draft.type) is not among the types that are measured")
        }
        return try type.init(json: draft.json ?? [])
    }

    /// Returns the id of a number: a UUID of version 4 with pseudorandom bits.
    static func id(_ number: Int) -> UUID {
        var random = SeededRandom(seed: UInt64(number))
        let value = UInt128(random.next()) << 64 | UInt128(random.next())
        let version = UInt128(0x4) << 76 | UInt128(0b10) << 62
        let mask = UInt128(0xF) << 76 | UInt128(0b11) << 62
        return UUID(integer: value & ~mask | version)
    }

    /// Writes the lines of drafts to a file.
    static func write(_ drafts: [EventDraft], to file: URL) throws {
        try Data(lines(drafts).joined()).write(to: file)
    }

    /// Encodes drafts as the lines of a log, with newlines.
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
