// A store, the replayer, a correct server and an unreliable network: each event
// takes effect once, in the order of its lane, and no event is settled that the server does not have.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import Replay

/// A server in memory behind a network that loses requests and replies.
private final class UnreliableServer: Transport {
    private struct State {
        var events: [UUID] = []
        var lanes: [String: [UUID]] = [:]
        var choices: Choices
    }

    private let state: Mutex<State>
    private let isReliable: Bool

    init(_ choices: Choices, isReliable: Bool = false) {
        state = Mutex(State(choices: choices))
        self.isReliable = isReliable
    }

    var events: [UUID] { state.withLock { $0.events } }
    var lanes: [String: [UUID]] { state.withLock { $0.lanes } }

    struct Lost: Error {}

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request else {
            return TransportReply(status: 200, body: Array("[]".utf8))
        }
        guard case .array(let elements) = try JSONValue(batch.span.bytes) else { throw Lost() }
        return try state.withLock { state in
            let fate = isReliable ? 9 : state.choices.int(in: 0...9)
            if fate == 0 { throw Lost() }
            if fate == 1 { return TransportReply(status: 503, retryAfterSeconds: 0) }
            if fate == 2 { return TransportReply(status: 500) }
            if fate == 3, elements.count > 1 { return TransportReply(status: 413) }
            var verdicts: [String] = []
            var stopped: Set<String> = []
            for element in elements {
                guard case .object(let event) = element,
                    let text = event["id"]?.stringValue, let id = UUID(uuidString: text),
                    let lane = event["partitionkey"]?.stringValue
                else { throw Lost() }
                var status = "applied"
                if stopped.contains(lane) {
                    status = "unprocessed"
                } else if !isReliable, state.choices.bool(oneIn: 8) {
                    status = "unprocessed"
                    stopped.insert(lane)
                } else if state.events.contains(id) {
                    status = "duplicate"
                } else {
                    state.events.append(id)
                    state.lanes[lane, default: []].append(id)
                }
                verdicts.append("{\"id\":\"\(text)\",\"status\":\"\(status)\"}")
            }
            // Committed, but the reply is lost.
            if fate == 4 { throw Lost() }
            let body = "{\"verdicts\":[\(verdicts.joined(separator: ","))]}"
            return TransportReply(status: 200, body: Array(body.utf8))
        }
    }
}

/// Answers a batch only after the next one arrives, and the last one at once: so one is always under way.
private final class PipelinedServer: Transport {
    private let inner: UnreliableServer
    private let eventCount: Int
    /// The number of events in the batches so far.
    private let arrived = Mutex(0)

    /// - Parameter eventCount: the number of events in all batches.
    init(_ inner: UnreliableServer, eventCount: Int) {
        self.inner = inner
        self.eventCount = eventCount
    }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request,
            case .array(let events) = try JSONValue(batch.span.bytes)
        else { return try await inner.send(request, token: token) }
        let count = arrived.withLock { arrived in
            arrived += events.count
            return arrived
        }
        if count < eventCount {
            try await eventually("events in batches", where: { $0 > count }) {
                arrived.withLock { $0 }
            }
        }
        return try await inner.send(request, token: token)
    }
}

private func openStore(_ files: InMemoryFileSystem) async throws -> EventStore {
    try await EventStore.open(
        at: "/log", catalogue: OfflineModel.catalogue, views: [Outbox.self],
        environment: LogEnvironment(fileSystem: files))
}

@Suite struct ShippingTests {
    @Test func `only unanswered events are shown as under way, also with overlapping requests`()
        async throws
    {
        let store = try await openStore(InMemoryFileSystem())
        for batch in 0..<5 {
            try await store.append(
                contentsOf: (0..<500).map {
                    try EventDraft(CitySaved(userId: "ana", cityId: "\(batch)-\($0)"))
                })
        }
        let server = PipelinedServer(
            UnreliableServer(Choices(seed: 1), isReliable: true), eventCount: 2_500)
        let most = Mutex(0)
        var options = Replayer.Options()
        options.requestsMax = 2
        let report = try await Replayer(store, transport: server, options: options).run(progress: {
            report in
            most.withLock { $0 = max($0, report.underWay.count) }
        })
        #expect(report.applied == 2_500)
        #expect(report.underWay.isEmpty)
        #expect(most.withLock { $0 } == 1_000)
    }

    @Test(.verifies("OUT-2", "OUT-6", "RPL-2", "SYNC-10"))
    func `whatever the network does, each event arrives once and in the order of its lane`()
        async throws
    {
        try await Property.check("exactly once in effect", runs: 40) { choices in
            let files = InMemoryFileSystem()
            var store = try await openStore(files)
            let cities = choices.array(1...20) { "city-\($0.int(in: 0...3))" }
            for city in cities {
                try await store.append(CitySaved(userId: "u", cityId: city))
            }
            let server = UnreliableServer(Choices(seed: choices.bits()))
            var rounds = 0
            while store.view(Outbox.self).count > 0, rounds < 200 {
                rounds += 1
                // Later each time, so that a slow machine ships all events, too.
                let deadline = Timestamp(Date().addingTimeInterval(0.02 * Double(rounds)))
                _ = try await Replayer(store, transport: server).run(until: .at(deadline))
                if choices.bool(oneIn: 3) {
                    // A kill: nothing is closed, the lock is released with the process.
                    try await store.close()
                    store = try await openStore(files)
                }
            }
            var expected: [String: [UUID]] = [:]
            for position in 1...cities.count {
                let event = try #require(try await store.event(at: Position(UInt64(position))))
                expected[event.lane, default: []].append(event.id)
            }
            try #require(server.lanes == expected)
            try #require(store.view(Outbox.self).count == 0)
            try await store.close()
        }
    }

    @Test(.verifies("RPL-8"))
    func `a run ends at once while another is under way`() async throws {
        let store = try await openStore(InMemoryFileSystem())
        for city in 0..<3 { try await store.append(CitySaved(userId: "u", cityId: "\(city)")) }
        let server = UnreliableServer(Choices(seed: 1), isReliable: true)
        struct Impatient: Transport {
            let store: EventStore
            let server: UnreliableServer
            func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
                if case .append = request {
                    let second = try await Replayer(store, transport: server).run()
                    #expect(second.applied == 0)
                    #expect(second.pending == 3)
                    #expect(second.message != nil)
                }
                return try await server.send(request, token: token)
            }
        }
        let first = try await Replayer(store, transport: Impatient(store: store, server: server))
            .run()
        #expect(first.applied == 3)
        #expect(first.duplicate == 0)
        #expect(first.pending == 0)
        #expect(try await Replayer(store, transport: server).run() == SyncReport())
        try await store.close()
    }

    @Test(.verifies("OUT-1"))
    func `shipping twice is shipping once, and the records are small`() async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        try await store.append(
            contentsOf: (0..<2_000).map {
                try EventDraft(CitySaved(userId: "user-\($0 % 7)", cityId: "city-\($0)"))
            })
        let server = UnreliableServer(Choices(seed: 1), isReliable: true)
        let replayer = Replayer(store, transport: server)
        let first = try await replayer.run()
        #expect(first.applied == 2_000)
        #expect(first.pending == 0)
        let second = try await replayer.run()
        #expect(second == SyncReport())
        #expect(server.events.count == 2_000)
        var shipped = 0
        var records = 0
        try LogReader("/log", fileSystem: files).forEachEvent(catalogue: OfflineModel.catalogue) {
            if $0.action == nil { records += $0.lineBytes } else { shipped += $0.lineBytes }
            return true
        }
        #expect(records * 100 <= shipped)
        try await store.close()
    }

    @Test(.verifies("OUT-4", "OUT-5", "RPL-7"))
    func `a rejected action shows as FAILED after reopening and holds its lane`()
        async throws
    {
        struct Rejecting: Transport {
            func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
                guard case .append(let batch) = request else {
                    return TransportReply(status: 200, body: Array("[]".utf8))
                }
                guard case .array(let events) = try JSONValue(batch.span.bytes) else {
                    return TransportReply(status: 400)
                }
                let verdicts = events.compactMap { event -> String? in
                    guard case .object(let event) = event, let id = event["id"]?.stringValue
                    else { return nil }
                    let isBad = event["subject"]?.stringValue == "bad"
                    return isBad
                        ? #"{"id":"\#(id)","status":"rejected","code":"no","detail":"because"}"#
                        : #"{"id":"\#(id)","status":"applied"}"#
                }
                return TransportReply(
                    status: 200,
                    body: Array("{\"verdicts\":[\(verdicts.joined(separator: ","))]}".utf8))
            }
        }
        let files = InMemoryFileSystem()
        var store = try await openStore(files)
        try await store.append(CitySaved(userId: "u", cityId: "bad"))
        try await store.append(CitySaved(userId: "u", cityId: "good"))
        try await store.append(CityUnsaved(userId: "u", cityId: "bad"))
        let report = try await Replayer(store, transport: Rejecting()).run()
        #expect(report.applied == 1)
        #expect(report.rejected == 1)
        #expect(report.pending == 2)
        #expect(report.held == 2)
        try await store.close()
        store = try await openStore(files)
        let entries = Array(store.view(Outbox.self).entries)
        #expect(entries.map(\.status) == [.failed, .pending])
        #expect(entries[0].errorMessage == "because")
        let again = try await Replayer(store, transport: Rejecting()).run()
        #expect(again.applied == 0)
        #expect(again.held == 2)
        try await store.close()
    }

    @Test(.verifies("OUT-3"))
    func `a record of another log settles nothing`() async throws {
        let store = try await openStore(InMemoryFileSystem())
        try await store.append(CitySaved(userId: "u", cityId: "c"))
        var foreign = SyncSettled(by: UUID())
        foreign.applied = [1...1]
        try await store.append(record: foreign)
        #expect(store.view(Outbox.self).count == 1)
        var own = SyncSettled(by: store.incarnation)
        own.applied = [1...1]
        try await store.append(record: own)
        #expect(store.view(Outbox.self).count == 0)
        try await store.close()
    }

    @Test(.verifies("EVT-8", "OUT-2", "OUT-3"))
    func `a record that breaks a rule is recorded, ignored as a whole and counted`() async throws {
        let store = try await openStore(InMemoryFileSystem())
        let id = try await store.append(CitySaved(userId: "u", cityId: "c")).id
        let by = store.incarnation.text
        let sound = #"{"position":1,"id":"\#(id.text)","outcome":"parked"}"#
        let broken = [
            "[]", "{}", #"{"by":"nobody","applied":[[1,1]]}"#,
            #"{"by":"\#(by)","applied":[[0,1]]}"#, #"{"by":"\#(by)","applied":[[2,1]]}"#,
            #"{"by":"\#(by)","applied":[[1]]}"#, #"{"by":"\#(by)","applied":[[1,1],[1.5,2]]}"#,
            #"{"by":"\#(by)","applied":[[1,1]],"duplicate":7}"#,
            #"{"by":"\#(by)","applied":[[1,1]],"entries":7}"#,
            #"{"by":"\#(by)","applied":[[1,1]],"entries":[7]}"#,
            #"{"by":"\#(by)","entries":[\#(sound),{"position":1,"outcome":"parked"}]}"#,
            #"{"by":"\#(by)","entries":[\#(sound.replacing("parked", with: "eaten"))]}"#,
        ]
        for data in broken {
            let before = await store.lastDurable
            try await store.append(
                record: EventDraft(type: SyncSettled.type, data: .json(Array(data.utf8))))
            #expect(await store.lastDurable == before.next)
        }
        let outbox = store.view(Outbox.self)
        #expect(outbox.ignored == broken.count)
        #expect(outbox.count == 1)
        #expect(outbox.entries.map(\.status) == [.pending])

        let lenient =
            #"{"by":"\#(by)","more":1,"entries":[{"more":1,"retryCount":"x",\#(sound.dropFirst())]}"#
        try await store.append(
            record: EventDraft(type: SyncSettled.type, data: .json(Array(lenient.utf8))))
        let entry = try #require(store.view(Outbox.self).entries.first { _ in true })
        #expect(entry.status == .failed)
        #expect(entry.retryCount == 0)
        try await store.close()
    }

    /// Gives the same answer to every batch, or verdicts if no answer is set, and counts.
    private final class Answering: Transport {
        private let reply: TransportReply?
        private let date: Int64?
        private let requests = Mutex(0)
        var count: Int { requests.withLock { $0 } }

        init(_ reply: TransportReply) {
            self.reply = reply
            date = nil
        }

        init(verdictsAt date: Int64) {
            reply = nil
            self.date = date
        }

        func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
            guard case .append(let batch) = request else {
                return TransportReply(status: 200, body: Array("[]".utf8))
            }
            requests.withLock { $0 += 1 }
            if let reply { return reply }
            guard case .array(let events) = try JSONValue(batch.span.bytes) else {
                return TransportReply(status: 400)
            }
            let verdicts = events.compactMap { event -> String? in
                guard case .object(let event) = event, let id = event["id"]?.stringValue
                else { return nil }
                return #"{"id":"\#(id)","status":"applied"}"#
            }
            let body = "{\"verdicts\":[\(verdicts.joined(separator: ","))]}"
            return TransportReply(status: 200, body: Array(body.utf8), date: date)
        }
    }

    /// A store on a clock that stands still, with one event to ship.
    private static let now: Int64 = 1_800_000_000_000
    private func openStoreWithEvent() async throws -> EventStore {
        let store = try await EventStore.open(
            at: "/log", catalogue: OfflineModel.catalogue, views: [Outbox.self],
            environment: LogEnvironment(fileSystem: InMemoryFileSystem(), now: { Self.now }))
        try await store.append(CitySaved(userId: "u", cityId: "c"))
        return store
    }

    @Test(.verifies("CLOCK-1"))
    func `only a reply with verdicts sets the clock`() async throws {
        let date = Self.now + 90_000
        for status in [302, 400, 401, 404, 413, 429] {
            let store = try await openStoreWithEvent()
            let transport = Answering(
                TransportReply(status: status, date: date, retryAfterSeconds: 600))
            _ = try await Replayer(store, transport: transport).run()
            #expect(transport.count > 0)
            #expect(await store.clockOffset == 0, "\(status)")
            try await store.close()
        }
        // A captive portal answers 200, too.
        let portal = try await openStoreWithEvent()
        let page = TransportReply(status: 200, body: Array("<html>".utf8), date: date)
        _ = try await Replayer(portal, transport: Answering(page)).run(
            until: .at(Timestamp(milliseconds: Self.now + 1)))
        #expect(await portal.clockOffset == 0)
        try await portal.close()
        let store = try await openStoreWithEvent()
        _ = try await Replayer(store, transport: Answering(verdictsAt: date)).run()
        #expect(await store.clockOffset == 90_500)
        let next = try await store.append(CitySaved(userId: "u", cityId: "d"))
        let time = try #require(try await store.event(at: next.position)).time
        #expect(time == Timestamp(milliseconds: Self.now + 90_500))
        try await store.close()
    }

    @Test(.verifies("RPL-7"))
    func `a run whose deadline has passed before it sent anything says so`() async throws {
        let store = try await openStoreWithEvent()
        let transport = Answering(verdictsAt: Self.now)
        let deadline = Replayer.End.at(Timestamp(milliseconds: Self.now))
        let report = try await Replayer(store, transport: transport).run(until: deadline)
        #expect(transport.count == 0)
        #expect(report.pending == 1)
        #expect(report.message == "the deadline has passed before all events were sent")
        _ = try await Replayer(store, transport: transport).run()
        let idle = try await Replayer(store, transport: transport).run(until: deadline)
        #expect(idle.pending == 0)
        #expect(idle.message == nil)
        try await store.close()
    }

    @Test(.verifies("RPL-6"))
    func `a paused run tries again after a minute, and one that ends sooner ends at once`()
        async throws
    {
        for end in [
            Replayer.End.whenNothingMoves, .at(Timestamp(milliseconds: Self.now + 60_000)),
        ] {
            let store = try await openStoreWithEvent()
            let transport = Answering(TransportReply(status: 404))
            let report = try await Replayer(store, transport: transport).run(until: end)
            #expect(transport.count == 1)
            #expect(report.pending == 1)
            #expect(report.held == 0)
            // The next attempt is the one that a run makes after the minute.
            let again = Answering(verdictsAt: Self.now)
            #expect(try await Replayer(store, transport: again).run().applied == 1)
            try await store.close()
        }
        var state = ReplayState()
        state.tokenChanged()
        let draft = EventDraft(
            type: "t", subject: "s", lane: "l", time: Timestamp(milliseconds: 0))
        let prefix = LinePrefix(own: draft.id.integer, source: 1, at: Position(1))
        state.enqueue(
            OutboxEntry(
                Event(prefix, content: draft, catalogue: EventCatalogue(), lineBytes: 1),
                action: "A"))
        guard case .send(let request, let number) = state.next(now: 0) else {
            Issue.record("nothing is sent")
            return
        }
        _ = state.handleAnswer(.reply(TransportReply(status: 404)), to: number, now: 0, random: 0)
        #expect(state.next(now: 0) == .paused(.endpoint(status: 404)))
        state.resume()
        #expect(state.next(now: 0) == .send(request, number: number + 1))
    }

    @Test func `a range of settled positions includes no event of an unknown type`() async throws {
        let store = try await openStore(InMemoryFileSystem())
        try await store.append(CitySaved(userId: "u", cityId: "c"))
        try await store.append(contentsOf: [EventDraft(type: "com.example.planned", subject: "s")])
        try await store.append(CitySaved(userId: "u", cityId: "d"))
        let outbox = store.view(Outbox.self)
        #expect(outbox.ranges(of: [Position(1), Position(3)]) == [1...1, 3...3])
        try await store.append(PageRemoved(city: "c", language: "en", path: "/"))
        try await store.append(CitySaved(userId: "u", cityId: "e"))
        let more = store.view(Outbox.self)
        #expect(more.ranges(of: [Position(3), Position(5)]) == [3...5])
        try await store.close()
    }

    @Test func `a server's long message does not make the record too large`() throws {
        var record = SyncSettled(by: UUID())
        record.entries = (1...500).map {
            SyncSettled.Entry(
                position: $0, id: UUID(), outcome: .parked, retryCount: 0,
                code: String(repeating: "c", count: 5_000),
                detail: String(repeating: "\u{1}é\"", count: 5_000))
        }
        #expect(record.json().count < 500 * 1_024)
        let odd =
            #"{"by":"\#(UUID())","entries":[{"position":1,"id":"\#(UUID())","outcome":"retry","#
            + #""retryCount":9223372036854775807}]}"#
        #expect(try SyncSettled(json: Array(odd.utf8)).entries[0].retryCount == 5)
    }

    /// The second one answers the batch whose first reply was lost.
    @Test(.verifies("RPL-11"), arguments: ["applied", "duplicate"])
    func `another writer with the same incarnation makes this log take a new one`(
        status: String
    ) async throws {
        struct Forked: Transport {
            let status: String

            func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
                guard case .append(let batch) = request else {
                    return TransportReply(status: 200, body: Array("[]".utf8))
                }
                guard case .array(let events) = try JSONValue(batch.span.bytes),
                    case .object(let event)? = events.first, let id = event["id"]?.stringValue
                else { return TransportReply(status: 400) }
                let verdict = #"{"id":"\#(id)","status":"\#(status)","code":"source_fork"}"#
                return TransportReply(
                    status: 200, body: Array("{\"verdicts\":[\(verdict)]}".utf8))
            }
        }
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        let old = store.incarnation
        try await store.append(CitySaved(userId: "u", cityId: "c"))
        let report = try await Replayer(store, transport: Forked(status: status)).run()
        #expect(report.applied + report.duplicate == 1)
        #expect(report.tookNewName)
        #expect(store.incarnation != old)
        try await store.append(CitySaved(userId: "u", cityId: "d"))
        let last = await store.lastDurable
        #expect(try await store.event(at: last)?.source == store.incarnation)
        let new = store.incarnation
        try await store.close()
        let again = try await openStore(files)
        #expect(again.incarnation == new)
        try await again.close()
    }

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000 as Int64?), ("yesterday", nil),
        ("Sun, 31 Feb 1994 08:49:37 GMT", nil), ("", nil),
        // Truncated to 32 bits these are 6 and 2026.
        ("Sun, 4294967302 Nov 2026 08:49:37 GMT", nil),
        ("Sun, 06 Nov 4294969322 08:49:37 GMT", nil), ("Sun, 06 Nov -001 08:49:37 GMT", nil),
    ])
    func `dates of HTTP headers are read`(text: String, milliseconds: Int64?) {
        #expect(HTTPDate.parse(text) == milliseconds)
    }
}
