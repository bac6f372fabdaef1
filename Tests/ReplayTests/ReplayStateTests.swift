// The decision table of Spec/protocol/replay.md, row by row, without a network or a clock.

import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import Replay

/// A state with events in lanes; their ids are their positions.
private struct Bench {
    var state = ReplayState()
    var now: Int64 = 1_000_000
    /// The request that was sent last.
    var number = 0

    /// `lanes[n]` is the lane of position n + 1.
    init(_ lanes: [String]) {
        state.tokenChanged()
        for (index, lane) in lanes.enumerated() { add(UInt64(index + 1), lane) }
    }

    mutating func add(_ position: UInt64, _ lane: String, bytes: Int = 100) {
        state.enqueue(Self.entry(position, lane, bytes: bytes))
    }

    static func entry(_ position: UInt64, _ lane: String, bytes: Int = 100) -> OutboxEntry {
        let id = Self.id(position)
        let prefix = LinePrefix(own: id.integer, source: 1, at: Position(position))
        let draft = EventDraft(
            id: id, type: "t", subject: "s", lane: lane, time: Timestamp(milliseconds: 0))
        let event = Event(prefix, content: draft, catalogue: EventCatalogue(), lineBytes: bytes)
        return OutboxEntry(event, action: "ACT")
    }

    static func id(_ position: UInt64) -> UUID { UUID(integer: UInt128(position)) }

    /// The positions that are sent next; empty if nothing is.
    mutating func send() -> [UInt64] {
        guard case .send(.append(let items), let number) = state.next(now: now) else { return [] }
        self.number = number
        return items.map(\.position.rawValue)
    }

    mutating func reply(
        _ status: Int, retryAfter: Double? = nil, body: String = ""
    ) -> [ReplayState.Effect] {
        state.handleAnswer(
            .reply(
                TransportReply(
                    status: status, body: Array(body.utf8), retryAfterSeconds: retryAfter)),
            to: number, now: now, random: 0.5)
    }

    mutating func verdicts(_ verdicts: [(UInt64, String)], more: String = "") -> [ReplayState
        .Effect]
    {
        let list = verdicts.map {
            "{\"id\":\"\(Self.id($0.0).uuidString)\",\"status\":\"\($0.1)\"\(more)}"
        }
        return reply(200, body: "{\"verdicts\":[\(list.joined(separator: ","))]}")
    }
}

@Suite struct ReplayStateTests {
    @Test func `V1: an applied or duplicate event is removed`() {
        var bench = Bench(["a", "b", "a"])
        #expect(bench.send() == [1, 2, 3])
        let outcome = bench.verdicts([(1, "applied"), (2, "duplicate"), (3, "applied")])
        #expect(outcome.settlement.settled.count == 3)
        #expect(outcome.settlement.entries.isEmpty)
        #expect(bench.state.next(now: bench.now) == .idle)
        #expect(bench.state.count == 0)
    }

    @Test(.verifies("RPL-2"))
    func `V2: a rejected event is parked and holds its lane, and no other`() {
        var bench = Bench(["a", "b", "a", "c"])
        _ = bench.send()
        let outcome = bench.verdicts(
            [(1, "rejected"), (2, "applied"), (3, "unprocessed"), (4, "applied")])
        #expect(outcome.settlement.entries.map(\.outcome) == [.parked])
        #expect(bench.state.next(now: bench.now) == .idle)
        #expect(bench.state.heldCount == 2)
        bench.add(5, "b")
        bench.add(6, "a")
        #expect(bench.send() == [5])
    }

    @Test(.verifies("RPL-2")) func `V3: a conflict holds its lane and is recorded as one`() {
        var bench = Bench(["a", "a"])
        _ = bench.send()
        let outcome = bench.verdicts([(1, "conflict")])
        #expect(outcome.settlement.entries.map(\.outcome) == [.conflict])
        #expect(bench.send().isEmpty)
    }

    @Test(.verifies("RPL-5", "PRK-4"))
    func `V4: a retry backs off its lane and is counted, and the fifth exhausts the event`() {
        var bench = Bench(["a", "b"])
        for attempt in 1...8 {
            #expect(bench.send().first == 1)
            let entry = bench.verdicts([(1, "retry"), (2, "applied")]).settlement.entries.first
            #expect(entry?.retryCount == min(attempt, 5))
            #expect(entry?.isFinal == false)
            #expect(entry?.outcome == (attempt < 5 ? .retry : .parked))
            #expect(bench.state.heldCount == (attempt < 5 ? 0 : 1))
            guard case .wait(let time) = bench.state.next(now: bench.now) else {
                Issue.record("the lane does not wait")
                return
            }
            let wait = time - bench.now
            #expect(attempt < 5 ? wait < 60_000 : (1_800_000...3_600_000).contains(wait))
            bench.now = time
        }
        #expect(bench.send() == [1])
        #expect(bench.verdicts([(1, "applied")]).settlement.applied == [Position(1)])
        #expect(bench.state.next(now: bench.now) == .idle)
        #expect(bench.state.heldCount == 0)
    }

    /// A state whose first event has used up its retries.
    private func exhausted(_ lanes: [String]) -> Bench {
        var bench = Bench(lanes)
        for _ in 1...5 {
            _ = bench.send()
            _ = bench.verdicts([(1, "retry")])
            guard case .wait(let time) = bench.state.next(now: bench.now) else { break }
            if bench.state.heldCount == 0 { bench.now = time }
        }
        return bench
    }

    @Test(.verifies("PRK-4"))
    func `V2: an exhausted event that is rejected waits for a decision`() {
        var bench = exhausted(["a"])
        bench.now += 3_600_000
        #expect(bench.send() == [1])
        let entry = bench.verdicts([(1, "rejected")]).settlement.entries.first
        #expect(entry?.outcome == .parked)
        #expect(entry?.retryCount == 5)
        #expect(entry?.isFinal == true)
        #expect(bench.state.next(now: bench.now + 100 * 3_600_000) == .idle)
    }

    @Test(.verifies("PRK-4", "TRG-5"))
    func `C4: a demand sends an exhausted event at once, and its lane after it`() {
        var bench = exhausted(["a", "a"])
        #expect(bench.send() == [])
        #expect(bench.state.heldCount == 2)
        bench.state.demand()
        #expect(bench.send() == [1, 2])
    }

    @Test(.verifies("PRK-4"))
    func `C4: a decision on another lane does not hold a lane that a demand has released`() {
        var bench = exhausted(["a", "a"])
        bench.add(3, "b")
        bench.state.demand()
        #expect(bench.send() == [1, 2, 3])
        var first = Bench.entry(1, "a")
        first.answer = OutboxEntry.Answer(
            outcome: .parked, retryCount: 5, at: Timestamp(milliseconds: bench.now))
        bench.state.decided([first, Bench.entry(2, "a"), Bench.entry(3, "b")])
        _ = bench.verdicts([(1, "applied"), (2, "unprocessed"), (3, "applied")])
        // The lane is ready at once, not in an hour.
        #expect(bench.send() == [2])
    }

    @Test(.verifies("PRK-1"))
    func `a retry by decision counts from the beginning, also while the event is under way`() {
        var bench = exhausted(["a"])
        bench.state.demand()
        #expect(bench.send() == [1])
        bench.state.decided([Bench.entry(1, "a")])
        let entry = bench.verdicts([(1, "retry")]).settlement.entries.first
        #expect(entry?.outcome == .retry)
        #expect(entry?.retryCount == 1)
    }

    @Test(.verifies("PRK-4", "COND-4"))
    func `C4: a demand does not wait for an exhausted event, so the settings apply again`() {
        var bench = exhausted(["a"])
        bench.state.set(ReplayState.Conditions(isAllowed: false))
        bench.state.demand()
        #expect(bench.send() == [1])
        _ = bench.verdicts([(1, "retry")])
        #expect(bench.send() == [])
        bench.add(2, "b")
        #expect(bench.state.next(now: bench.now) == .paused(.notAllowed))
    }

    @Test(.verifies("PRK-4"))
    func `an exhausted event waits no longer than an hour when the clock steps back`() {
        var bench = exhausted(["a"])
        bench.now -= 4 * 365 * 86_400_000
        #expect(bench.send() == [1])
    }

    @Test(.verifies("RPL-2")) func `V4: a lane waits as long as the server asks`() {
        var bench = Bench(["a"])
        _ = bench.send()
        _ = bench.verdicts([(1, "retry")], more: ",\"retryAfterSeconds\":7")
        #expect(bench.state.next(now: bench.now) == .wait(until: bench.now + 7_000))
    }

    @Test(.verifies("RPL-3", "SYNC-21"))
    func `V5: an unprocessed event stays without a retry, and nothing overtakes it`() {
        var bench = Bench(["a", "b", "a"])
        _ = bench.send()
        let outcome = bench.verdicts([(1, "unprocessed"), (2, "applied"), (3, "applied")])
        #expect(outcome.settlement.settled.keys.map(\.rawValue) == [2])
        #expect(bench.send() == [1, 3])
        let second = bench.verdicts([(1, "brand-new-status")])
        #expect(second.settlement.settled.isEmpty)
        #expect(second.settlement.entries.isEmpty)
    }

    @Test(.verifies("SYNC-40"))
    func `W1: a refused token is refreshed once, then shipping pauses until there is a new one`() {
        var bench = Bench(["a"])
        _ = bench.send()
        _ = bench.reply(401)
        #expect(bench.state.next(now: bench.now) == .refreshToken)
        bench.state.tokenChanged()
        #expect(bench.send() == [1])
        _ = bench.reply(401)
        #expect(bench.state.next(now: bench.now) == .paused(.unauthorized))
        bench.state.tokenChanged()
        #expect(bench.send() == [1])
    }

    @Test(.verifies("SYNC-40"))
    func `W2: a batch that is too large is halved, and a single event is parked`() {
        var bench = Bench(["a", "b", "c", "d"])
        #expect(bench.send() == [1, 2, 3, 4])
        _ = bench.reply(413)
        #expect(bench.send() == [1, 2])
        _ = bench.reply(413)
        #expect(bench.send() == [1])
        #expect(bench.reply(413).settlement.entries.map(\.code) == ["http_413"])
        #expect(bench.send() == [2])
        _ = bench.verdicts([(2, "applied")])
        #expect(bench.send() == [3, 4])
    }

    @Test(.verifies("SYNC-40"))
    func `W3: a poison event is found by bisection and parked; the others are sent in order`() {
        var bench = Bench(["a", "b", "a", "poison", "a", "b", "poison", "c"])
        var sent: [UInt64] = []
        var parked: [UInt64] = []
        var rounds = 0
        while rounds < 50 {
            rounds += 1
            let batch = bench.send()
            guard !batch.isEmpty else { break }
            let outcome: [ReplayState.Effect]
            if batch.contains(4) {
                outcome = bench.reply(400)
            } else {
                sent += batch
                outcome = bench.verdicts(batch.map { ($0, "applied") })
            }
            parked += outcome.settlement.entries.map(\.position)
        }
        parked += bench.state.resolveSuspect().settlement.entries.map(\.position)
        #expect(parked == [4])
        #expect(Set(sent) == [1, 2, 3, 5, 6, 8])
        #expect(sent.filter { [1, 3, 5].contains($0) } == [1, 3, 5])
        #expect(bench.state.heldCount == 2)
    }

    @Test(.verifies("SYNC-40"))
    func `W3: single events of two lanes refused in a row mean a wrong endpoint`() {
        var bench = Bench(["a", "b"])
        _ = bench.send()
        _ = bench.reply(422)
        #expect(bench.send() == [1])
        #expect(bench.reply(422).settlement.entries.isEmpty)
        #expect(bench.send() == [2])
        #expect(bench.reply(422).settlement.entries.isEmpty)
        #expect(bench.state.next(now: bench.now) == .paused(.endpoint(status: 422)))
        #expect(bench.state.heldCount == 0)
        bench.state.resume()
        #expect(bench.send() == [1, 2])
    }

    @Test(.verifies("SYNC-40"), arguments: [400, 413, 422])
    func `W3: a single event refused with a page in HTML means a wrong endpoint`(status: Int) {
        var bench = Bench(["a"])
        _ = bench.send()
        let outcome = bench.reply(status, body: "\r\n<html>Bad Request</html>")
        #expect(outcome.settlement.entries.isEmpty)
        #expect(bench.state.resolveSuspect().settlement.entries.isEmpty)
        #expect(bench.state.next(now: bench.now) == .paused(.endpoint(status: status)))
        bench.state.resume()
        #expect(bench.send() == [1])
    }

    @Test(.verifies("SYNC-40"))
    func `W3: a page in HTML for the first of a lane's events pauses, too`() {
        var bench = Bench(["a", "a"])
        _ = bench.send()
        _ = bench.reply(400, body: "<html>")
        #expect(bench.send() == [1])
        _ = bench.reply(400, body: "<html>")
        while case .idle = bench.state.next(now: bench.now) {
            #expect(bench.state.resolveSuspect().message != nil)
        }
        #expect(bench.state.next(now: bench.now) == .paused(.endpoint(status: 400)))
        bench.state.resume()
        #expect(bench.send() == [1, 2])
    }

    @Test(.verifies("SYNC-40"), arguments: [400, 413, 422])
    func `W3: an event refused with a page in HTML is parked once another event is accepted`(
        status: Int
    ) {
        var bench = Bench(["a", "b"])
        _ = bench.send()
        _ = bench.reply(status, body: "<html>")
        #expect(bench.send() == [1])
        #expect(bench.reply(status, body: "<html>").settlement.entries.isEmpty)
        #expect(bench.send() == [2])
        let outcome = bench.verdicts([(2, "applied")])
        #expect(outcome.settlement.entries.map(\.code) == ["http_\(status)"])
    }

    @Test(.verifies("SYNC-40"), arguments: [301, 307, 403, 404, 405, 409, 415])
    func `W4: other refusals and redirects pause, and no retry is counted`(status: Int) {
        var bench = Bench(["a"])
        _ = bench.send()
        let outcome = bench.reply(status)
        #expect(outcome.settlement.entries.isEmpty)
        #expect(outcome.message != nil)
        #expect(bench.state.next(now: bench.now) == .paused(.endpoint(status: status)))
    }

    @Test(.verifies("SYNC-40"), arguments: [429, 503])
    func `W5: the whole pipeline waits as long as the server asks`(status: Int) {
        var bench = Bench(["a", "b"])
        _ = bench.send()
        let outcome = bench.reply(status, retryAfter: 30)
        #expect(outcome.settlement.entries.isEmpty)
        #expect(outcome.settlement.settled.isEmpty)
        #expect(bench.state.next(now: bench.now) == .wait(until: bench.now + 30_000))
        bench.now += 30_000
        #expect(bench.send() == [1, 2])
        _ = bench.reply(status, retryAfter: 1e300)
        #expect(bench.state.next(now: bench.now) == .wait(until: bench.now + 3_600_000))
    }

    @Test(.verifies("RPL-4", "RPL-5", "SYNC-40"))
    func `W6, W7: server errors, timeouts and invalid answers back off without a retry`() {
        var bench = Bench(["a"])
        var waits: [Int64] = []
        for round in 0..<10 {
            #expect(bench.send() == [1])
            let outcome: [ReplayState.Effect] =
                switch round % 4 {
                case 0: bench.reply(500)
                case 1: bench.reply(200, body: "<html>hello</html>")
                case 2:
                    bench.state.handleAnswer(
                        .failure("no answer"), to: bench.number, now: bench.now, random: 0.5)
                default: bench.reply(200, body: "{\"verdicts\":[]}")
                }
            #expect(outcome.settlement.entries.isEmpty)
            #expect(outcome.settlement.settled.isEmpty)
            guard case .wait(let time) = bench.state.next(now: bench.now) else {
                Issue.record("it does not wait")
                return
            }
            waits.append(time - bench.now)
            bench.now = time
        }
        #expect(waits == [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000])
        _ = bench.send()
        _ = bench.verdicts([(1, "applied")])
        #expect(bench.state.next(now: bench.now) == .idle)
    }

    @Test(.verifies("RPL-1", "SYNC-7")) func `a batch has at most 500 events and 1 MiB of lines`() {
        var bench = Bench(Array(repeating: "a", count: 600))
        #expect(bench.send().count == 500)
        var large = Bench([])
        for position in 1...6 { large.add(UInt64(position), "l\(position)", bytes: 250 * 1024) }
        #expect(large.send() == [1, 2, 3, 4])
    }

    @Test(.verifies("RPL-2")) func `a thousand held lanes do not stop the others`() {
        var bench = Bench((0..<1_000).map { "held \($0)" })
        for _ in 0..<2 {
            let batch = bench.send()
            _ = bench.verdicts(batch.map { ($0, "rejected") })
        }
        bench.add(2_000, "free")
        #expect(bench.send() == [2_000])
    }
}
