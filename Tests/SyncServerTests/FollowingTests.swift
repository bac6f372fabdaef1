// Devices that follow their account through a server's stream. Spec/protocol/push.md, PUSH-10 to PUSH-16.

import DaybookOffline
import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct FollowingTests {
    @Test(.verifies("PUSH-10", "PUSH-12"), arguments: StorageKind.all)
    func `what one device records appears on another without a request of it`(
        _ kind: StorageKind
    ) async throws {
        let fixture = try await kind.fixture()
        let server = try ServerProcess(database: fixture.location)
        let phone = try await Device(server.base)
        let tablet = try await Device(server.base)
        try await eventually("connections", is: [SyncStatus.Connection.pushed, .pushed]) {
            [phone.connection, tablet.connection]
        }
        var waits: [Duration] = []
        for number in 0..<Self.changes {
            let (writer, reader) = number % 2 == 0 ? (phone, tablet) : (tablet, phone)
            let began = ContinuousClock.now
            try await writer.store.cities.save("city-\(number)", by: "ana")
            for await cities in reader.store.cities.saved(by: "ana").changes
            where cities.contains(where: { $0 == "city-\(number)" }) { break }
            waits.append(ContinuousClock.now - began)
        }
        try await eventually("pending events", is: 0) {
            phone.service.report.pending + tablet.service.report.pending
        }
        // The report is updated after the event is visible.
        for device in [phone, tablet] {
            try await eventually("received events", is: Self.changes / 2) {
                device.service.report.received
            }
        }
        waits.sort()
        print(
            "\(kind): from append to changes, \(waits.count) times: median",
            waits[waits.count / 2], "99 %", waits[waits.count * 99 / 100])
        #expect(phone.service.report.duplicate + tablet.service.report.duplicate == 0)
        try await phone.close()
        try await tablet.close()
    }

    /// The number of changes whose way is measured; can be raised in the environment.
    private static let changes =
        ProcessInfo.processInfo.environment["DAYBOOK_CHANGES"].flatMap { Int($0) } ?? 50

    /// The number of connections that break; can be raised in the environment.
    private static let cuts =
        ProcessInfo.processInfo.environment["DAYBOOK_CUTS"].flatMap { Int($0) } ?? 60

    @Test(.verifies("PUSH-5", "PUSH-12", "PUSH-14"))
    func `devices whose connections break again and again miss no event and have none twice`()
        async throws
    {
        let fixture = try StorageFixture()
        let server = try ServerProcess(database: fixture.location)
        let port = try #require(URL(string: server.base)?.port.flatMap { UInt16(exactly: $0) })
        let count = Mutex(0)
        let relay = try LoopbackServer { connection in
            let number = count.withLock { count in
                count += 1
                return count
            }
            let life: Duration? = number > Self.cuts ? nil : .milliseconds(5 + number * 37 % 120)
            try connection.tunnel(to: port, for: life)
        }
        let writer = try await Device(server.base)
        var readers: [Device] = []
        for _ in 0..<4 { readers.append(try await Device("http://127.0.0.1:\(relay.port)")) }
        var recorded: [String] = []
        while count.withLock({ $0 }) <= Self.cuts {
            let city = "city-\(recorded.count)"
            try await writer.store.cities.save(city, by: "ana")
            recorded.append(city)
            // In real time, as the lives of the connections: some events between two breaks.
            try await Task.sleep(for: .milliseconds(20))
        }
        for reader in readers {
            try await eventually("received events", is: recorded.count) {
                reader.service.report.received
            }
            var received: [String] = []
            for try await event in reader.store.events.recordedEvents()
            where event.type == "daybook.city.saved" { received.append(event.subject ?? "") }
            // The writer has two requests at a time, so the server's order may be another one.
            #expect(received.sorted() == recorded.sorted())
            try await reader.close()
        }
        try await writer.close()
    }

    /// A device that follows its account on a virtual clock, whose waits take a millisecond.
    private func follow(
        over transport: some FollowingTransport, _ clock: VirtualClock
    ) async throws -> (OfflineStore, Task<SyncReport, any Error>) {
        // The waits are random: the environment's seed makes them the same in each run.
        let store = try await OfflineStore.open(
            at: URL(filePath: "/log"),
            environment: clock.environment(fileSystem: InMemoryFileSystem(), seed: 1))
        let replayer = Replayer(
            store.events, transport: transport,
            sleep: { duration in
                // A request under way ends before the clock moves.
                try await Task.sleep(for: .milliseconds(1))
                clock.advance(by: duration)
            })
        return (store, Task { try await replayer.run(until: .never) })
    }

    @Test(.verifies("PUSH-11", "PUSH-15"), arguments: StreamFailure.allCases)
    private func
        `where the server has no stream, or a proxy withholds it, pages are read at intervals`(
            _ failure: StreamFailure
        ) async throws
    {
        let clock = VirtualClock()
        let transport = NoStream(failure, clock: clock)
        let (store, run) = try await follow(over: transport, clock)
        try await eventually("connection", is: .polled) { store.syncStatus.current.connection }
        let first = transport.reads.count
        try await eventually("reads", where: { $0 > first + 10 }) { transport.reads.count }
        let reads = transport.reads[first...]
        for (read, next) in zip(reads, reads.dropFirst()) {
            // More if a stream was tried in between, in vain.
            let tried: Int64 = failure == .withheldLater ? 100_000 : 10_000
            #expect((60_000...(70_000 + tried)).contains(next - read))
        }
        run.cancel()
        _ = await run.result
        try await store.close()
    }

    @Test(.verifies("PUSH-12", "PUSH-14"))
    func `a stream whose events cannot be used is opened less and less often`() async throws {
        let clock = VirtualClock()
        let transport = UnusableStream(clock: clock)
        let (store, run) = try await follow(over: transport, clock)
        try await eventually("openings", where: { $0 >= 10 }) { transport.openings.count }
        let openings = transport.openings
        #expect(openings[9] - openings[0] > 10_000)
        run.cancel()
        _ = await run.result
        try await store.close()
    }
}

/// The reason why there is no stream.
private enum StreamFailure: CaseIterable {
    /// The server's answer is a page.
    case refused
    /// No byte of the stream arrives.
    case withheld
    /// The first bytes arrive, and no other.
    case withheldLater
}

/// A transport whose stream sends no event of a log.
private final class UnusableStream: FollowingTransport {
    private let server = InMemorySyncServer()
    private let clock: VirtualClock
    private let times = Mutex<[Int64]>([])

    /// The times at which a stream was opened.
    var openings: [Int64] { times.withLock { $0 } }

    init(clock: VirtualClock) { self.clock = clock }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        try await server.send(request, token: token)
    }

    func follow(
        after cursor: String?, token: String?, account: String?,
        receive: @escaping @Sendable (StreamSignal) -> Bool
    ) async throws -> StreamEnd {
        times.withLock { $0.append(clock.milliseconds) }
        _ = receive(.opened)
        _ = receive(.event(Array("ping".utf8), next: "1"))
        // Until it is cancelled.
        try await Task.sleep(for: .seconds(3_600))
        return .ended
    }
}

/// A transport without a stream.
private final class NoStream: FollowingTransport {
    private let server = InMemorySyncServer()
    private let failure: StreamFailure
    private let clock: VirtualClock
    private let times = Mutex<[Int64]>([])

    /// The times of the reads.
    var reads: [Int64] { times.withLock { $0 } }

    init(_ failure: StreamFailure, clock: VirtualClock) {
        self.failure = failure
        self.clock = clock
    }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        times.withLock { $0.append(clock.milliseconds) }
        return try await server.send(request, token: token)
    }

    func follow(
        after cursor: String?, token: String?, account: String?,
        receive: @escaping @Sendable (StreamSignal) -> Bool
    ) async throws -> StreamEnd {
        switch failure {
        case .refused: return .refused(status: 200, retryAfterSeconds: nil)
        case .withheld:
            // Until it is cancelled.
            try await Task.sleep(for: .seconds(3_600))
            return .ended
        case .withheldLater:
            _ = receive(.opened)
            // PUSH-13.
            clock.advance(by: .seconds(100))
            throw TransportError(.timedOut, location: "server", "silent")
        }
    }
}

/// A device that syncs all the time.
private final class Device: Sendable {
    let store: OfflineStore
    let service: SyncService
    private let run: Task<Void, any Error>

    var connection: SyncStatus.Connection { store.syncStatus.current.connection }

    init(_ base: String) async throws {
        store = try await OfflineStore.inMemory()
        let endpoint = try #require(URL(string: base))
        service = SyncService(
            store, transport: HTTPTransport(endpoint: endpoint), reachability: AlwaysReachable())
        run = Task { [service] in try await service.run() }
    }

    func close() async throws {
        run.cancel()
        _ = await run.result
        try await store.close()
    }
}
