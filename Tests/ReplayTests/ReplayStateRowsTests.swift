// The rows of Spec/protocol/replay.md that are not about one answer: tokens, conditions, reads, and several
// requests at a time. And the whole machine against a server in a few lines, on a virtual clock.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import Replay

/// A state with events in lanes; their ids are their positions.
private struct Bench {
    var state: ReplayState
    var now: Int64 = 1_000_000

    init(_ lanes: [String] = [], requestsMax: Int = 1, hasToken: Bool = true) {
        state = ReplayState(requestsMax: requestsMax)
        if hasToken { state.tokenChanged() }
        for (index, lane) in lanes.enumerated() { add(UInt64(index + 1), lane) }
    }

    static func entry(_ position: UInt64, _ lane: String) -> OutboxEntry {
        let id = UUID(integer: UInt128(position))
        let prefix = LinePrefix(own: id.integer, source: 1, at: Position(position))
        let draft = EventDraft(
            id: id, type: "t", subject: "s", lane: lane, time: Timestamp(milliseconds: 0))
        return OutboxEntry(
            Event(prefix, content: draft, catalogue: EventCatalogue(), lineBytes: 100),
            action: "ACT")
    }

    mutating func add(_ position: UInt64, _ lane: String) {
        state.enqueue(Self.entry(position, lane))
    }

    mutating func next() -> ReplayState.Action { state.next(now: now) }

    /// The number and the positions of the request that is sent next.
    mutating func send() throws -> (number: Int, positions: [UInt64]) {
        guard case .send(.append(let items), let number) = next() else {
            throw Unexpected(action: next())
        }
        return (number, items.map(\.position.rawValue))
    }

    struct Unexpected: Error { var action: ReplayState.Action }

    @discardableResult
    mutating func reply(
        _ number: Int, _ status: Int, body: String = "", next: String? = nil
    ) -> [ReplayState.Effect] {
        state.handleAnswer(
            .reply(TransportReply(status: status, body: Array(body.utf8), next: next)),
            to: number, now: now, random: 0.5)
    }

    @discardableResult
    mutating func verdicts(
        _ number: Int, _ verdicts: [(UInt64, String)]
    ) -> [ReplayState.Effect] {
        let list = verdicts.map {
            "{\"id\":\"\(UUID(integer: UInt128($0.0)))\",\"status\":\"\($0.1)\"}"
        }
        return reply(number, 200, body: "{\"verdicts\":[\(list.joined(separator: ","))]}")
    }
}

@Suite struct ReplayStateRowsTests {
    // MARK: Tokens

    @Test(.verifies("TOK-1")) func `T1: a token is requested when there is something to do`() {
        var idle = Bench(hasToken: false)
        #expect(idle.next() == .idle)
        var bench = Bench(["a"], hasToken: false)
        #expect(bench.next() == .getToken)
        bench.state.tokenChanged()
        #expect(throws: Never.self) { try bench.send() }
    }

    @Test(.verifies("TOK-2"))
    func `T2: a token is renewed a minute before it ends by the server's clock`() throws {
        var bench = Bench(["a"], hasToken: false)
        // The device's clock is an hour slow.
        bench.state.setClock(offset: 3_600_000)
        let end = bench.now + 3_600_000 + 600_000
        bench.state.tokenChanged(expiresAt: end, now: bench.now)
        bench.now += 539_999
        let (number, _) = try bench.send()
        bench.verdicts(number, [(1, "applied")])
        bench.add(2, "a")
        bench.now += 1
        #expect(bench.next() == .refreshToken)
        bench.state.tokenChanged(expiresAt: end + 600_000, now: bench.now)
        #expect(try bench.send().positions == [2])
    }

    @Test(.verifies("TOK-2"))
    func `T2: a correction of the clock does not postpone a renewal, and requests it once`() throws
    {
        var bench = Bench([], hasToken: false)
        let end = bench.now + 600_000
        bench.state.tokenChanged(expiresAt: end, now: bench.now)
        while bench.now < end - 60_000 {
            bench.now += 5_000
            bench.state.setClock(offset: 0)
        }
        bench.add(1, "a")
        #expect(bench.next() == .refreshToken)
        // The new token is requested, and the old one is still valid.
        bench.state.setClock(offset: 0)
        #expect(try bench.send().positions == [1])
        // The request fails: the next one is 10 s later, whatever the server's time.
        _ = bench.state.tokenFailed("no network", now: bench.now, random: 0.5)
        bench.now += 9_999
        bench.state.setClock(offset: 0)
        bench.add(2, "b")
        #expect(bench.next() != .refreshToken)
        bench.now += 1
        bench.add(3, "c")
        #expect(bench.next() == .refreshToken)
    }

    @Test(.verifies("TOK-2"))
    func `T2: a token of one minute is renewed after half of it, an expired one is tried`()
        throws
    {
        var bench = Bench(["a"], hasToken: false)
        bench.state.tokenChanged(expiresAt: bench.now + 60_000, now: bench.now)
        bench.now += 30_000
        #expect(bench.next() == .refreshToken)
        // By the device's clock it is expired on receipt: the clock may be wrong, so the server decides.
        bench.state.tokenChanged(expiresAt: bench.now - 1, now: bench.now)
        #expect(try bench.send().positions == [1])
    }

    @Test(.verifies("TOK-3"))
    func `T3: a refusal of an earlier token requests no other`() throws {
        var bench = Bench(["a", "b"], requestsMax: 2, hasToken: true)
        let (first, _) = try bench.send()
        bench.add(3, "c")
        let (second, _) = try bench.send()
        bench.reply(first, 401)
        #expect(bench.next() == .refreshToken)
        bench.state.tokenChanged()
        bench.reply(second, 401)
        #expect(try bench.send().positions == [1, 2, 3])
    }

    @Test(.verifies("TOK-4"))
    func `T4: a failed token request backs off, and no retry is counted`() throws {
        var bench = Bench(["a"], hasToken: false)
        #expect(bench.next() == .getToken)
        let outcome = bench.state.tokenFailed("no network", now: bench.now, random: 0.5)
        #expect(outcome.settlement.entries.isEmpty)
        #expect(outcome.message == "no network")
        #expect(bench.next() == .wait(until: bench.now + 250))
        bench.now += 250
        #expect(bench.next() == .getToken)
    }

    @Test(.verifies("TOK-4"))
    func `T4: while the old token is valid, an unreachable issuer delays nothing`() throws {
        var bench = Bench(["a"], hasToken: false)
        bench.state.tokenChanged(expiresAt: bench.now + 100_000, now: bench.now)
        bench.now += 50_000
        #expect(bench.next() == .refreshToken)
        _ = bench.state.tokenFailed("away", now: bench.now, random: 1)
        let (number, positions) = try bench.send()
        #expect(positions == [1])
        bench.verdicts(number, [(1, "applied")])
        bench.add(2, "a")
        bench.now += 10_000
        #expect(bench.next() == .refreshToken)
    }

    @Test(.verifies("TOK-4"))
    func `a run with an unreachable issuer ends, and makes few requests to it`() async throws {
        struct Away: Credentials {
            let asked: @Sendable () -> Void
            struct NoAnswer: Error {}
            func token() throws -> AccessToken? {
                asked()
                throw NoAnswer()
            }
            func refresh(_ old: AccessToken?) throws -> AccessToken? { throw NoAnswer() }
        }
        let clock = VirtualClock()
        let store = try await EventStore.open(
            at: "/log", catalogue: EventCatalogue([EventRule(type: "t", action: "A") { _ in }]),
            views: [Outbox.self],
            environment: clock.environment(fileSystem: InMemoryFileSystem(), seed: 1))
        try await store.append([EventDraft(type: "t")])
        let count = Mutex(0)
        struct Nobody: Transport {
            func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
                throw CancellationError()
            }
        }
        let report = try await Replayer(
            store, transport: Nobody(),
            credentials: Away { count.withLock { $0 += 1 } },
            sleep: { clock.advance(by: $0) }
        ).run()
        #expect(report.pending == 1)
        #expect(report.message?.contains("no token") == true)
        #expect(count.withLock { $0 } < 20)
        try await store.close()
    }

    // MARK: Waits

    @Test(.verifies("RPL-5"))
    func `a clock that steps back causes no wait longer than an hour`() throws {
        var bench = Bench(["a", "b"])
        let (number, _) = try bench.send()
        bench.verdicts(number, [(1, "retry"), (2, "applied")])
        bench.add(3, "c")
        let (second, _) = try bench.send()
        bench.reply(second, 503)
        bench.now -= 4 * 365 * 86_400_000
        guard case .wait(let time) = bench.next() else {
            Issue.record("it does not wait")
            return
        }
        #expect(time - bench.now <= 60_000)
        bench.now = time
        #expect(try bench.send().positions == [1, 3])
    }

    @Test(.verifies("RPL-4", "SYNC-40"))
    func `W5: a Retry-After of zero causes no busy loop`() throws {
        var bench = Bench(["a"])
        for round in 0..<4 {
            let (number, _) = try bench.send()
            _ = bench.state.handleAnswer(
                .reply(TransportReply(status: 503, retryAfterSeconds: 0)), to: number,
                now: bench.now, random: 0.5)
            #expect(bench.next() == .wait(until: bench.now + 250 << Int64(round)))
            bench.now += 250 << Int64(round)
        }
    }

    @Test(.verifies("TRG-2"))
    func `while a request is under way no timer runs unless something is due`() throws {
        var bench = Bench(["a", "b"], requestsMax: 2)
        let (number, _) = try bench.send()
        #expect(bench.next() == .busy(until: nil))
        bench.add(3, "c")
        let (second, _) = try bench.send()
        bench.verdicts(second, [(3, "retry")])
        #expect(bench.next() == .busy(until: bench.now + 250))
        bench.verdicts(number, [(1, "applied"), (2, "applied")])
    }

    @Test(.verifies("PRK-2"))
    func `an answer to events that a decision has removed changes nothing`() throws {
        var bench = Bench(["a", "a"])
        let (number, _) = try bench.send()
        // Both were superseded by another event of the lane.
        bench.state.decided([Bench.entry(5, "a")])
        #expect(bench.next() == .busy(until: nil))
        let outcome = bench.verdicts(number, [(1, "conflict"), (2, "unprocessed")])
        #expect(outcome.settlement.entries.isEmpty)
        #expect(!outcome.contains { if case .resolve = $0 { true } else { false } })
        bench.now += 60_000
        #expect(try bench.send().positions == [5])
    }

    @Test(.verifies("SYNC-40"))
    func `W3: two poison events at the head do not keep the others back for ever`() throws {
        var bench = Bench(["a", "b", "c"])
        var sent: Set<UInt64> = []
        var parked: [UInt64] = []
        for round in 0..<60 {
            if round == 30 { bench.add(4, "d") }
            switch bench.next() {
            case .send(.append(let items), let number):
                let positions = items.map(\.position.rawValue)
                let outcome =
                    positions.contains(1) || positions.contains(2)
                    ? bench.reply(number, 400)
                    : bench.verdicts(number, positions.map { ($0, "applied") })
                sent.formUnion(outcome.settlement.settled.keys.map(\.rawValue))
                parked += outcome.settlement.entries.map(\.position)
            case .paused: bench.state.resume()
            case .wait(let time): bench.now = time
            default: parked += bench.state.resolveSuspect().settlement.entries.map(\.position)
            }
        }
        #expect(sent == [3, 4])
        #expect(parked.allSatisfy { $0 <= 2 })
    }

    // MARK: Conditions

    @Test(.verifies("COND-1"))
    func `C1: without a network nothing is sent and no timer runs; its return sends at once`()
        throws
    {
        var bench = Bench(["a"])
        let (number, _) = try bench.send()
        _ = bench.state.handleAnswer(.failure("lost"), to: number, now: bench.now, random: 1)
        bench.state.set(.init(isReachable: false))
        #expect(bench.next() == .paused(.offline))
        bench.state.set(.init())
        #expect(try bench.send().positions == [1])
    }

    @Test(.verifies("COND-2", "COND-4"))
    func `C2, C4: requests that are not allowed wait for a demand`() throws {
        var bench = Bench(["a"])
        bench.state.set(.init(isAllowed: false))
        #expect(bench.next() == .paused(.notAllowed))
        bench.state.demand()
        let (number, _) = try bench.send()
        bench.verdicts(number, [(1, "applied")])
        #expect(bench.next() == .idle)
        bench.add(2, "a")
        #expect(bench.next() == .paused(.notAllowed))
        bench.state.set(.init(isReachable: false, isAllowed: false))
        bench.state.demand()
        #expect(bench.next() == .paused(.offline))
    }

    @Test(.verifies("COND-3"))
    func `C3: if reading is not allowed, the outbox is shipped all the same`() throws {
        var bench = Bench(["a"])
        bench.state.read(after: nil)
        bench.state.set(.init(mayRead: false))
        let (number, _) = try bench.send()
        bench.verdicts(number, [(1, "applied")])
        #expect(bench.next() == .idle)
        bench.state.set(.init())
        #expect(bench.next() == .send(.read(after: nil), number: number + 1))
    }

    // MARK: Reads

    @Test(.verifies("RPL-9"))
    func `G1: events are sent before pages are read, and pages are read until one is empty`() throws
    {
        var bench = Bench(["a"])
        bench.state.read(after: "7")
        let (number, _) = try bench.send()
        #expect(bench.next() == .busy(until: nil))
        bench.verdicts(number, [(1, "applied")])
        guard case .send(.read(after: "7"), let read) = bench.next() else {
            Issue.record("nothing is read")
            return
        }
        let page = try #require(bench.reply(read, 200, body: "[]", next: "9").page)
        #expect(page.next == "9")
        bench.state.pageRecorded(page, isLast: false)
        #expect(bench.next() == .send(.read(after: "9"), number: read + 1))
        let last = try #require(bench.reply(read + 1, 200, body: "[]", next: "9").page)
        bench.state.pageRecorded(last, isLast: true)
        #expect(bench.next() == .idle)
    }

    @Test(.verifies("RPL-9"))
    func `G2: reading restarts once after a cursor that the server does not know`() throws {
        var bench = Bench()
        bench.state.read(after: "old")
        #expect(bench.next() == .send(.read(after: "old"), number: 1))
        #expect(bench.reply(1, 400).message != nil)
        #expect(bench.next() == .send(.read(after: nil), number: 2))
        bench.reply(2, 400)
        #expect(bench.next() == .idle)
    }

    @Test(.verifies("RPL-9"), arguments: [403, 404, 405, 413, 422, 301])
    func `G3: a server that refuses every read does not stop shipping`(status: Int) throws {
        var bench = Bench()
        bench.state.read(after: nil)
        #expect(bench.next() == .send(.read(after: nil), number: 1))
        #expect(bench.reply(1, status).message != nil)
        #expect(bench.next() == .idle)
        bench.add(1, "a")
        #expect(try bench.send().positions == [1])
    }

    @Test(.verifies("RPL-9"))
    func `G6: reading ends after 10,000 pages in a row without a new event`() {
        func read(newEvery interval: Int, pages: Int) -> (read: Int, message: String?) {
            var bench = Bench()
            bench.state.read(after: nil)
            for number in 1...pages {
                guard case .send(.read, let request) = bench.next(),
                    let page = bench.reply(request, 200, body: "[5]", next: "\(number)").page
                else { return (number - 1, nil) }
                let message = bench.state.pageRecorded(
                    page, isLast: false, hasNew: number % interval == 0)
                if let message { return (number, message) }
            }
            return (pages, nil)
        }
        let stale = read(newEvery: .max, pages: 20_000)
        #expect(stale.read == 10_001)
        #expect(stale.message != nil)
        #expect(read(newEvery: 9_999, pages: 25_000) == (25_000, nil))
    }

    @Test(.verifies("RPL-9"))
    func `G2: cursors from before the restart do not count as a cycle`() throws {
        var bench = Bench()
        bench.state.read(after: nil)
        func read(_ number: Int, next: String) throws {
            guard case .send(.read, number) = bench.next() else { throw CancellationError() }
            let page = try #require(bench.reply(number, 200, body: "[5]", next: next).page)
            #expect(bench.state.pageRecorded(page, isLast: false, hasNew: false) == nil)
        }
        try read(1, next: "a")
        try read(2, next: "b")
        _ = bench.next()
        bench.reply(3, 410)
        try read(4, next: "a")
        try read(5, next: "b")
    }

    // MARK: Several requests

    @Test(.verifies("RPL-1", "SYNC-10"))
    func `concurrent requests never have events of one lane`() throws {
        var bench = Bench((0..<1_200).map { "lane \($0 % 700)" }, requestsMax: 4)
        var lanes: [[String]] = []
        while case .send(.append(let items), _) = bench.next() {
            lanes.append(items.map(\.lane))
        }
        #expect(lanes.count == 2)
        #expect(Set(lanes[0]).isDisjoint(with: lanes[1]))
        #expect(bench.next() == .busy(until: nil) || lanes.count == 2)
    }

    @Test(.verifies("RPL-2"))
    func `a thousand failing lanes do not slow the others`() throws {
        var bench = Bench((0..<1_000).map { "failing \($0)" })
        var healthy: UInt64 = 10_000
        for _ in 0..<40 {
            for _ in 0..<50 {
                healthy += 1
                bench.add(healthy, "healthy \(healthy)")
            }
            let newest = healthy
            var requests = 0
            // Events that were there before a lane failed are sent before it.
            while case .send(.append(let items), let number) = bench.next() {
                requests += 1
                let positions = items.map(\.position.rawValue)
                bench.verdicts(number, positions.map { ($0, $0 <= 1_000 ? "retry" : "applied") })
                if positions.contains(newest) { break }
            }
            try #require(requests <= 3)
            bench.now += 1_000
        }
    }

    @Test(.verifies("RPL-2"))
    func `lanes that fail repeatedly come after the events that were there before`() throws {
        var bench = Bench((0..<1_000).map { "failing \($0)" })
        for position in UInt64(10_001)...15_000 { bench.add(position, "healthy \(position)") }
        var requests = 0
        var waiting = 5_000
        while waiting > 0, case .send(.append(let items), let number) = bench.next() {
            requests += 1
            try #require(requests <= 12, "6,000 events, 500 in a request; \(waiting) still wait")
            let positions = items.map(\.position.rawValue)
            waiting -= positions.count { $0 > 10_000 }
            bench.verdicts(number, positions.map { ($0, $0 <= 1_000 ? "retry" : "applied") })
            // Every lane that failed is ready again.
            bench.now += 3_600_000
        }
        #expect(waiting == 0)
    }

    @Test(.verifies("RPL-1", "RPL-2"))
    func `batches are the same if the outbox is loaded only as far as wanted`()
        throws
    {
        try Property.check("a part of the outbox", runs: 20) { choices in
            let lanes = choices.int(in: 1...3_000)
            let entries = (1...6_000).map {
                Bench.entry(UInt64($0), "\(choices.int(in: 0...lanes - 1))")
            }
            let fails = choices.bool()
            var whole = Bench()
            for entry in entries { whole.state.enqueue(entry) }
            var part = Bench()
            part.state.advanceNewestPosition(to: Position(6_000))
            var rest = entries[...]
            var left = 0
            for step in 0..<100 {
                while part.state.wantsMore, let entry = rest.popFirst() {
                    part.state.enqueue(entry)
                }
                left = max(left, rest.count)
                let action = whole.next()
                try #require(action == part.next())
                guard case .send(.append(let items), let number) = action else { break }
                let verdicts = items.map { item in
                    let isBad = fails && step > 3 && choices.bool(oneIn: 300)
                    return (item.position.rawValue, isBad ? "retry" : "applied")
                }
                whole.verdicts(number, verdicts)
                part.verdicts(number, verdicts)
                whole.now += 10
                part.now += 10
            }
            try #require(left > 0 || lanes < 600, "all of it was wanted")
        }
    }

    /// A small server: some lanes fail, some events are poison, the network loses requests and replies.
    @Test(.verifies("RPL-2", "RPL-5", "SYNC-10"))
    func `any history on a virtual clock ships every lane in order, or holds it for a reason`()
        throws
    {
        try Property.check("replay histories", runs: 2_000) { choices in
            let lanes = choices.int(in: 1...6)
            var bench = Bench(requestsMax: choices.int(in: 1...3))
            var position: UInt64 = 0
            var waiting: [UInt64: String] = [:]
            var held: Set<String> = []
            var settled: [String: [UInt64]] = [:]
            var open: [(number: Int, items: [ReplayItem])] = []
            func append(_ choices: inout Choices) {
                position += 1
                waiting[position] = "\(choices.int(in: 0...lanes - 1))"
                bench.add(position, waiting[position] ?? "")
            }
            for _ in 0..<choices.int(in: 1...20) { append(&choices) }
            var steps = 0
            var isCalm = false
            while steps < 3_000 {
                steps += 1
                if steps == 60 { isCalm = true }
                if !isCalm, choices.bool(oneIn: 10) { append(&choices) }
                let action = bench.next()
                var answers = !open.isEmpty
                switch action {
                case .send(.append(let items), let number):
                    let busy = Set(open.flatMap(\.items).map(\.lane))
                    try #require(busy.isDisjoint(with: items.map(\.lane)))
                    try #require(held.isDisjoint(with: items.map(\.lane)))
                    open.append((number, items))
                    answers = choices.bool()
                case .wait(let time): bench.now = max(bench.now, time)
                case .getToken, .refreshToken: bench.state.tokenChanged()
                case .paused: bench.state.resume()
                case .busy: break
                case .idle:
                    for entry in bench.state.resolveSuspect().settlement.entries
                    where entry.failuresAlone == 0 {
                        held.insert(waiting[entry.position] ?? "")
                    }
                    guard isCalm, open.isEmpty, bench.next() == .idle else { continue }
                    steps = 3_000
                case .send(.read, let number):
                    // The probe after a failed batch (N1).
                    try #require(open.isEmpty)
                    let isWell = isCalm || choices.bool()
                    let page = bench.reply(number, isWell ? 200 : 500, body: "[]").page
                    if let page { bench.state.pageRecorded(page, isLast: true) }
                    if page == nil { bench.state.pageRefused() }
                }
                guard answers, !open.isEmpty else { continue }
                let (number, items) = open.remove(at: choices.int(in: 0...open.count - 1))
                let fate = isCalm ? 9 : choices.int(in: 0...9)
                let outcome: [ReplayState.Effect]
                switch fate {
                case 0:
                    outcome = bench.state.handleAnswer(
                        .failure("lost"), to: number, now: bench.now, random: 0.5)
                case 1:
                    outcome = bench.reply(
                        number, [401, 413, 400, 429, 500, 404][choices.int(in: 0...5)])
                default:
                    let words = [
                        "applied", "duplicate", "unprocessed", "retry", "rejected", "conflict",
                    ]
                    outcome = bench.verdicts(
                        number,
                        items.map {
                            (
                                $0.position.rawValue,
                                isCalm ? "applied" : words[max(0, choices.int(in: -6...5))]
                            )
                        })
                }
                for item in items where outcome.settlement.settled[item.position] != nil {
                    settled[item.lane, default: []].append(item.position.rawValue)
                    waiting[item.position.rawValue] = nil
                }
                // An event that is set aside is sent again.
                for entry in outcome.settlement.entries
                where entry.outcome != .retry && entry.failuresAlone == 0 {
                    held.insert(waiting[entry.position] ?? "")
                }
            }
            for (lane, positions) in settled {
                try #require(positions == positions.sorted(), "lane \(lane) is out of order")
            }
            let left = waiting.filter { !held.contains($0.value) }
            try #require(left.isEmpty, "\(left) wait for nothing")
            try #require(bench.state.heldCount == waiting.count)
        }
    }
}
