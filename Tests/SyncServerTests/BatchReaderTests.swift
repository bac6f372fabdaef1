// The parsing of batches and cursors.

import EventSourcing
import SyncServerStorage
import TestSupport
import Testing

@Suite struct BatchReaderTests {
    @Test(
        .verifies("SYNC-6"),
        arguments: ["", "{}", "[", "[1,]", "[{}] x", "[\u{1}]", "null", "[{\"id\":}]"])
    func `anything but a JSON array is refused as a whole`(text: String) {
        #expect(throws: BatchError.self) { try StorageFixture.batch(text) }
    }

    @Test(.verifies("SYNC-8"), arguments: ["1", "[]", "{}", #"{"id":"abc"}"#, #"{"id":7}"#])
    func `an element without a usable id refuses the batch, with its index`(text: String) {
        let good = Sample(sequence: 1).line
        #expect(throws: BatchError.unusableID(index: 1)) {
            try StorageFixture.batch("[\(good),\(text)]")
        }
    }

    /// Batches of that size are parsed on all cores.
    @Test(.verifies("SYNC-8")) func `of many elements, the first without a usable id is named`() {
        var elements = Sample.cities(300).map(\.line)
        elements[150] = "{}"
        elements[290] = "{}"
        #expect(throws: BatchError.unusableID(index: 150)) {
            try StorageFixture.batch("[\(elements.joined(separator: ","))]")
        }
    }

    @Test(.verifies("SYNC-6"), arguments: ["1", ""])
    func `a batch may have 64 levels, not 65`(inner: String) throws {
        // The array, the event, and the given number of levels in its data.
        func batch(_ levels: Int) -> String {
            let data =
                String(repeating: "[", count: levels - 2) + inner
                + String(repeating: "]", count: levels - 2)
            return #"""
                [{"specversion":"1.0","id":"0a3e8ff8-bb52-454e-9574-3045281726ad",\#
                "source":"urn:uuid:0f0e0d0c-0b0a-4908-8706-050403020100","sequence":"1",\#
                "type":"t","data":\#(data)}]
                """#
        }
        #expect(try StorageFixture.batch(batch(64))[0].content != nil)
        #expect(throws: BatchError.self) { try StorageFixture.batch(batch(65)) }
    }

    @Test(.verifies("SYNC-7")) func `500 events are a batch, 501 are not`() throws {
        let lines = Sample.cities(501).map(\.line)
        let batch = try StorageFixture.batch("[\(lines.dropLast().joined(separator: ","))]")
        #expect(batch.map(\.content?.sequence) == (1...500).map { $0 })
        #expect(throws: BatchError.tooManyEvents) {
            try StorageFixture.batch("[\(lines.joined(separator: ","))]")
        }
    }

    @Test(.verifies("SYNC-6")) func `an empty batch is a batch`() throws {
        #expect(try StorageFixture.batch(" [ ] ").isEmpty)
    }

    @Test(
        .verifies("SYNC-30"),
        arguments: ["", "a", "a-1", "a1-2", "s1", "s1-2-3", "x1", "a1x", "s-1-2"])
    func `an invalid cursor is refused`(text: String) {
        #expect(EventCursor(text) == nil)
    }

    @Test(
        .verifies("SYNC-32"),
        arguments: [EventCursor.serial(0), .serial(.max), .sequence(7, serial: 9)])
    func `a cursor is equal after encoding and decoding`(cursor: EventCursor) {
        #expect(EventCursor(cursor.text) == cursor)
    }
}
