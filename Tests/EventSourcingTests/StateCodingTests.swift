// The state writer and reader: one encoding for each value, and no trust in the bytes.

import Foundation
import TestSupport
import Testing

@testable import EventSourcing

@Suite(.verifies("VIEW-10")) struct StateCodingTests {
    private static func bytes(_ body: (inout StateWriter) -> Void) -> [UInt8] {
        var writer = StateWriter()
        body(&writer)
        return writer.bytes
    }

    @Test func `all written values are read back`() throws {
        let lwwTimestamp = LWWTimestamp(
            time: Timestamp(milliseconds: -62_167_219_200_000), source: .max, sequence: .max)
        let id = UUID()
        let numbers: [UInt64] = [0, 1, 127, 128, 300, 1 << 62, .max]
        let strings = ["", "caf\u{E9}", "cafe\u{301}", "\u{0}", String(repeating: "x", count: 300)]
        let bytes = Self.bytes { writer in
            for number in numbers { writer.write(number) }
            for string in strings { writer.write(string) }
            writer.write(true)
            writer.write(-0.0)
            writer.write(UInt128.max - 1)
            writer.write(id)
            writer.write(Timestamp(milliseconds: 253_402_300_799_999))
            writer.write(lwwTimestamp)
        }
        var reader = StateReader(bytes)
        for number in numbers { #expect(try reader.integer() == number) }
        for string in strings {
            #expect(try Array(reader.string().utf8) == Array(string.utf8))
        }
        #expect(try reader.bool())
        #expect(try reader.double().sign == .minus)
        #expect(try reader.integer128() == .max - 1)
        #expect(try reader.uuid() == id)
        #expect(try reader.time() == Timestamp(milliseconds: 253_402_300_799_999))
        #expect(try reader.lwwTimestamp() == lwwTimestamp)
        try reader.finish()
    }

    @Test(arguments: [Int.min, -1_000, -1, 0, 1, .max])
    func `a whole number of any sign is read back`(number: Int) throws {
        var reader = StateReader(Self.bytes { number.write(to: &$0) })
        #expect(try Int(from: &reader) == number)
        try reader.finish()
    }

    @Test(.verifies("VIEW-4"))
    func `keys are sorted by their bytes, whatever the collection's order is`() throws {
        let keys = [
            "b", "", "noteIdOf8Bytes", "noteIdOf", "caf\u{E9}", "cafe\u{301}", "a\u{0}", "a",
        ]
        let bytes = Self.bytes { writer in
            var entries = writer.entries(count: keys.count)
            for key in keys {
                writer.begin(EntityID(key), of: &entries)
                writer.write(key)
            }
            writer.end(entries)
        }
        var reader = StateReader(bytes)
        var read: [EntityID] = []
        try reader.entries { (reader, key) throws(EventError) in
            read.append(key)
            #expect(try EntityID(reader.string()) == key)
        }
        try reader.finish()
        #expect(read == keys.map(EntityID.init).sorted())
        #expect(
            read.map { Array($0.string.utf8) }
                == keys.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) })
    }

    @Test(arguments: [
        ("a number in more bytes than needed", [0x80, 0x00]),
        (
            "a number of more than 64 bits",
            [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2]
        ),
        ("a number without an end", [UInt8](repeating: 0x80, count: 20)),
        ("a number that stops", [0x80]),
    ])
    func `a number has only one encoding`(what: String, bytes: [UInt8]) {
        var reader = StateReader(bytes)
        #expect(throws: EventError.self) { try reader.integer() }
    }

    @Test func `a length is checked before anything is allocated`() {
        let huge = Self.bytes { $0.write(UInt64.max) }
        for bytes in [
            huge, Self.bytes { $0.write(count: 1 << 40) }, Self.bytes { $0.write(count: 1) },
        ] {
            var reader = StateReader(bytes)
            #expect(throws: EventError.self) { try reader.string() }
            var other = StateReader(bytes)
            #expect(throws: EventError.self) {
                try other.entries { (_, _) throws(EventError) in }
            }
        }
        var reader = StateReader(huge)
        #expect(throws: EventError.self) { try reader.nonNegative() }
        var tally = StateReader(Self.bytes { $0.write(UInt64(1) << 60) })
        #expect(throws: EventError.self) { try tally.tally() }
    }

    @Test func `bytes that StateWriter does not write are refused`() {
        var text = StateReader([2, 0xC3, 0x28])
        #expect(throws: EventError.self) { try text.string() }
        var flag = StateReader([2])
        #expect(throws: EventError.self) { try flag.bool() }
        var time = StateReader(Self.bytes { $0.write(UInt64.max) })
        #expect(throws: EventError.self) { try time.time() }
        var twice = StateReader([2, 1, 0x61, 1, 0x61])
        #expect(throws: EventError.self) { try twice.entries { (_, _) throws(EventError) in } }
        #expect(throws: EventError.self) { try StateReader([0]).finish() }
    }
}
