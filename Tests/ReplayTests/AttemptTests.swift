// Attempts: exhausted events that are sent again, attempts without a verdict, and the recorded attempts of an
// action that has succeeded. Spec/protocol/parking.md, Spec/protocol/sync-records.md.

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

/// A server that answers all events of a batch by a script, whose last step is repeated.
private final class ScriptedServer: Transport {
    enum Step {
        case verdict(String)
        case status(Int)
        case silence
    }

    private let steps: Mutex<[Step]>
    private let sent = Mutex(0)
    /// The number of batches so far.
    var batches: Int { sent.withLock { $0 } }

    init(_ steps: Step...) { self.steps = Mutex(steps) }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request else {
            return TransportReply(status: 200, body: Array("[]".utf8))
        }
        sent.withLock { $0 += 1 }
        switch steps.withLock({ $0.count > 1 ? $0.removeFirst() : $0[0] }) {
        case .silence: throw TransportError(.timedOut, location: "server", "no answer for 30 s")
        case .status(let status): return TransportReply(status: status)
        case .verdict(let verdict):
            guard case .array(let events) = try JSONValue(batch.span.bytes) else {
                return TransportReply(status: 400)
            }
            let verdicts = events.compactMap { event -> String? in
                guard case .object(let event) = event, let id = event["id"]?.stringValue
                else { return nil }
                return #"{"id":"\#(id)","status":"\#(verdict)","detail":"said \#(verdict)"}"#
            }
            let body = "{\"verdicts\":[\(verdicts.joined(separator: ","))]}"
            return TransportReply(status: 200, body: Array(body.utf8))
        }
    }
}

private struct Bench {
    let clock = VirtualClock()
    let files = InMemoryFileSystem()
    var store: EventStore
    var outbox: OutboxCommands { OutboxCommands(store) }

    init() async throws { store = try await Self.open(files, clock) }

    private static func open(
        _ files: InMemoryFileSystem, _ clock: VirtualClock
    ) async throws -> EventStore {
        try await EventStore.open(
            at: "/log", catalogue: OfflineModel.catalogue, views: [Outbox.self],
            environment: clock.environment(
                fileSystem: files, seed: UInt64(clock.milliseconds)))
    }

    mutating func reopen() async throws {
        try await store.close()
        store = try await Self.open(files, clock)
    }

    func save(_ cityId: String = "c") async throws -> UUID {
        try await store.append(CitySaved(userId: "u", cityId: cityId)).id
    }

    @discardableResult
    func run(_ server: ScriptedServer) async throws -> SyncReport {
        try await Replayer(store, transport: server, sleep: { clock.advance(by: $0) }).run()
    }

    /// Runs every five minutes for a time. Each run waits for backoffs of a few seconds.
    @discardableResult
    func run(_ server: ScriptedServer, minutes: Int) async throws -> [SyncReport] {
        let end = clock.milliseconds + Int64(minutes) * 60_000
        var reports: [SyncReport] = []
        while clock.milliseconds < end {
            reports.append(try await run(server))
            clock.advance(by: .seconds(300))
        }
        return reports
    }

    func action(_ id: UUID) async throws -> SyncAction {
        try #require(try await outbox.action(id))
    }
}

@Suite struct AttemptTests {
    @Test(.verifies("PRK-4", "RPL-5"))
    func `an exhausted event is sent every 30 to 60 minutes, and no retry is counted`()
        async throws
    {
        let bench = try await Bench()
        let id = try await bench.save()
        let server = ScriptedServer(.verdict("retry"))
        let reports = try await bench.run(server, minutes: 360)
        // Five counted retries, then six hours with an attempt every 30 to 65 minutes.
        #expect((5 + 5...5 + 12).contains(server.batches), "\(server.batches) batches")
        #expect(reports.map(\.rejected).reduce(0, +) == 1)
        #expect(reports.last?.held == 1)
        #expect(reports.last?.pending == 1)
        let action = try await bench.action(id)
        #expect(action.syncStatus == .failed)
        #expect(action.retryCount == 5)
        #expect(action.parking == .exhausted)
        #expect(action.errorMessage == "said retry")
        let last = try #require(action.lastAttemptAt), next = try #require(action.nextAttemptAt)
        let wait = next.milliseconds - last.milliseconds
        #expect((1_800_000...3_600_000).contains(wait))
        let applied = try await bench.run(ScriptedServer(.verdict("applied")), minutes: 65)
        #expect(applied.map(\.applied).reduce(0, +) == 1)
        #expect(applied.last?.pending == 0)
        try await bench.store.close()
    }

    @Test(.verifies("PRK-4"))
    func `an event that is recorded as parked after five retries is sent again after a restart`()
        async throws
    {
        var bench = try await Bench()
        let id = try await bench.save()
        let parked = #"{"position":1,"id":"\#(id.text)","outcome":"parked","retryCount":5}"#
        let by = bench.store.incarnation.text
        let record = try SyncSettled(json: Array(#"{"by":"\#(by)","entries":[\#(parked)]}"#.utf8))
        try await bench.store.append(record: record)
        try await bench.reopen()
        let server = ScriptedServer(.verdict("applied"))
        #expect(try await bench.run(server).held == 1)
        #expect(server.batches == 0)
        bench.clock.advance(by: .seconds(3_600))
        #expect(try await bench.run(server).applied == 1)
        #expect(bench.store.view(Outbox.self).count == 0)
        try await bench.store.close()
    }

    @Test(.verifies("PRK-4"))
    func `an exhausted event that is rejected waits for a decision, also after a restart`()
        async throws
    {
        var bench = try await Bench()
        let id = try await bench.save()
        let retry = ScriptedServer.Step.verdict("retry")
        let server = ScriptedServer(retry, retry, retry, retry, retry, .verdict("rejected"))
        let reports = try await bench.run(server, minutes: 130)
        #expect(reports.map(\.rejected).reduce(0, +) == 1)
        let batches = server.batches
        try await bench.reopen()
        bench.clock.advance(by: .seconds(86_400))
        #expect(try await bench.run(server).held == 1)
        #expect(server.batches == batches)
        let action = try await bench.action(id)
        #expect(action.parking == .rejected)
        #expect(action.nextAttemptAt == nil)
        #expect(action.retryCount == 5)
        #expect(action.errorMessage == "said rejected")
        try await bench.outbox.retry(id)
        #expect(try await bench.action(id).syncStatus == .pending)
        #expect(try await bench.run(ScriptedServer(.verdict("applied"))).applied == 1)
        try await bench.store.close()
    }

    @Test(.verifies("OUT-10"), arguments: [503, nil])
    func `an attempt without a verdict has a time and a reason, and nothing is counted or recorded`(
        status: Int?
    ) async throws {
        var bench = try await Bench()
        let id = try await bench.save()
        let never = try await bench.action(id)
        #expect(never.lastAttemptAt == nil)
        #expect(never.errorMessage == nil)
        bench.clock.advance(by: .seconds(60))
        let time = bench.clock.milliseconds
        let server = ScriptedServer(status.map(ScriptedServer.Step.status) ?? .silence)
        try await bench.run(server)
        let tried = try await bench.action(id)
        // A run repeats a request without an answer for a few seconds.
        #expect((time...time + 60_000).contains(tried.lastAttemptAt?.milliseconds ?? 0))
        #expect(tried.retryCount == 0)
        #expect(tried.errorMessage?.contains(status.map { "\($0)" } ?? "no answer") == true)
        #expect(bench.outbox.entries.map(\.errorMessage) == [tried.errorMessage])
        #expect(bench.outbox.pending.map(\.lastAttemptAt) == [tried.lastAttemptAt])
        // Neither the view nor the log has the attempt, so the next process does not have it either.
        #expect(bench.store.view(Outbox.self).entry(at: Position(1))?.lastAttemptAt == nil)
        #expect(await bench.store.lastDurable == Position(1))
        // A verdict takes precedence.
        try await bench.run(ScriptedServer(.verdict("rejected")))
        #expect(try await bench.action(id).errorMessage == "said rejected")
        try await bench.reopen()
        #expect(try await bench.action(id).errorMessage == "said rejected")
        try await bench.store.close()
    }

    @Test(.verifies("OUT-10"))
    func
        `the time of an attempt is the corrected clock's, also in a run that the server never answers`()
        async throws
    {
        let bench = try await Bench()
        let id = try await bench.save()
        await bench.store.setClockOffset(-7_200_000)
        try await bench.run(ScriptedServer(.silence))
        let time = try #require(try await bench.action(id).lastAttemptAt).milliseconds
        #expect(bench.clock.milliseconds - time >= 7_200_000)
        #expect(bench.clock.milliseconds - time < 7_260_000)
        try await bench.store.close()
    }

    @Test(.verifies("OUT-10"))
    func `an action that has succeeded has its time and its retry count`() async throws {
        var bench = try await Bench()
        let other = try await bench.save("d")
        try await bench.run(ScriptedServer(.verdict("applied")))
        let id = try await bench.save()
        let retry = ScriptedServer.Step.verdict("retry")
        bench.clock.advance(by: .seconds(60))
        try await bench.run(
            ScriptedServer(retry, .status(500), retry, .verdict("applied")), minutes: 10)
        func check(_ time: Timestamp?) async throws {
            let action = try await bench.action(id)
            #expect(action.syncStatus == .success)
            #expect(action.errorMessage == nil)
            #expect(action.retryCount == 2)
            #expect(action.lastAttemptAt == time)
        }
        let time = try #require(try await bench.action(id).lastAttemptAt)
        #expect(time.milliseconds >= bench.clock.milliseconds - 900_000)
        try await check(time)
        #expect(try await bench.action(other).retryCount == 0)
        #expect(try await bench.action(other).lastAttemptAt ?? time < time)
        try await bench.reopen()
        try await check(time)
        try await bench.store.close()
    }
}
