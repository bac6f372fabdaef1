// Events that are read ahead are delivered completely, in order, and with the error that ended them.

import DaybookTestKit
import EventGenerators
import Foundation
import LogFormat
import Synchronization
import TestSupport
import Testing

@testable import EventSourcing

@Suite struct EventRunsTests {
    private struct Stop: Error {}

    /// A source of `count` events that ends with an error if `fails` is true.
    private static func runs(_ count: Int, fails: Bool = false, isShort: Bool = false) -> EventRuns
    {
        var history = EventHistory()
        let events = (0..<count).map { number in
            history.addOwn(EventDraft(type: "t", subject: "s\(number)"))
        }
        return EventRuns(
            source: { _, body in
                for event in events { guard try body(event) else { break } }
                if fails { throw Stop() }
                return events.last?.position ?? .zero
            }, isShort: isShort)
    }

    @Test(arguments: [0, 1, 511, 512, 513, 5_000], [true, false])
    func `all events are delivered, in order`(count: Int, isShort: Bool) throws {
        var subjects: [String?] = []
        let last = try Self.runs(count, isShort: isShort).forEach { run in
            #expect(!run.isEmpty)
            #expect(run.count <= 512)
            subjects += run.map(\.subject)
        }
        #expect(subjects == (0..<count).map { "s\($0)" })
        #expect(last.rawValue == UInt64(count))
    }

    @Test(arguments: [true, false])
    func `events before an error are delivered before it`(isShort: Bool) {
        var count = 0
        #expect(throws: Stop.self) {
            try Self.runs(1_300, fails: true, isShort: isShort).forEach { count += $0.count }
        }
        #expect(count == 1_300)
    }

    @Test(arguments: [true, false])
    func `a caller that throws gets no more runs, and no thread waits for ever`(isShort: Bool) {
        for _ in 0..<20 {
            var calls = 0
            #expect(throws: Stop.self) {
                try Self.runs(20_000, isShort: isShort).forEach { _ in
                    calls += 1
                    if calls == 2 { throw Stop() }
                }
            }
            #expect(calls == 2)
        }
    }

    /// A weak reference to an event.
    private struct Watched {
        weak var record: EventRecord?
        let bytes: Int
    }

    @Test func `folded events are released, also if runs of few and of many events alternate`()
        throws
    {
        let watched = Mutex<[Watched]>([])
        let runs = EventRuns { _, body in
            var position = Position.zero
            for _ in 0..<10 {
                for (count, bytes) in [(1_024, 300), (500, 20_000)] {
                    for _ in 0..<count {
                        position = position.next
                        let draft = EventDraft(
                            type: "t", lane: "l", time: Timestamp(milliseconds: 0))
                        let prefix = LinePrefix(own: draft.id.integer, source: 1, at: position)
                        let event = Event(
                            prefix, content: draft, catalogue: EventCatalogue(), lineBytes: bytes)
                        watched.withLock {
                            $0.append(Watched(record: event.record, bytes: bytes))
                        }
                        guard try body(event) else { return position }
                    }
                }
            }
            return position
        }
        var most = 0
        try runs.forEach { _ in
            let held = watched.withLock { watched in
                watched.removeAll { $0.record == nil }
                return watched.reduce(0) { $0 + $1.bytes }
            }
            most = max(most, held)
        }
        // About 100 MB of lines in all, and a dozen runs at a time.
        #expect(most < 6 * 1024 * 1024, "\(most) bytes")
    }
}
