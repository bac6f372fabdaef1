// A device that follows its account through streams that break at any moment, on a virtual clock: the real
// store, the real replayer, a server in memory. Spec/protocol/push.md, PUSH-10 to PUSH-15.

import DaybookOffline
import DaybookTestKit
import EventSourcing
import Foundation
import Synchronization

/// One history of a following device.
package struct StreamHistory {
    /// A violated expectation.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// The number of streams that break before the faults stop.
    private let cuts: Int
    private let seed: UInt64

    /// Creates a history.
    package init(cuts: Int, seed: UInt64) {
        self.cuts = cuts
        self.seed = seed
    }

    /// Runs the history: other devices record events while the streams of this one break. Then the faults stop,
    /// and the device must have each event once, in the server's order.
    ///
    /// - Returns: counts of what happened.
    /// - Throws: `Failure`.
    package func run() async throws -> [String: Int] {
        let server = InMemorySyncServer()
        let clock = VirtualClock()
        let transport = BreakingStreams(server, cuts: cuts, seed: seed)
        let store = try await OfflineStore.open(
            at: URL(filePath: "/log"),
            environment: clock.environment(
                fileSystem: SimulatedFileSystem(medium: Medium()), seed: seed))
        let report = Mutex(SyncReport())
        let replayer = Replayer(
            store.events, transport: transport,
            sleep: { duration in
                await Task.yield()
                try Task.checkCancellation()
                clock.advance(by: duration)
            })
        let run = Task {
            try await replayer.run(until: .never) { newest in report.withLock { $0 = newest } }
        }
        var random = SeededRandom(seed: ~seed)
        var events = OtherDevice()
        while !transport.isCalm {
            if random.next() % 8 == 0 {
                _ = try await server.send(
                    .append(batch: events.batch(Int(random.next() % 3) + 1)), token: nil)
            }
            if random.next() % 64 == 0 {
                try await store.cities.save("own-\(events.count)", by: "ana")
            }
            // Not a loop of yields, which would keep other tasks of the process from running.
            try await Task.sleep(for: .microseconds(random.next() % 200))
        }
        // A last event, which only an open stream or a read brings.
        _ = try await server.send(.append(batch: events.batch(1)), token: nil)
        let deadline = ContinuousClock.now + .seconds(60)
        while report.withLock({ $0.received < events.count || $0.pending > 0 }) {
            guard ContinuousClock.now < deadline else {
                throw Failure(
                    description:
                        "of \(events.count) events \(report.withLock { $0.received }) came "
                        + "(seed \(seed))")
            }
            try await Task.sleep(for: .milliseconds(1))
        }
        run.cancel()
        _ = await run.result
        try await check(store, server, received: report.withLock { $0.received }, events.count)
        let own = server.events.count - events.count
        try await store.close()
        return transport.counts.merging(["received": events.count, "own": own]) { $1 }
    }

    private func check(
        _ store: OfflineStore, _ server: InMemorySyncServer, received: Int, _ count: Int
    ) async throws {
        var ids: [UUID] = []
        for try await event in store.events.recordedEvents()
        where event.lwwTimestamp.source == OtherDevice.source.integer { ids.append(event.id) }
        let sent = server.events.map(\.id).filter(OtherDevice.isID)
        guard ids == sent, received == count else {
            throw Failure(
                description: "the log has \(ids.count) events of the \(sent.count) that were sent, "
                    + "\(Set(ids).count) different ones; the report counts \(received) "
                    + "(seed \(seed))")
        }
    }
}

/// The events of the account's other devices.
private struct OtherDevice {
    static let source = UUID(uuid: (7, 7, 7, 7, 7, 7, 0x40, 7, 0x80, 7, 7, 7, 7, 7, 7, 7))
    private(set) var count = 0

    /// A batch of new events.
    mutating func batch(_ size: Int) -> [UInt8] {
        let lines = (0..<size).map { _ in
            count += 1
            let city = "city-\(count)"
            let number = String(count)
            return #"{"specversion":"1.0","id":"\#(Self.id(count).text)","source":"urn:uuid:"#
                + #"\#(Self.source.text)","sequence":"\#(String(repeating: "0", count: 20 - number.count))"#
                + #"\#(number)","type":"daybook.city.saved","subject":"\#(city)","partitionkey":"#
                + #""city:ana:\#(city)","time":"2026-02-22T10:30:14.425Z","data":{"userId":"ana","#
                + #""cityId":"\#(city)"}}"#
        }
        return Array("[\(lines.joined(separator: ","))]".utf8)
    }

    private static func id(_ number: Int) -> UUID {
        let bytes = withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) }
        return UUID(
            uuid: (
                9, 9, 9, 9, 9, 9, 0x40, 9, 0x80, 9, bytes[2], bytes[3], bytes[4], bytes[5],
                bytes[6],
                bytes[7]
            ))
    }

    /// Whether an id is one of another device.
    static func isID(_ id: UUID) -> Bool { id.text.hasPrefix("09090909-0909-4009-8009-") }
}

/// The number of signals until a stream breaks.
private final class Budget: Sendable {
    private let remaining: Mutex<UInt64>

    init(_ count: UInt64) { remaining = Mutex(count) }

    /// Spends one.
    ///
    /// - Returns: false if none was left.
    func spend() -> Bool {
        remaining.withLock { remaining in
            guard remaining > 0 else { return false }
            remaining -= 1
            return true
        }
    }
}

/// A transport whose streams break: before they open, after some events, while they are idle.
private final class BreakingStreams: FollowingTransport {
    private struct Broken: Error {}

    private struct State {
        var random: SeededRandom
        var cuts = 0
        var counts: [String: Int] = [:]
    }

    private let server: InMemorySyncServer
    private let cutsMax: Int
    private let state: Mutex<State>

    init(_ server: InMemorySyncServer, cuts: Int, seed: UInt64) {
        self.server = server
        cutsMax = cuts
        state = Mutex(State(random: SeededRandom(seed: seed)))
    }

    /// Whether the faults have stopped.
    var isCalm: Bool { state.withLock { $0.cuts >= cutsMax } }
    var counts: [String: Int] { state.withLock { $0.counts } }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        try await reply { try await server.send(request, token: token) }
    }

    func offer(
        _ batch: [UInt8], token: String?, account: String?
    ) async throws -> TransportReply {
        try await reply { try await server.offer(batch, token: token, account: account) }
    }

    private func reply(
        _ send: () async throws -> TransportReply
    ) async throws -> TransportReply {
        let fails = state.withLock { $0.cuts < cutsMax && $0.random.next() % 32 == 0 }
        let reply = try await send()
        // The reply is lost.
        if fails { throw Broken() }
        return reply
    }

    func follow(
        after cursor: String?, token: String?, account: String?,
        receive: @escaping @Sendable (StreamSignal) -> Bool
    ) async throws -> StreamEnd {
        let (kind, length) = state.withLock { state in
            guard state.cuts < cutsMax else { return (UInt64.max, 0 as UInt64) }
            state.cuts += 1
            let kind = state.random.next() % 8
            let label =
                switch kind {
                case 0: "cut before the stream opened"
                case 1: "refused with 503"
                case 2...4: "cut after some events"
                default: "cut at any moment"
                }
            state.counts[label, default: 0] += 1
            state.counts["cut connections", default: 0] += 1
            return (kind, state.random.next() % 12)
        }
        switch kind {
        case .max:
            return try await server.follow(
                after: cursor, token: token, account: account, receive: receive)
        case 0: throw Broken()
        case 1: return .refused(status: 503, retryAfterSeconds: nil)
        default: break
        }
        let budget = Budget(kind <= 4 ? length : .max)
        return try await withThrowingTaskGroup(of: StreamEnd.self) { group in
            group.addTask { [server] in
                try await server.follow(after: cursor, token: token, account: account) { signal in
                    budget.spend() && receive(signal)
                }
            }
            group.addTask {
                for _ in 0..<length * 4 { await Task.yield() }
                throw Broken()
            }
            defer { group.cancelAll() }
            guard let end = try await group.next() else { throw Broken() }
            return end
        }
    }
}
