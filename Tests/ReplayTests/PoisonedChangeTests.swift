// One change on which requests fail does not stop the others, and an outage is not multiplied.
// Spec/protocol/replay.md, N1 to N6.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import Replay

/// What a server or a middlebox does with a batch that it fails on.
private enum Failure: CaseIterable {
    case forbidden, unauthorized, notFound, conflict, redirect, tooManyRequests, error, badGateway
    case unavailable, noContent, reset, garbage, array, emptyVerdicts, page

    var answer: ReplayState.Answer {
        func reply(_ status: Int, _ body: String = "", after seconds: Double? = nil)
            -> ReplayState.Answer
        {
            .reply(
                TransportReply(
                    status: status, body: Array(body.utf8), retryAfterSeconds: seconds))
        }
        return switch self {
        case .forbidden: reply(403, "<html>blocked</html>")
        case .unauthorized: reply(401)
        case .notFound: reply(404)
        case .conflict: reply(409)
        case .redirect: reply(302)
        case .tooManyRequests: reply(429)
        case .error: reply(500, "<html>error</html>")
        case .badGateway: reply(502)
        case .unavailable: reply(503, after: 90)
        case .noContent: reply(204)
        case .reset: .failure("no answer: the connection was reset")
        case .garbage: reply(200, "\u{0}\u{1}garbage")
        case .array: reply(200, "[]")
        case .emptyVerdicts: reply(200, #"{"verdicts":[]}"#)
        case .page: reply(200, "<html>log in</html>")
        }
    }
}

/// A run against a server that fails on some events, on a virtual clock.
private struct Run {
    var state: ReplayState
    var now: Int64 = 1_000_000
    let start: Int64 = 1_000_000
    var culprits: Set<UInt64> = []
    var failure = Failure.error
    var readsFail = false
    var batchesFail = false
    /// Whether the next batch fails.
    var failsOnce = false
    private(set) var settledAt: [UInt64: Int64] = [:]
    private(set) var parked: [UInt64: String] = [:]
    private(set) var batches = 0
    /// The times from the end of a batch that failed to the next batch.
    private(set) var waits: [Int64] = []
    private var lastFailure: Int64?
    private(set) var reads = 0
    private(set) var pauses = 0

    /// `lanes[n]` is the lane of position n + 1.
    init(
        _ lanes: [String], culprits: Set<UInt64> = [], _ failure: Failure = .error,
        eventsMax: Int = 500
    ) {
        state = ReplayState(eventsMax: eventsMax)
        self.culprits = culprits
        self.failure = failure
        state.tokenChanged()
        for (index, lane) in lanes.enumerated() { add(UInt64(index + 1), lane) }
    }

    mutating func add(_ position: UInt64, _ lane: String) {
        state.enqueue(
            OutboxEntry(
                at: Position(position),
                OutboxEntry.Fields(
                    id: UUID(integer: UInt128(position)), source: UUID(integer: 1), action: "A",
                    entityId: lane, lane: lane, timestamp: Timestamp(milliseconds: 0),
                    lineBytes: 100)))
    }

    /// Runs for a time.
    mutating func run(milliseconds: Int64) {
        let end = now + milliseconds
        for _ in 0..<10_000 where now < end {
            switch state.next(now: now) {
            case .send(.append(let items), let number):
                batches += 1
                answer(items, number)
            case .send(.read, let number):
                reads += 1
                let answer =
                    readsFail
                    ? failure.answer : .reply(TransportReply(status: 200, body: Array("[]".utf8)))
                let effects = state.handleAnswer(answer, to: number, now: now, random: 1)
                note(effects)
                if let page = effects.page { state.pageRecorded(page, isLast: true) }
            case .wait(let time):
                pauses += 1
                now = min(time, end)
            case .paused:
                pauses += 1
                now += 60_000
                state.resume()
            case .getToken, .refreshToken: state.tokenChanged()
            case .busy: return
            case .idle:
                let effects = state.resolveSuspect()
                note(effects)
                if effects.isEmpty { now = end }
            }
        }
    }

    private mutating func answer(_ items: [ReplayItem], _ number: Int) {
        let positions = items.map(\.position.rawValue)
        if let lastFailure { waits.append(now - lastFailure) }
        lastFailure = nil
        let isFailing = failsOnce || batchesFail || !culprits.isDisjoint(with: positions)
        failsOnce = false
        guard !isFailing else {
            lastFailure = now
            return note(state.handleAnswer(failure.answer, to: number, now: now, random: 1))
        }
        let verdicts = items.map { #"{"id":"\#($0.id)","status":"applied"}"# }
        let body = "{\"verdicts\":[\(verdicts.joined(separator: ","))]}"
        let reply = TransportReply(status: 200, body: Array(body.utf8))
        note(state.handleAnswer(.reply(reply), to: number, now: now, random: 1))
    }

    private mutating func note(_ effects: [ReplayState.Effect]) {
        for case .record(let settlement) in effects {
            for position in settlement.applied { settledAt[position.rawValue] = now }
            for entry in settlement.entries { parked[entry.position] = entry.code }
        }
    }

    var settled: Set<UInt64> { Set(settledAt.keys) }
    /// The time until the last event was settled, in milliseconds.
    var duration: Int64 { (settledAt.values.max() ?? start) - start }
}

@Suite(.verifies("RPL-17", "PRK-5")) struct PoisonedChangeTests {
    private static let lanes = (1...20).map { "note \($0)" }
    private static let quarterHour: Int64 = 900_000

    @Test(arguments: Failure.allCases, [1, 2, 10, 19, 20] as [UInt64])
    private func `N2, N5: the others are sent, and the change is set aside with its reason`(
        failure: Failure, culprit: UInt64
    ) {
        var run = Run(Self.lanes, culprits: [culprit], failure)
        run.run(milliseconds: Self.quarterHour)
        #expect(run.settled == Set(1...20).subtracting([culprit]))
        #expect(run.duration < Self.quarterHour)
        #expect(run.parked.keys.sorted() == [culprit])
        #expect(run.state.heldCount == 1)
        run.culprits = []
        run.run(milliseconds: 3_600_000)
        #expect(run.settled == Set(1...20))
    }

    @Test(
        arguments: Failure.allCases,
        [[3, 15], [1, 2], [19, 20], [1, 20], [1, 2, 3, 19, 20]] as [Set<UInt64>])
    private func `N2: several such changes are set aside, wherever they are`(
        failure: Failure, culprits: Set<UInt64>
    ) {
        var run = Run(Self.lanes, culprits: culprits, failure)
        run.run(milliseconds: Self.quarterHour)
        #expect(run.settled == Set(1...20).subtracting(culprits))
        #expect(Set(run.parked.keys) == culprits)
    }

    @Test(arguments: Failure.allCases)
    private func `N5: of its lane only later changes wait`(failure: Failure) {
        var run = Run(["a", "b", "a", "b", "a", "c", "a"], culprits: [3], failure)
        run.run(milliseconds: Self.quarterHour)
        #expect(run.settled == [1, 2, 4, 6])
        #expect(run.state.heldCount == 3)
        run.culprits = []
        run.run(milliseconds: 3_600_000)
        #expect(run.settled == Set(1...7))
    }

    @Test func `N6: it is tried again alone, after pauses that grow to an hour at most`() {
        var run = Run(Self.lanes, culprits: [7])
        run.run(milliseconds: 10_000)
        let before = run.batches
        run.run(milliseconds: 24 * 3_600_000)
        #expect(run.batches - before < 60)
        #expect(run.batches - before > 24)
        run.add(21, "another")
        run.run(milliseconds: 1_000)
        #expect(run.settled.contains(21))
    }

    @Test func `N6: when one of them is accepted, the others do not wait`() {
        var run = Run(Self.lanes, culprits: [3, 7, 11])
        run.run(milliseconds: 24 * 3_600_000)
        #expect(run.parked.count == 3)
        run.culprits = []
        run.state.demand()
        run.run(milliseconds: 1_000)
        #expect(run.settled == Set(1...20))
    }

    @Test(arguments: [20, 100, 500])
    func `N2: a search costs at most the logarithm of the batch's size, and a read`(count: Int) {
        for culprit in [1, count / 2, count] {
            var run = Run((1...count).map { "\($0)" }, culprits: [UInt64(culprit)], .forbidden)
            run.run(milliseconds: 30_000)
            #expect(run.settled.count == count - 1)
            // The whole, the halvings, the rest, and twice the lone one.
            #expect(run.batches <= Int(log2(Double(count)).rounded(.up)) + 5)
            #expect(run.reads == 1)
        }
    }

    @Test(arguments: Failure.allCases)
    private func `N2: a request that fails once changes nothing`(failure: Failure) {
        var run = Run(Self.lanes, failure)
        run.failsOnce = true
        run.run(milliseconds: Self.quarterHour)
        #expect(run.settled == Set(1...20))
        #expect(run.parked.isEmpty)
        // After W4 and a read that is answered, a search in which all parts are accepted.
        #expect(run.batches <= 7)
    }

    @Test(arguments: Failure.allCases)
    private func `N1: an outage costs no request more than one read for each pause`(
        failure: Failure
    ) {
        var run = Run(Self.lanes, failure)
        (run.batchesFail, run.readsFail) = (true, true)
        // An empty array is a page.
        if case .array = failure { run.failure = .garbage }
        run.run(milliseconds: 3_600_000)
        #expect(run.parked.isEmpty)
        #expect(run.batches <= 2 * (run.pauses + 1))
        #expect(run.reads <= run.pauses / 3)
        (run.batchesFail, run.readsFail) = (false, false)
        run.run(milliseconds: 120_000)
        #expect(run.settled == Set(1...20))
    }

    @Test(arguments: Failure.allCases)
    private func `N4: a server that can only be read is told from a wrong change`(failure: Failure)
    {
        var run = Run(Self.lanes, failure)
        run.batchesFail = true
        run.run(milliseconds: 3_600_000)
        #expect(run.parked.isEmpty)
        #expect(run.reads > 0)
        #expect(run.reads <= run.pauses / 4 + 2)
        // A search has 5 batches: 10, 5, 1, 1, and its first failure.
        #expect(run.batches <= 2 * (run.pauses + 1) + 5 * run.reads)
        run.batchesFail = false
        run.run(milliseconds: 120_000)
        #expect(run.settled == Set(1...20))
    }

    @Test(
        arguments: [(1, 2, [1]), (1, 20, [2, 19]), (500, 20, [19, 20])] as [(Int, Int, Set<UInt64>)]
    )
    func `N5: an outage right after such a change sets no other aside, and costs no more requests`(
        eventsMax: Int, count: Int, culprits: Set<UInt64>
    ) {
        var run = Run((1...count).map { "\($0)" }, culprits: culprits, eventsMax: eventsMax)
        run.run(milliseconds: 30_000)
        #expect(Set(run.parked.keys) == culprits)
        (run.batchesFail, run.readsFail) = (true, true)
        let before = (batches: run.batches, pauses: run.pauses)
        for position in UInt64(count + 1)...UInt64(count + 4) {
            run.add(position, "\(position)")
            run.run(milliseconds: 600_000)
        }
        #expect(Set(run.parked.keys) == culprits)
        #expect(run.batches - before.batches <= 2 * (run.pauses - before.pauses + 1))
        (run.batchesFail, run.readsFail) = (false, false)
        run.run(milliseconds: 300_000)
        #expect(run.settled == Set(1...UInt64(count + 4)).subtracting(culprits))
    }

    @Test(arguments: [1, 500])
    func `N2: a search waits as the server asks, for some seconds`(eventsMax: Int) {
        var run = Run(Self.lanes, culprits: [7], .unavailable, eventsMax: eventsMax)
        run.run(milliseconds: Self.quarterHour)
        #expect(run.parked.keys.sorted() == [7])
        #expect(run.waits.allSatisfy { $0 >= 5_000 })
    }

    @Test func `N2: of single events that fail, each is judged by what was accepted since`() {
        var run = Run((1...6).map { "\($0)" }, culprits: [1, 2, 3], eventsMax: 1)
        run.run(milliseconds: 30_000)
        #expect(run.settled == [4, 5, 6])
        #expect(run.parked.keys.sorted() == [1, 2, 3])
    }

    @Test func `N5: a discarded change leaves nothing behind`() {
        var run = Run(["a", "b"], culprits: [1], .forbidden)
        run.run(milliseconds: 10_000)
        #expect(run.parked[1] == "http_403")
        run.state.decided([])
        #expect(run.state.next(now: run.now) == .idle)
    }

    @Test func `a run sends 19 of 20 notes and reads; the next one tries the other first`()
        async throws
    {
        let clock = VirtualClock()
        let store = try await EventStore.open(
            at: "/log", catalogue: EventCatalogue([EventRule(type: "t", action: "A") { _ in }]),
            views: [Outbox.self],
            environment: clock.environment(fileSystem: InMemoryFileSystem(), seed: 1))
        for number in 1...20 {
            let text = [7, 13].contains(number) ? "poison" : "text"
            try await store.append(contentsOf: [
                EventDraft(
                    type: "t", subject: "s\(number)",
                    data: .json(Array(#"{"content":"\#(text)"}"#.utf8)))
            ])
        }
        let middlebox = Middlebox()
        let replayer = Replayer(store, transport: middlebox, sleep: { clock.advance(by: $0) })
        let report = try await replayer.run()
        #expect(report.applied == 18)
        #expect(report.rejected == 2)
        #expect(report.held == 2)
        #expect(!report.isBehind)
        let outbox = OutboxCommands(store)
        #expect(outbox.entries.map(\.parking) == [.setAside, .setAside])
        let first = try #require(outbox.entries.first)
        #expect(first.errorMessage?.contains("answered 403") == true)
        // One request shows that it still fails.
        let before = middlebox.count.load(ordering: .relaxed)
        #expect(try await replayer.run().held == 2)
        #expect(middlebox.count.load(ordering: .relaxed) == before + 1)
        middlebox.isOpen.store(true, ordering: .relaxed)
        #expect(try await outbox.discard(first.id) == [first.id])
        #expect(try await replayer.run().applied == 1)
        #expect(outbox.count == 0)
        try await store.close()
    }

    /// 401 without another token pauses, and silence may be an outage: such a run ends after one failure.
    @Test(.verifies("RPL-17", "RPL-7"), arguments: [401, nil])
    func `a run reads before it ends, and the others are sent`(status: Int?) async throws {
        let clock = VirtualClock()
        let store = try await EventStore.open(
            at: "/log", catalogue: EventCatalogue([EventRule(type: "t", action: "A") { _ in }]),
            views: [Outbox.self],
            environment: clock.environment(fileSystem: InMemoryFileSystem(), seed: 1))
        for number in 1...20 {
            let text = number == 7 ? "poison" : "text"
            try await store.append(contentsOf: [
                EventDraft(
                    type: "t", subject: "s\(number)",
                    data: .json(Array(#"{"content":"\#(text)"}"#.utf8)))
            ])
        }
        let middlebox = Middlebox(status: status)
        var options = Replayer.Options()
        options.reads = false
        let replayer = Replayer(
            store, transport: middlebox, options: options, sleep: { clock.advance(by: $0) })
        for _ in 0..<3 where OutboxCommands(store).count > 1 { _ = try await replayer.run() }
        #expect(OutboxCommands(store).count == 1)
        // An outage costs the batch and one read.
        middlebox.isDown.store(true, ordering: .relaxed)
        try await store.append(contentsOf: [EventDraft(type: "t", subject: "new")])
        middlebox.count.store(0, ordering: .relaxed)
        _ = try await replayer.run()
        #expect(middlebox.count.load(ordering: .relaxed) <= 2)
        try await store.close()
    }

    @Test(.verifies("PRK-5"))
    func `a token that the server has changed is renewed if only such a change is left`()
        async throws
    {
        let clock = VirtualClock()
        let store = try await EventStore.open(
            at: "/log", catalogue: EventCatalogue([EventRule(type: "t", action: "A") { _ in }]),
            views: [Outbox.self],
            environment: clock.environment(fileSystem: InMemoryFileSystem(), seed: 1))
        func append(_ texts: String...) async throws {
            for text in texts {
                try await store.append(contentsOf: [
                    EventDraft(
                        type: "t", subject: text,
                        data: .json(Array(#"{"content":"\#(text)"}"#.utf8)))
                ])
            }
        }
        let middlebox = Middlebox(token: "first")
        let issuer = Issuer()
        try await append("text", "poison")
        let reader = Replayer(
            store, transport: middlebox, credentials: issuer, sleep: { clock.advance(by: $0) })
        #expect(try await reader.run().held == 1)
        var options = Replayer.Options()
        options.reads = false
        // In this run the token is accepted, and another one is needed when the change is tried again.
        let sender = Replayer(
            store, transport: middlebox, credentials: issuer, options: options,
            sleep: {
                // The deadline of a request, which has its answer at once.
                guard $0 < .seconds(100_000) else { return try await Task.sleep(for: $0) }
                clock.advance(by: $0)
                issuer.current.withLock { $0 = "second" }
                middlebox.token.withLock { $0 = "second" }
                middlebox.isOpen.store(true, ordering: .relaxed)
            })
        try await append("another text")
        let before = middlebox.count.load(ordering: .relaxed)
        let end = Timestamp(milliseconds: clock.milliseconds + 1_000_000_000)
        #expect(try await sender.run(until: .at(end)).applied == 2)
        #expect(issuer.renewals.load(ordering: .relaxed) == 1)
        // The other text, the change with 403, with 401 twice, and with the new token.
        #expect(middlebox.count.load(ordering: .relaxed) - before == 5)
        try await store.close()
    }

    @Test func `a change that was never sent can be discarded`() async throws {
        let clock = VirtualClock()
        let store = try await EventStore.open(
            at: "/log", catalogue: EventCatalogue([EventRule(type: "t", action: "A") { _ in }]),
            views: [Outbox.self],
            environment: clock.environment(fileSystem: InMemoryFileSystem(), seed: 1))
        let event = try #require(try await store.append(contentsOf: [EventDraft(type: "t")]).first)
        let outbox = OutboxCommands(store)
        #expect(try await outbox.discard(event.id) == [event.id])
        #expect(outbox.count == 0)
        try await store.close()
    }
}

/// Credentials whose token changes: a renewal has the new one.
private final class Issuer: Credentials {
    let current = Mutex("first")
    let renewals = Atomic(0)

    func token() -> AccessToken? { AccessToken("first") }

    func refresh(_ old: AccessToken?) -> AccessToken? {
        renewals.add(1, ordering: .relaxed)
        return AccessToken(current.withLock { $0 })
    }
}

/// A way to the server that fails on one word, and answers 401 to all tokens but one.
private final class Middlebox: Transport {
    /// The valid token; nil accepts any.
    let token: Mutex<String?>
    let isOpen = Atomic(false)
    /// The number of batches.
    let count = Atomic(0)

    /// The answer to the word; nil for silence.
    let status: Int?
    let isDown = Atomic(false)

    init(token: String? = nil, status: Int? = 403) {
        self.token = Mutex(token)
        self.status = status
    }

    func send(_ request: TransportRequest, token: String?) throws -> TransportReply {
        guard !isDown.load(ordering: .relaxed) else {
            count.add(1, ordering: .relaxed)
            throw TransportError(.timedOut, location: "server", "silence")
        }
        guard case .append(let batch) = request else {
            return TransportReply(status: 200, body: Array("[]".utf8))
        }
        count.add(1, ordering: .relaxed)
        let valid = self.token.withLock { $0 }
        guard valid == nil || valid == token else { return TransportReply(status: 401) }
        let text = String(decoding: batch, as: UTF8.self)
        guard isOpen.load(ordering: .relaxed) || !text.contains("poison") else {
            guard let status else {
                throw TransportError(.timedOut, location: "server", "silence")
            }
            return TransportReply(status: status, body: Array("<html>blocked</html>".utf8))
        }
        let verdicts = text.matches(of: /"id":"([-0-9a-f]{36})"/).map {
            #"{"id":"\#($0.1)","status":"applied"}"#
        }
        return TransportReply(
            status: 200, body: Array("{\"verdicts\":[\(verdicts.joined(separator: ","))]}".utf8))
    }
}
