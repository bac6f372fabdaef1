// The stored outbox: it is restored, its bytes depend on its content only, and bytes that are not an
// outbox are refused.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import Replay

@Suite(.verifies("VIEW-10", "OUT-8")) struct StoredOutboxTests {
    /// A random log, and its first events.
    private static func log(
        _ choices: inout Choices, _ count: ClosedRange<Int>
    ) throws -> (events: [Event], cut: Int) {
        var log = RandomLog()
        let steps = try choices.array(count) { choices in
            try log.step(&choices)
            return log.events.count
        }
        choices.note("\(log.events.map { "\($0.position) \($0.type) \($0.isOwn)" })")
        return (log.events, choices.int(in: 0...(steps.last ?? 0)))
    }

    /// Everything that an outbox shows.
    private static func shown(_ outbox: Outbox) -> [String] {
        outbox.entries.map { String(decoding: $0.row(data: nil).json, as: UTF8.self) }
            + ["\(outbox.count)", "\(outbox.through)", "\(outbox.ignored)"]
            + ["\(outbox.parkedCount)", "\(outbox.conflictCount)"]
    }

    @Test(.verifies("STA-1")) func `the counts of an outbox are those of its entries`() throws {
        try Property.check("kept counts equal counted ones", runs: 400) { choices in
            let (events, _) = try Self.log(&choices, 1...60)
            var outbox = Outbox()
            for event in events {
                outbox.fold(event)
                try #require(
                    outbox.parkedCount == outbox.entries.count { $0.status == .failed })
                try #require(
                    outbox.conflictCount == outbox.entries.count { $0.status == .conflict })
            }
        }
    }

    @Test func `an outbox that was stored and restored folds like the original`() throws {
        try Property.check("decode(encode(outbox)) folds like it", runs: 400) { choices in
            let (events, cut) = try Self.log(&choices, 1...40)
            let before = Outbox(folding: events[..<cut])
            var stored = try Outbox(encodedState: try #require(before.encodedState()))
            try #require(Self.shown(stored) == Self.shown(before))
            let every = Set(before.entries.map(\.position))
            try #require(stored.ranges(of: every) == before.ranges(of: every))
            for event in events[cut...] { stored.fold(event) }
            let straight = Outbox(folding: events)
            try #require(stored.encodedState() == straight.encodedState())
            try #require(Self.shown(stored) == Self.shown(straight))
        }
    }

    @Test func `damaged bytes are refused with an error or are another valid outbox`() throws {
        try Property.check("no bytes trap", runs: 60) { choices in
            let (events, _) = try Self.log(&choices, 1...25)
            let good = try #require(Outbox(folding: events).encodedState())
            for count in good.indices {
                #expect(throws: EventError.self) { try Outbox(encodedState: Array(good[..<count])) }
            }
            #expect(throws: EventError.self) { try Outbox(encodedState: good + [0]) }
            for _ in 0..<100 {
                var bad = good
                for _ in 0...choices.int(in: 0...2) {
                    bad[choices.int(in: 0...bad.count - 1)] ^= 1 << UInt8(choices.int(in: 0...7))
                }
                var outbox: Outbox
                do {
                    outbox = try Outbox(encodedState: bad)
                } catch {
                    try #require(error is EventError)
                    continue
                }
                try #require(outbox.encodedState() == bad)
                _ = outbox.foldedRecord(by: UUID(integer: 1))?.json()
                _ = outbox.ranges(of: Set(outbox.entries.map(\.position)))
                _ = outbox.entries(from: outbox.through.next)
                var state = ReplayState()
                for entry in outbox.entries { state.enqueue(entry) }
                _ = state.next(now: 0)
                for event in events { outbox.fold(event) }
                _ = Self.shown(outbox)
            }
        }
    }

    @Test(
        arguments: [
            ("runs that touch", 9, 0, [3, 0, 1, 0]), ("a run behind the last line", 9, 0, [8, 2]),
            ("a run whose end is beyond all numbers", 9, 0, [8, .max]),
            ("a record behind the last line", 9, 10, []),
            ("a last line after which no position is left", .max, 0, []),
        ] as [(String, UInt64, UInt64, [UInt64])])
    func `impossible positions are refused`(
        what: String, through: UInt64, lastRecord: UInt64, runs: [UInt64]
    ) throws {
        func bytes(
            _ through: UInt64, _ lastRecord: UInt64, _ runs: [UInt64], request: UInt64? = nil
        ) -> [UInt8] {
            var writer = StateWriter()
            writer.write(count: 0)
            writer.write(through)
            writer.write(lastRecord)
            writer.write(Timestamp(milliseconds: 0))
            writer.write(false)
            writer.write(count: 0)
            writer.write(false)
            writer.write(false)
            writer.write(false)
            writer.write(count: runs.count / 2)
            for number in runs { writer.write(number) }
            writer.write(count: 0)
            writer.write(count: request == nil ? 0 : 1)
            if let request {
                writer.write(UInt64(3))
                writer.write(request)
                writer.write(Timestamp(milliseconds: 0))
            }
            writer.write(count: 0)
            return writer.bytes
        }
        #expect(try Outbox(encodedState: bytes(9, 9, [3, 0, 2, 0, 2, 2])).unknown.runs.count == 3)
        #expect(try Outbox(encodedState: bytes(9, 9, [], request: 4)).requests.count == 1)
        for request: UInt64 in [3, 10] {
            #expect(throws: EventError.self) {
                try Outbox(encodedState: bytes(9, 9, [], request: request))
            }
        }
        #expect(throws: EventError.self) {
            try Outbox(encodedState: bytes(through, lastRecord, runs))
        }
    }
}
