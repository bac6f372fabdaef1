// The fast paths of the line decoder give the same results as the general one.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import Foundation
import LogFormat
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
            // Version 4, like nearly all ids.
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
    func `a line that certainly decodes to an event does`() throws {
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
            if LineDecoder.certainlyDecodes(line.span.bytes, prefix, as: draft, to: .record) {
                try #require(read?.draft == draft)
                try #require((try? LinePrefix(line.span.bytes)) == prefix)
                sure += 1
            } else {
                unsure += 1
            }
        }
        #expect(sure > 100)
        #expect(unsure > 100)
    }

    @Test(.verifies("LINE-1", "LINE-2"))
    func `a stored line decoded after its prefix gives the same event as the complete line`() throws
    {
        // The name of a known type is the catalogue's string.
        let catalogue = EventCatalogue([EventRule(type: "Zürich", action: nil) { _ in }])
        var (plain, other) = (0, 0)
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
            if PlainLine(line.span.bytes, prefix, to: .stored) == nil {
                other += 1
            } else {
                plain += 1
            }
        }
        #expect(plain > 100)
        #expect(other > 100)
    }

    @Test func `a type is looked up by all bytes of its name and by nothing else`() throws {
        try Property.check("known types", runs: 300) { choices in
            // Names of few letters, so that many share their length, beginning and end.
            func name() -> String {
                String((0..<choices.int(in: 1...20)).map { _ in choices.bool() ? "a" : "é" })
            }
            let names = Set((0..<choices.int(in: 0...40)).map { _ in name() }).sorted()
            let types = KnownTypes(
                names.map { (name: $0, rule: nil, storedRule: nil, recorded: nil) })
            for name in names { try #require(types.name(of: types[name]) == name) }
            for _ in 0..<20 {
                let name = name()
                try #require(types.contains(types[name]) == names.contains(name))
                try #require(!KnownTypes().contains(types[name]))
            }
        }
    }

    @Test func `a plain number has the value that JSONNumber gives`() throws {
        var plain = 0
        try Property.check("plain numbers", runs: 3_000) { choices in
            func digits(_ count: ClosedRange<Int>) -> String {
                String(
                    (0..<choices.int(in: count)).map { _ in choices.element(of: Array("0123456789"))
                    })
            }
            let whole =
                choices.bool(oneIn: 4) ? "0" : String(choices.element(of: Array("123456789")))
            var text = (choices.bool(oneIn: 4) ? "-" : "") + whole
            if whole != "0" { text += digits(0...9) }
            if choices.bool() { text += "." + digits(1...9) }
            if choices.bool(oneIn: 8) { text += "e" + digits(1...2) }
            let bytes = Array(text.utf8)
            let number = JSONNumber(bytes.span.bytes, 0..<bytes.count)
            guard let short = PlainNumber(bytes.span.bytes) else { return }
            plain += 1
            try #require(short.double.bitPattern == number.doubleValue.bitPattern, "\(text)")
            if let whole = short.whole { try #require(whole == number.integerValue, "\(text)") }
        }
        #expect(plain > 1_000)
    }

    @Test func `a string ends at its quotation mark`() {
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

    @Test func `results of parallel work are in the order of the items`() {
        for count in [0, 1, 127, 128, 129, 1_000] {
            let shares = Array(0..<count).parallelShares { $0.map { $0 * 2 } }
            #expect(Array(shares.joined()) == (0..<count).map { $0 * 2 })
        }
    }

    // MARK: Decoded data

    @Test func `decoded data are returned, others are decoded, as no other type`() throws {
        let draft = try EventDraft(CitySaved(userId: "ana", cityId: "lisbon"))
        var history = EventHistory()
        let event = history.addOwn(draft)
        var line: [UInt8] = []
        LineEncoder.append(event.content, event.prefix, to: &line)
        line.removeLast()
        let decoded = try LineDecoder.event(
            line.span.bytes, event.prefix, OfflineModel.catalogue, readsData: true)
        for event in [event, decoded] {
            #expect(try event.payload(as: CitySaved.self).cityId == "lisbon")
            // A type with the same members.
            #expect(throws: EventError.self) { try event.payload(as: CityUnsaved.self) }
            #expect(throws: EventError.self) { try event.payload(as: NoteAdded.self) }
        }
        #expect(decoded.content == event.content)
        let changed = decoded.with(
            try EventDraft(CitySaved(userId: "ana", cityId: "porto")), by: OfflineModel.catalogue)
        #expect(try changed.payload(as: CitySaved.self).cityId == "porto")
    }
}
