// What all races work on: real events where there are some, else events like them; as many as are
// asked for, with fresh ids.

import Daybook
import DaybookTestKit
import Foundation
import WireHistories

/// Events to record.
struct Input: Sendable {
    /// Where they come from, in words.
    let origin: String
    private let patterns: [EventDraft]

    /// - Parameter file: CloudEvents lines; nil for events of the project's generator.
    init(_ file: URL?) throws {
        guard let file else {
            var events = WireEvents(device: 0, seed: 1)
            var drafts: [EventDraft] = []
            for number in 0..<20_000 {
                if case .draft(let draft) = try events.next() {
                    drafts.append(draft)
                } else {
                    drafts.append(
                        try EventDraft(CitySaved(userId: "ana", cityId: "city-\(number % 500)")))
                }
            }
            (origin, patterns) = ("generated events", drafts)
            return
        }
        let text = try Data(contentsOf: file)
        patterns = try text.split(separator: UInt8(ascii: "\n")).map {
            try LineDecoder.decode(Array($0).span.bytes).draft
        }
        origin = file.lastPathComponent
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

    /// A UUID of version 4 that looks like no other: the counter, mixed.
    private static func id(_ number: Int) -> UUID {
        var random = SeededRandom(seed: UInt64(number))
        let value = UInt128(random.next()) << 64 | UInt128(random.next())
        let version = UInt128(0x4) << 76 | UInt128(0b10) << 62
        let mask = UInt128(0xF) << 76 | UInt128(0b11) << 62
        return UUID(integer: value & ~mask | version)
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
