// A server that was restored from a backup gets back what it has lost from the devices that have it.
// Spec/protocol/replay.md, RPL-14.

import DaybookOffline
import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Replay

@Suite struct RestoredServerTests {
    private let server = InMemorySyncServer()

    /// A device with some saved cities that the server has.
    private func device(_ cities: ClosedRange<Int>, named name: String) async throws -> OfflineStore
    {
        let store = try await OfflineStore.inMemory()
        for number in cities { try await store.cities.save("\(name)-\(number)", by: "u") }
        try await store.sync(over: server)
        return store
    }

    /// The number of events in the batches after a request.
    private func appendedCount(since request: Int) -> Int {
        server.requests[request...].reduce(0) { sum, request in
            guard case .append(let batch) = request else { return sum }
            let events = try? JSONSerialization.jsonObject(with: Data(batch)) as? [Any]
            return sum + (events?.count ?? 0)
        }
    }

    private func cities(_ store: OfflineStore) -> [String] {
        store.cities.saved(by: "u").current.map { $0 }.sorted()
    }

    @Test(.verifies("RPL-14"))
    func `a device that is ahead of a restored server ships again what was lost, and says so`()
        async throws
    {
        let phone = try await device(1...30, named: "phone")
        let known = Set(server.events.map(\.id))
        server.restore(keeping: 12, to: Date(timeIntervalSinceNow: -60))
        // Other events get the numbers of the lost ones.
        let tablet = try await OfflineStore.inMemory()
        for number in 1...40 { try await tablet.cities.save("tablet-\(number)", by: "u") }
        try await tablet.sync(over: server)
        let report = try await phone.sync(over: server)
        #expect(report.shippedAgain == 18)
        #expect(report.restoredTo != nil)
        #expect(report.message == nil)
        #expect(report.description.contains("18 events shipped again"))
        #expect(known.isSubset(of: server.events.map(\.id)))
        #expect(Set(server.events.map(\.id)).count == server.events.count)
        #expect(report.received == 40)
        try await tablet.sync(over: server)
        #expect(cities(phone) == cities(tablet))
        #expect(cities(phone).count == 70)
        // Once only.
        let next = try await phone.sync(over: server)
        #expect(next.shippedAgain == 0)
        #expect(next.restoredTo == nil)
        try await phone.close()
        try await tablet.close()
    }

    @Test(.verifies("RPL-14"))
    func `events of a device that is gone come back from another that had read them`()
        async throws
    {
        let lost = try await device(1...10, named: "lost")
        let phone = try await device(1...5, named: "phone")
        try await lost.close()
        server.restore(keeping: 0, to: Date(timeIntervalSinceNow: -60))
        let report = try await phone.sync(over: server)
        #expect(report.shippedAgain == 15)
        #expect(server.events.count == 15)
        let other = try await OfflineStore.inMemory()
        try await other.sync(over: server)
        #expect(cities(other) == cities(phone))
        try await phone.close()
        try await other.close()
    }

    @Test(.verifies("RPL-14"))
    func `only what was exchanged since the backup is shipped again`() async throws {
        let clock = VirtualClock()
        let store = try await OfflineStore.open(
            at: URL(filePath: "/log"),
            environment: clock.environment(fileSystem: InMemoryFileSystem(), seed: 1))
        for number in 1...10 { try await store.cities.save("old-\(number)", by: "u") }
        try await store.sync(over: server)
        // Recorded before the backup, shipped after it.
        for number in 1...3 { try await store.cities.save("late-\(number)", by: "u") }
        clock.advance(by: .seconds(86_400))
        let backup = clock.date
        clock.advance(by: .seconds(7_200))
        try await store.sync(over: server)
        let before = server.requests.count
        server.restore(keeping: 10, to: backup)
        let report = try await store.sync(over: server)
        #expect(report.shippedAgain == 3)
        #expect(appendedCount(since: before) == 3)
        try await store.close()
    }

    @Test(.verifies("RPL-14"))
    func `a device that only reads ships again what it has read since the backup`() async throws {
        let clock = VirtualClock()
        let reader = try await OfflineStore.open(
            at: URL(filePath: "/log"),
            environment: clock.environment(fileSystem: InMemoryFileSystem(), seed: 1))
        let writer = try await device(1...10, named: "early")
        try await reader.sync(over: server)
        clock.advance(by: .seconds(86_400))
        let backup = clock.date
        clock.advance(by: .seconds(7_200))
        for number in 1...5 { try await writer.cities.save("late-\(number)", by: "u") }
        try await writer.sync(over: server)
        try await writer.close()
        // The first page after the backup: its record is the last line of the commit.
        #expect(try await reader.sync(over: server).received == 5)
        server.restore(keeping: 10, to: backup)
        let report = try await reader.sync(over: server)
        #expect(report.shippedAgain == 5)
        #expect(server.events.count == 15)
        try await reader.close()
    }

    @Test(.verifies("RPL-14"))
    func `a recovery whose batches fail ends the run, and the next one continues it`()
        async throws
    {
        let store = try await device(1...1_200, named: "city")
        let before = server.requests.count
        server.restore(keeping: 0, to: Date(timeIntervalSinceNow: -60))
        let flaky = Answering(server, appends: [nil, .init(status: 500)])
        let first = try await store.sync(over: flaky)
        #expect(first.message?.contains("restored") == true)
        #expect(first.restoredTo == nil)
        #expect(server.events.count == 500)
        let second = try await store.sync(over: server)
        #expect(second.restoredTo != nil)
        #expect(second.shippedAgain == 700)
        #expect(server.events.count == 1_200)
        #expect(appendedCount(since: before) == 1_200)
        try await store.close()
    }

    @Test(.verifies("RPL-14"))
    func `a second restore during a recovery begins it again`() async throws {
        let store = try await device(1...1_200, named: "city")
        server.restore(keeping: 0, to: Date(timeIntervalSinceNow: -60))
        let flaky = Answering(server, appends: [nil, .init(status: 500)])
        _ = try await store.sync(over: flaky)
        server.restore(keeping: 0, to: Date(timeIntervalSinceNow: -30))
        let report = try await store.sync(over: server)
        #expect(report.shippedAgain == 1_200)
        #expect(server.events.count == 1_200)
        try await store.close()
    }

    @Test(.verifies("RPL-12", "RPL-14"))
    func `closing a store does not wait for the answer to a batch of a recovery`() async throws {
        let store = try await device(1...30, named: "city")
        server.restore(keeping: 0, to: Date(timeIntervalSinceNow: -60))
        let silent = SilentAppends(server)
        let run = Task { try await store.sync(over: silent) }
        for await _ in silent.began { break }
        try await store.close()
        await #expect(throws: LogError.self) { try await run.value }
    }

    @Test(.verifies("RPL-14"))
    func `a batch that is too large is halved, and a wait that the server asks for is kept`()
        async throws
    {
        let clock = VirtualClock(milliseconds: LogEnvironment.systemTime())
        let store = try await OfflineStore.open(
            at: URL(filePath: "/log"),
            environment: LogEnvironment(
                fileSystem: InMemoryFileSystem(), now: { clock.milliseconds }))
        for number in 1...40 { try await store.cities.save("city-\(number)", by: "u") }
        try await store.sync(over: server)
        server.restore(keeping: 0, to: Date(timeIntervalSinceNow: -60))
        let strict = Answering(
            server,
            appends: [
                .init(status: 413), .init(status: 429, retryAfterSeconds: 1), nil, nil,
            ])
        let waits = Mutex<[Duration]>([])
        let replayer = Replayer(
            store.events, transport: strict,
            sleep: { duration in
                waits.withLock { $0.append(duration) }
                clock.advance(by: duration)
            })
        let report = try await replayer.run()
        #expect(report.shippedAgain == 40)
        #expect(server.events.count == 40)
        #expect(waits.withLock { $0.reduce(.zero, +) } >= .seconds(1))
        try await store.close()
    }

    @Test(.verifies("RPL-14"))
    func `events that the server does not accept are counted, and block nothing`() async throws {
        let isStrict = Mutex(false)
        let server = InMemorySyncServer { draft in
            isStrict.withLock { $0 } && draft.subject?.hasSuffix("-7") == true
                ? Verdict(id: draft.id, status: .rejected, code: "no") : nil
        }
        let store = try await OfflineStore.inMemory()
        for number in 1...10 { try await store.cities.save("city-\(number)", by: "u") }
        try await store.sync(over: server)
        isStrict.withLock { $0 = true }
        server.restore(keeping: 0, to: Date(timeIntervalSinceNow: -60))
        let report = try await store.sync(over: server)
        #expect(report.shippedAgain == 9)
        #expect(report.notAccepted == 1)
        #expect(report.description.contains("1 event not accepted by this server"))
        try await store.close()
    }

    @Test(.verifies("RPL-14"))
    func `a last event that the server refuses alone is counted, and is no success`() async throws {
        let store = try await device(1...3, named: "city")
        server.restore(keeping: 0, to: Date(timeIntervalSinceNow: -60))
        let refusal = TransportReply(status: 413)
        // Batches of all events, of the first, of the other two, and of each of these.
        let strict = Answering(server, appends: [refusal, nil, refusal, nil, refusal, nil])
        let report = try await store.sync(over: strict)
        #expect(report.restoredTo != nil)
        #expect(report.message == nil)
        #expect(report.shippedAgain == 2)
        #expect(report.notAccepted == 1)
        try await store.close()
    }

    @Test(.verifies("RPL-14"))
    func `a proxy that refuses every batch loses no event`() async throws {
        let store = try await device(1...30, named: "city")
        server.restore(keeping: 0, to: Date(timeIntervalSinceNow: -60))
        let proxy = Answering(server, appends: [.init(status: 400)])
        let refused = try await store.sync(over: proxy)
        #expect(refused.message != nil)
        #expect(refused.restoredTo == nil)
        #expect(refused.notAccepted == 0)
        #expect(server.events.isEmpty)
        let report = try await store.sync(over: server)
        #expect(report.shippedAgain == 30)
        #expect(report.notAccepted == 0)
        try await store.close()
    }

    @Test(.verifies("RPL-14"))
    func `events after a postponed one in its lane are sent after it`() async throws {
        let retries = Mutex(0)
        let server = InMemorySyncServer { draft in
            let isFirst = retries.withLock { count in
                guard count > 0, draft.type == CitySaved.type, draft.subject == "lisbon" else {
                    return false
                }
                count -= 1
                return true
            }
            return isFirst ? Verdict(id: draft.id, status: .retry) : nil
        }
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("lisbon", by: "u")
        for number in 1...600 { try await store.cities.save("city-\(number)", by: "u") }
        try await store.cities.unsave("lisbon", by: "u")
        try await store.sync(over: server)
        retries.withLock { $0 = 2 }
        server.restore(keeping: 0, to: Date(timeIntervalSinceNow: -60))
        let report = try await store.sync(over: server)
        #expect(report.shippedAgain == 602)
        #expect(report.notAccepted == 0)
        #expect(
            server.events.filter { $0.subject == "lisbon" }.map(\.type)
                == [CitySaved.type, CityUnsaved.type])
        try await store.close()
    }

    /// Its first read has no cursor; the name of the server has changed.
    @Test(.verifies("RPL-14", "RPL-15"))
    func `a device that has shipped and never read a page ships again what was lost`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        for number in 1...10 { try await store.cities.save("city-\(number)", by: "u") }
        var options = Replayer.Options()
        options.reads = false
        _ = try await Replayer(store.events, transport: server, options: options).run()
        server.restore(keeping: 0, to: Date(timeIntervalSinceNow: -60))
        _ = try await store.sync(over: server)
        #expect(server.events.count == 10)
        try await store.close()
    }

    @Test(.verifies("RPL-14"))
    func `servers that name a different restore each time do not keep a run`()
        async throws
    {
        let store = try await device(1...10, named: "city")
        let liar = Liar(server, isEarlierEachTime: true)
        let report = try await store.sync(over: liar)
        #expect(report.message != nil)
        #expect(report.pending == 0)
        #expect(liar.appends <= 4)
        try await store.close()
    }

    @Test(.verifies("RPL-14"))
    func `a run that does not ship leaves the recovery to one that does`() async throws {
        let store = try await device(1...10, named: "city")
        server.restore(keeping: 0, to: Date(timeIntervalSinceNow: -60))
        var options = Replayer.Options()
        options.ships = false
        let report = try await Replayer(store.events, transport: server, options: options).run()
        #expect(report.message != nil)
        #expect(report.restoredTo == nil)
        #expect(server.events.isEmpty)
        #expect(try await store.sync(over: server).shippedAgain == 10)
        try await store.close()
    }

    @Test(.verifies("RPL-14"))
    func `a server that calls itself restored at each read does not get everything each time`()
        async throws
    {
        let store = try await device(1...10, named: "city")
        let liar = Liar(server)
        let report = try await store.sync(over: liar)
        #expect(report.message != nil)
        #expect(report.pending == 0)
        #expect(liar.appends == 1)
        try await store.close()
    }
}

/// Gives set answers to batches, then those of the server.
private final class Answering: Transport {
    private let server: InMemorySyncServer
    private let appends: Mutex<[TransportReply?]>
    private let last: TransportReply?

    /// - Parameter appends: the answers to batches, in order; nil passes a batch on. If the last is not nil, all
    ///   later batches get it.
    init(_ server: InMemorySyncServer, appends: [TransportReply?]) {
        self.server = server
        self.appends = Mutex(appends)
        last = appends.last ?? nil
    }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        if case .append = request {
            let answer = appends.withLock { $0.isEmpty ? last : $0.removeFirst() }
            if let answer { return answer }
        }
        return try await server.send(request, token: token)
    }
}

/// Never answers a batch.
private final class SilentAppends: Transport {
    /// An element for each batch.
    let began: AsyncStream<Void>
    private let server: InMemorySyncServer
    private let mail: AsyncStream<Void>.Continuation

    init(_ server: InMemorySyncServer) {
        self.server = server
        (began, mail) = AsyncStream.makeStream()
    }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append = request else { return try await server.send(request, token: token) }
        mail.yield()
        // Until it is cancelled.
        while true { try await Task.sleep(for: .seconds(3_600)) }
    }
}

/// Answers each read as if it had been restored.
private final class Liar: Transport {
    private let server: InMemorySyncServer
    private let isEarlierEachTime: Bool
    private let count = Mutex(0)
    private let reads = Mutex<Int64>(0)
    var appends: Int { count.withLock { $0 } }

    init(_ server: InMemorySyncServer, isEarlierEachTime: Bool = false) {
        self.server = server
        self.isEarlierEachTime = isEarlierEachTime
    }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append = request else {
            let number = reads.withLock { count in
                count += isEarlierEachTime ? 1 : 0
                return count
            }
            return TransportReply(
                status: 400,
                restore: ServerRestore(
                    time: 1_000_000_000_000 - number, generation: String(number)))
        }
        count.withLock { $0 += 1 }
        return try await server.send(request, token: token)
    }
}
