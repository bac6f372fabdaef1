// The parser of server-sent events, and the cursors of a stream. Spec/protocol/push.md, PUSH-3.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import Replay

@Suite struct ServerSentEventsTests {
    /// Parses a text that arrives in pieces, and returns each event as `id|data`.
    private func parse(_ pieces: [[UInt8]]) throws -> [String] {
        var parser = ServerSentEvents()
        var events: [String] = []
        for piece in pieces {
            _ = try parser.parse(piece) {
                events.append(
                    String(decoding: $0.id, as: UTF8.self) + "|"
                        + String(decoding: $0.data, as: UTF8.self))
                return true
            }
        }
        return events
    }

    @Test(
        .verifies("PUSH-3"),
        arguments: [
            (": following\n\nid: a1\ndata: {}\n\n:\n\nid: a2\ndata: []\n\n", ["a1|{}", "a2|[]"]),
            // Line ends, a byte order mark, no space after the colon, two spaces.
            ("\u{FEFF}id:a1\r\ndata:x\r\n\r\n", ["a1|x"]),
            ("id: a1\rdata:  x\r\r", ["a1| x"]),
            // Several lines of data; an id that stays; one with U+0000, which does not count.
            (
                "id: a1\ndata: x\ndata\ndata: y\n\ndata: z\n\nid: a\0\ndata: w\n\n",
                ["a1|x\n\ny", "a1|z", "a1|w"]
            ),
            // Other fields, an event without data, an event that is not complete.
            ("event: e\nretry: 5\nid: a1\n\nfoo: x\ndata: y\n\nid: a2\ndata: z\n", ["a1|y"]),
        ])
    func `events are those of the standard`(_ text: String, _ events: [String]) throws {
        let bytes = Array(text.utf8)
        #expect(try parse([bytes]) == events)
        #expect(try parse(bytes.map { [$0] }) == events)
    }

    @Test(.verifies("PUSH-3")) func `the events do not depend on the pieces in which they arrive`()
        throws
    {
        let parts = [
            "id: a1", "data: x", "data", ":", "event", "\n", "\r", "\r\n", "\n\n", "\u{FEFF}",
        ]
        try Property.check("server-sent events", runs: 2_000) { choices in
            let bytes = Array(
                choices.array(0...20) { $0.element(of: parts) }.joined().utf8)
            let cut = choices.int(in: 0...bytes.count)
            let whole = try parse([bytes])
            try #require(try parse([Array(bytes[..<cut]), [], Array(bytes[cut...])]) == whole)
            try #require(try parse(bytes.map { [$0] }) == whole)
        }
    }

    @Test(.verifies("PUSH-13")) func `an event that is too long is an error, whatever its form`()
        throws
    {
        for line in ["", "data: x\n"] {
            var parser = ServerSentEvents()
            let piece = Array((line.isEmpty ? String(repeating: "x", count: 8) : line).utf8)
            #expect(throws: ServerSentEvents.TooLong.self) {
                for _ in 0...ServerSentEvents.eventBytesMax {
                    _ = try parser.parse(piece) { _ in true }
                }
            }
        }
    }

    @Test(
        .verifies("PUSH-3"),
        arguments: [
            ("http://h/v1/events", "/v1/events?after=a7"),
            ("http://h/v1/events?limit=500&after=a1", "/v1/events?limit=500&after=a7"),
            ("http://h/e?after=a1&tenant=%20x", "/e?tenant=%20x&after=a7"),
        ])
    func `a cursor is the address of the page after the event`(
        _ url: String, _ cursor: String
    ) throws {
        let cursors = StreamCursors(try #require(URL(string: url)))
        #expect(cursors.cursor(Array("a7".utf8)) == cursor)
        #expect(cursors.cursor(Array("a&b".utf8))?.hasSuffix("after=a%26b") == true)
        #expect(cursors.cursor([]) == nil)
        #expect(cursors.cursor([UInt8](repeating: 0x61, count: 1_025)) == nil)
    }
}
