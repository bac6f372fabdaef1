// Events that are read ahead come all, in order, and with the error that ended them.

import DaybookTestKit
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import EventSourcing

@Suite struct EventRunsTests {
    private struct Stop: Error {}

    /// A source of so many events that ends with an error, if it is told to.
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
    func `all events come, in order`(count: Int, isShort: Bool) throws {
        var subjects: [String?] = []
        let last = try Self.runs(count, isShort: isShort).forEach { run in
            #expect(!run.isEmpty && run.count <= 512)
            subjects += run.map(\.subject)
        }
        #expect(subjects == (0..<count).map { "s\($0)" })
        #expect(last.rawValue == UInt64(count))
    }

    @Test(arguments: [true, false])
    func `what came before an error is handed on before it`(isShort: Bool) {
        var count = 0
        #expect(throws: Stop.self) {
            try Self.runs(1_300, fails: true, isShort: isShort).forEach { count += $0.count }
        }
        #expect(count == 1_300)
    }

    @Test(arguments: [true, false])
    func `who gives up gets no more, and nobody waits for ever`(isShort: Bool) {
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
}
