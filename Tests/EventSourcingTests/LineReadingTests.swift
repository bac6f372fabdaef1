// The short ways of reading lines come to what the long way comes to.

import DaybookTestKit
import Foundation
import LogFormat
import OfflineModel
import TestSupport
import Testing

@testable import EventSourcing

@Suite struct LineReadingTests {
    private static let plainWords = ["a", "note-1", "Zürich", "東京 🚲"]
    private static let words = [
        "", "a", "note-1", "x\"y", "back\\slash", "tab\t", "Zürich", "東京 🚲", "line\nbreak",
        "\u{1}", "a-rather-long-word-that-takes-more-than-sixteen-bytes",
    ]

    private static func draft(_ choices: inout Choices) -> EventDraft {
        func word(_ choices: inout Choices) -> String {
            choices.element(of: choices.bool(oneIn: 8) ? words : plainWords)
        }
        var draft = EventDraft(
            id: UUID(integer: UInt128(choices.bits()) << 64 | UInt128(choices.bits())),
            type: word(&choices), lane: word(&choices),
            time: Timestamp(milliseconds: Int64(choices.int(in: 0...4_000_000_000_000))))
        if choices.bool(oneIn: 8) == false {
            // Version 4, as nearly all ids are.
            let version = UInt128(0x4) << 76 | UInt128(0b10) << 62
            let mask = UInt128(0xF) << 76 | UInt128(0b11) << 62
            draft.id = UUID(integer: draft.id.integer & ~mask | version)
        }
        if choices.bool() { draft.subject = word(&choices) }
        if choices.bool(oneIn: 4) { draft.dataContentType = word(&choices) }
        if choices.bool(oneIn: 4) {
            draft.extensions = [.init(name: word(&choices), string: word(&choices))]
        }
        let data = [
            "{}", #"{"a":[1,2.50,null,"x"]}"#, "7", " 7", "{", "[1,]", "\"\\u00e4\"", "\"\u{1}\"",
            "",
            "{\"a\":\n1}",
        ]
        if choices.bool(oneIn: 4) == false {
            draft.data = .json(Array(choices.element(of: data).utf8))
        }
        return draft
    }

    @Test(.verifies("LINE-1", "LINE-2"))
    func `a line that surely reads as an event does`() throws {
        var (sure, unsure) = (0, 0)
        try Property.check("surely", runs: 3_000) { choices in
            let draft = Self.draft(&choices)
            let prefix =
                choices.bool()
                ? LinePrefix(own: draft.id.integer, source: 7, at: Position(9))
                : LinePrefix(
                    id: draft.id.integer, source: 7, sequence: 3, position: Position(9))
            var line: [UInt8] = []
            LineEncoder.append(draft, prefix, to: &line)
            line.removeLast()
            if choices.bool(oneIn: 4) {
                line[choices.int(in: 0...line.count - 1)] = UInt8(choices.int(in: 0...255))
            }
            let read = try? LineDecoder.decode(line.span.bytes)
            if LineDecoder.surelyReads(line.span.bytes, prefix, as: draft) {
                try #require(read?.draft == draft)
                try #require((try? LinePrefix(line.span.bytes)) == prefix)
                sure += 1
            } else {
                unsure += 1
            }
        }
        #expect(sure > 100 && unsure > 100)
    }

    @Test(.verifies("LINE-1", "LINE-2"))
    func `a stored line is read behind its prefix as it is read as a whole`() throws {
        let catalogue = EventCatalogue()
        try Property.check("stored", runs: 3_000) { choices in
            let draft = Self.draft(&choices)
            let prefix = LinePrefix(own: draft.id.integer, source: 7, at: Position(9))
            var line: [UInt8] = []
            LineEncoder.append(draft, prefix, to: &line)
            line.removeLast()
            if choices.bool() {
                let place = choices.int(in: prefix.byteCount...line.count - 1)
                line[place] = UInt8(choices.int(in: 32...126))
            }
            var whole: EventDraft?
            if let read = try? LineDecoder.decode(line.span.bytes).draft, read.lane != nil,
                read.time != nil
            {
                whole = read
            }
            let event = try? LineDecoder.event(line.span.bytes, prefix, catalogue)
            try #require(event?.content == whole)
        }
    }

    @Test func `a string ends where its quotation mark stands`() {
        for count in 0..<20 {
            for place in 0...count {
                for byte in [0x00, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x5B, 0x5C, 0x5D, 0x7F] as [UInt8]
                {
                    var text = [UInt8](repeating: UInt8(ascii: "x"), count: count)
                    text.insert(byte, at: place)
                    let json = [UInt8(ascii: "\"")] + text + Array("\",1".utf8)
                    var scanner = JSONScanner()
                    let range = try? scanner.string(json.span.bytes)
                    switch byte {
                    case 0x22: #expect(range == 1..<1 + place)
                    case 0..<0x20, 0x5C: #expect(range == nil)
                    default: #expect(range == 1..<2 + count)
                    }
                }
            }
        }
    }

    @Test func `many items are worked on in their order`() {
        for count in [0, 1, 127, 128, 129, 1_000] {
            #expect(Array(0..<count).parallelMap { $0 * 2 } == (0..<count).map { $0 * 2 })
        }
    }

    // MARK: Data that were read already

    @Test func `data that were read are handed out, others are read as the type asked for`() throws
    {
        let draft = try EventDraft(CitySaved(userId: "ana", cityId: "lisbon"))
        var history = EventHistory()
        let event = history.addOwn(draft)
        let decoded = event.decoded(by: OfflineModel.catalogue)
        for event in [event, decoded] {
            #expect(try event.payload(as: CitySaved.self).cityId == "lisbon")
            #expect(try event.payload(as: CityUnsaved.self).cityId == "lisbon")
            #expect(throws: (any Error).self) { try event.payload(as: NoteAdded.self) }
        }
        #expect(decoded == event)
        let changed = decoded.with(try EventDraft(CitySaved(userId: "ana", cityId: "porto")))
        #expect(try changed.payload(as: CitySaved.self).cityId == "porto")
    }
}
