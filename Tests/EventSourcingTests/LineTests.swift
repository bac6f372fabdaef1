// Lines: the envelope's rules, the order of members, and foreign attributes, which are kept.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import TestSupport
import Testing

private func decode(_ text: String) throws(EventError) -> EventDraft {
    try LineDecoder.decode(Array(text.utf8).span.bytes).draft
}

private let id = "0a3e8ff8-bb52-454e-9574-3045281726ad"

@Suite struct LineTests {
    @Test(.verifies("LINE-1")) func `members are written in the one order of the format`() throws {
        let draft = try decode(
            #"{"data":{"z":1,"a":[1.50]},"trace":"x","type":"t","extra":7,"time":"2026-02-22T10:30:14+01:00","#
                + #""subject":"s","partitionkey":"l","datacontenttype":"application/json","id":"\#(id.uppercased())","specversion":"1.0"}"#
        )
        var line: [UInt8] = []
        let prefix = LinePrefix(own: draft.id.integer, source: 1, at: Position(9))
        LineEncoder.append(draft, prefix, to: &line)
        #expect(
            String(decoding: line, as: UTF8.self)
                == #"{"specversion":"1.0","id":"\#(id)","source":"urn:uuid:00000000-0000-0000-0000-000000000001","#
                + #""sequence":"00000000000000000009","type":"t","subject":"s","partitionkey":"l","#
                + #""time":"2026-02-22T09:30:14.000Z","trace":"x","extra":7,"data":{"z":1,"a":[1.50]}}"#
                + "\n")
    }

    @Test(.verifies("LINE-3"))
    func `a foreign line keeps source and sequence and loses its position when exported`() {
        let prefix = LinePrefix(id: 5, source: 2, sequence: 3, position: Position(40))
        var line: [UInt8] = []
        LineEncoder.append(
            EventDraft(
                id: UUID(integer: 5), type: "t", lane: "l", time: Timestamp(milliseconds: 0)),
            prefix, to: &line)
        line.removeLast()
        #expect(
            String(decoding: line, as: UTF8.self).contains("\"position\":\"00000000000000000040\""))
        var out: [UInt8] = []
        prefix.appendExported(line.span.bytes, to: &out)
        #expect(!String(decoding: out, as: UTF8.self).contains("position\""))
        #expect((try? LinePrefix(out.span.bytes))?.sequence == 3)
    }

    @Test(.verifies("LINE-1"))
    func `line breaks between tokens are removed, strings are unchanged`() throws {
        let draft = try decode(
            "{\"specversion\":\"1.0\",\"id\":\"\(id)\",\"type\":\"t\",\"data\":{\r\n \"a\" : \"x\\ny\"\n}}"
        )
        #expect(draft.json == Array("{ \"a\" : \"x\\ny\"}".utf8))
    }

    @Test(
        .verifies("LINE-1", "LINE-2"),
        arguments: [
            (#"{"#, EventError.Code.notJSON), ("[]", .notJSON), ("7", .notJSON),
            (#"{"id":"\#(id)","type":"t"}"#, .badAttribute),
            (#"{"specversion":"0.3","id":"\#(id)","type":"t"}"#, .badAttribute),
            (#"{"specversion":"1.0","type":"t"}"#, .badAttribute),
            (#"{"specversion":"1.0","id":"\#(id)"}"#, .badAttribute),
            (#"{"specversion":"1.0","id":"\#(id)","type":""}"#, .badAttribute),
            (#"{"specversion":"1.0","id":"\#(id)","type":5}"#, .badAttribute),
            (#"{"specversion":"1.0","id":"nonsense","type":"t"}"#, .badAttribute),
            (
                #"{"specversion":"1.0","id":"0a3e8ff8-bb52-054e-9574-3045281726ad","type":"t"}"#,
                .badAttribute
            ),
            (#"{"specversion":"1.0","id":"\#(id)","id":"\#(id)","type":"t"}"#, .badAttribute),
            (#"{"specversion":"1.0","id":"\#(id)","type":"t","time":"yesterday"}"#, .badAttribute),
            (
                #"{"specversion":"1.0","id":"\#(id)","type":"t","time":"2026-02-30T00:00:00Z"}"#,
                .badAttribute
            ),
            (#"{"specversion":"1.0","id":"\#(id)","type":"t","Upper":1}"#, .badAttribute),
            (
                #"{"specversion":"1.0","id":"\#(id)","type":"t","abcdefghijklmnopqrstu":1}"#,
                .badAttribute
            ),
            (#"{"specversion":"1.0","id":"\#(id)","type":"t","list":[]}"#, .badAttribute),
            (
                #"{"specversion":"1.0","id":"\#(id)","type":"t","data":1,"data_base64":""}"#,
                .badAttribute
            ),
            (#"{"specversion":"1.0","id":"\#(id)","type":"t","data_base64":"%"}"#, .badAttribute),
            (#"{"specversion":"1.0","id":"\#(id)","type":"t","data_base64":"QQ"}"#, .badAttribute),
            (#"{"specversion":"1.0","id":"\#(id)","type":"t","data_base64":"Q"}"#, .badAttribute),
            (
                #"{"specversion":"1.0","id":"\#(id)","type":"t","data_base64":"QR=="}"#,
                .badAttribute
            ),
            (
                #"{"specversion":"1.0","id":"\#(id)","type":"t","data_base64":"Q Q="}"#,
                .badAttribute
            ),
            (#"{"specversion":"1.0","id":"\#(id)","type":"t","data_base64":"=="}"#, .badAttribute),
            (
                #"{"specversion":"1.0","id":"\#(id)","type":"t","data_base64":"QQ-_"}"#,
                .badAttribute
            ),
            (
                #"{"specversion":"1.0","id":"\#(id)","type":"t","data_base64":"QQ==\n"}"#,
                .badAttribute
            ),
            (
                #"{"specversion":"1.0","id":"\#(id)","type":"t","datacontenttype":"","data":1}"#,
                .badAttribute
            ),
            (
                #"{"specversion":"1.0","id":"\#(id)","type":"t","datacontenttype":"","data_base64":""}"#,
                .badAttribute
            ),
        ])
    func `a line that violates a rule of the envelope is refused with the rule's code`(
        text: String, code: EventError.Code
    ) {
        #expect(performing: { _ = try decode(text) }, throws: { ($0 as? EventError)?.code == code })
    }

    /// An event with `levels` nested arrays and objects, its own object included.
    private func nested(_ levels: Int, _ inner: String = "1") -> [UInt8] {
        let brackets = levels - 1
        let data =
            String(repeating: "[", count: brackets) + inner
            + String(repeating: "]", count: brackets)
        return Array(
            #"""
            {"specversion":"1.0","id":"\#(id)","source":"urn:uuid:\#(id)",\#
            "sequence":"00000000000000000001","type":"t","partitionkey":"t",\#
            "time":"2026-03-01T08:00:00.000Z","data":\#(data)}
            """#.utf8)
    }

    @Test(.verifies("LINE-2", "EVT-3"), arguments: ["1", ""])
    func `an event is nested to 64 levels, one that is shipped to 63`(inner: String) async throws {
        func reads(_ levels: Int, _ purpose: LineDecoder.Purpose) -> Bool {
            let line = nested(levels, inner)
            return (try? LineDecoder.decode(line.span.bytes, to: purpose)) != nil
        }
        #expect([reads(64, .record), reads(65, .record)] == [true, false])
        #expect([reads(63, .ship), reads(64, .ship)] == [true, false])
        // An earlier release may have recorded this.
        #expect([reads(65, .stored), reads(66, .stored)] == [true, false])
        let catalogue = EventCatalogue([EventRule(type: "shipped", action: "SHIP") { _ in }])
        let deep = nested(65, inner)
        let prefix = try LinePrefix(deep.span.bytes)
        #expect(try LineDecoder.event(deep.span.bytes, prefix, catalogue).position == Position(1))

        let store = try await EventStore.open(
            at: "/log", catalogue: catalogue, views: [],
            environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
        for (type, levels) in [("t", 64), ("shipped", 63)] {
            for isTooDeep in [false, true] {
                var draft = try LineDecoder.decode(nested(3).span.bytes).draft
                (draft.id, draft.type) = (UUID(), type)
                let brackets = levels - (isTooDeep ? 0 : 1)
                draft.data = .json(
                    Array(repeating: UInt8(ascii: "["), count: brackets) + Array(inner.utf8)
                        + Array(repeating: UInt8(ascii: "]"), count: brackets))
                if isTooDeep {
                    await #expect(throws: EventError.self) {
                        try await store.append(contentsOf: [draft])
                    }
                } else {
                    try await store.append(contentsOf: [draft])
                }
            }
        }
        try await store.close()
    }

    @Test(.verifies("LINE-2")) func `bytes that are not UTF-8 are refused`() {
        var bytes = Array(#"{"specversion":"1.0","id":"\#(id)","type":"t","data":"x"}"#.utf8)
        bytes[bytes.count - 3] = 0xFF
        #expect(throws: EventError.self) { _ = try LineDecoder.decode(bytes.span.bytes) }
    }

    @Test(
        .verifies("LINE-5"),
        arguments: [
            ("2026-02-22T10:30:14.425Z", "2026-02-22T10:30:14.425Z"),
            ("2026-02-22t10:30:14z", "2026-02-22T10:30:14.000Z"),
            ("2026-02-22T10:30:14.4259999-05:30", "2026-02-22T16:00:14.425Z"),
            ("2024-02-29T23:59:60Z", "2024-02-29T23:59:59.000Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ])
    func `times of any offset become UTC in milliseconds`(given: String, stored: String) {
        #expect(Timestamp(given)?.description == stored)
    }

    @Test func `a time survives being a date`() throws {
        try Property.check("time and date", runs: 5_000) { choices in
            let milliseconds = choices.int(in: -62_135_596_800_000...253_402_300_799_999)
            let time = Timestamp(milliseconds: Int64(milliseconds))
            try #require(Timestamp(time.date) == time)
        }
    }

    @Test(.verifies("LINE-1")) func `any draft survives being written and read`() throws {
        try Property.check("write and read", runs: 300) { choices in
            let draft = choices.draft()
            var line: [UInt8] = []
            LineEncoder.append(
                draft,
                LinePrefix(own: draft.id.integer, source: 1, at: Position(1)),
                to: &line)
            line.removeLast()
            let back = try LineDecoder.decode(line.span.bytes).draft
            try #require(back == draft)
            try #require(back.isSameContent(as: draft))
        }
    }

    @Test func `damaged lines are refused or read, and never trap`() throws {
        try Property.check("mutated lines", runs: 2_000) { choices in
            var line: [UInt8] = []
            LineEncoder.append(
                choices.draft(),
                LinePrefix(own: 1, source: 1, at: Position(1)), to: &line)
            for _ in 0..<choices.int(in: 1...4) {
                let at = choices.int(in: 0...line.count - 1)
                line[at] = UInt8(choices.int(in: 0...255))
            }
            _ = try? LineDecoder.decode(line.span.bytes)
        }
    }

    @Test(.verifies("LINE-9"), arguments: ["t", "daybook.t"])
    func `every UUID of RFC 9562 is an id, of a type of the library a random one only`(
        type: String
    ) throws {
        for version in 0...15 {
            let digit = String(version, radix: 16)
            for variant in ["7", "8", "b", "c"] {
                let id = "0a3e8ff8-bb52-\(digit)54e-\(variant)574-3045281726ad"
                let isID =
                    "8b".contains(variant)
                    && (type == "t" ? (1...8).contains(version) : version == 4)
                let free = #"{"type":"\#(type)","specversion":"1.0","id":"\#(id)"}"#
                #expect(((try? decode(free)) != nil) == isID, "\(id)")
                let stored =
                    #"{"specversion":"1.0","id":"\#(id)","source":"urn:uuid:\#(id)","sequence":"00000000000000000001","#
                    + #""type":"\#(type)","partitionkey":"l","time":"2026-02-22T09:30:14.000Z"}"#
                let line = Array(stored.utf8)
                let prefix = try LinePrefix(line.span.bytes)
                let plain = PlainLine(line.span.bytes, prefix, to: .stored)
                #expect((plain != nil) == isID, "\(id)")
            }
        }
    }

    @Test(.verifies("LINE-10"))
    func `an id that is no UUID gives one that follows from source and id, and both are kept`()
        throws
    {
        func derive(_ members: String) throws -> EventDraft {
            let text = "{\"specversion\":\"1.0\",\"type\":\"t\",\(members)}"
            return try LineDecoder.decode(Array(text.utf8).span.bytes, derivesID: true).draft
        }
        let foreign = try derive(
            #""id":"4321-4321-4321-a","source":"/mycontext\/subcontext","other":1"#)
        #expect(foreign.id.text == "cb043e79-cf70-8fe4-93b6-833369305221")
        #expect(foreign.extensions.map(\.name) == ["other", "originsource", "originid"])
        #expect(foreign.extensions.last?.json == Array(#""4321-4321-4321-a""#.utf8))
        let withoutSource = try derive(#""id":"a""#)
        #expect(withoutSource.id.text == "407d76dd-5798-8de9-b63a-a34bb59a9e2a")
        #expect(withoutSource.extensions.map(\.name) == ["originid"])
        let ready = try derive(#""id":"\#(id)","source":"/x""#)
        #expect(ready.id.text == id)
        #expect(ready.extensions.isEmpty)
        for refused in [
            #""id":"""#, #""source":"/x""#, #""id":"a","originid":"b""#,
            #""id":"a","type":"daybook.note.added""#,
        ] {
            #expect(throws: EventError.self, "\(refused)") { _ = try derive(refused) }
        }
        #expect(throws: EventError.self) {
            _ = try decode(#"{"specversion":"1.0","type":"t","id":"a","source":"/x"}"#)
        }
    }

    @Test func `a date that no line can express has no exact time`() {
        let last = Timestamp.range.upperBound
        #expect(Timestamp(exactly: Date(timeIntervalSince1970: Double(last / 1_000))) != nil)
        for seconds in [Double.nan, .infinity, -.infinity, Double(last / 1_000 + 1), -1e15] {
            #expect(Timestamp(exactly: Date(timeIntervalSince1970: seconds)) == nil, "\(seconds)")
        }
        #expect(Timestamp(Date(timeIntervalSince1970: .nan)).milliseconds == last)
    }

    @Test(.verifies("LINE-6"))
    func `content is equal in any order of members, and not if a value differs`()
        throws
    {
        let base = #""specversion":"1.0","id":"\#(id)","type":"t","subject":"s""#
        let a = try decode(
            "{\(base),\"time\":\"2026-01-01T00:00:00Z\",\"x\":1,\"data\":{\"a\":1,\"b\":2}}")
        let b = try decode("{\"data\":{\"b\":2.0,\"a\":1},\"x\":1.0,\(base)}")
        #expect(a.isSameContent(as: b))
        let c = try decode("{\(base),\"x\":1,\"data\":{\"a\":1,\"b\":3}}")
        #expect(!a.isSameContent(as: c))
        let d = try decode(
            "{\(base),\"time\":\"2026-01-01T00:00:01Z\",\"x\":1,\"data\":{\"a\":1,\"b\":2}}")
        #expect(!a.isSameContent(as: d))
        // Two compositions of one accent look the same but have different bytes.
        let composed = try decode("{\(base),\"data\":\"caf\u{E9}\"}")
        let decomposed = try decode("{\(base),\"data\":\"cafe\u{301}\"}")
        #expect(!composed.isSameContent(as: decomposed))
        #expect(try composed.isSameContent(as: decode("{\(base),\"data\":\"caf\\u00e9\"}")))
    }
}

extension Choices {
    /// A draft as the log stores it: with lane and time.
    fileprivate mutating func draft() -> EventDraft {
        let texts = ["a", "note-1", "ü\u{301}ber", "\"quoted\\\"", "line\nbreak", "\u{1}", "日本 😀"]
        var draft = EventDraft(
            id: UUID(integer: UInt128(bits()) << 64 | 0x8000_0000_0000_0000 | UInt128(bits() >> 2)),
            type: element(of: texts), lane: element(of: texts),
            time: Timestamp(milliseconds: Int64(int(in: 0...4_102_444_800_000))))
        var uuid = draft.id.uuid
        uuid.6 = uuid.6 & 0x0F | 0x40
        draft.id = UUID(uuid: uuid)
        if bool() { draft.subject = element(of: texts) }
        if bool() { draft.extensions = [.init(name: "x1", string: element(of: texts))] }
        switch int(in: 0...3) {
        case 0: draft.data = .none
        case 1: draft.data = .json(Array(#"{"a":[1,2.50,null,{"b":"\u0041"}]}"#.utf8))
        case 2: draft.data = .json(Array("\"x\"".utf8))
        default:
            draft.data = .base64(Array("\"AAEC\"".utf8))
            draft.dataContentType = "application/octet-stream"
        }
        return draft
    }
}
