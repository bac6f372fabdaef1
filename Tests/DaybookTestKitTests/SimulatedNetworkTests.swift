// Every fault of the network has its effect, and clients and servers with one mistake each lose events by it:
// a network that loses nothing would prove nothing. Spec/protocol/sync-simulation.md.

import DaybookTestKit
import EventSourcing
import Foundation
import Replay
import Synchronization
import Testing

/// A server that records the arriving events, which are represented by their ids.
private final class Ledger: Transport {
    private let state = Mutex<[[UUID]]>([])
    private let offered = Mutex(0)
    private let isIdempotent: Bool

    init(isIdempotent: Bool = true) { self.isIdempotent = isIdempotent }

    var batches: [[UUID]] { state.withLock { $0 } }
    /// The number of batches that were offered.
    var offers: Int { offered.withLock { $0 } }

    /// The stored ids, in the order of arrival.
    var held: [UUID] {
        let all = batches.flatMap(\.self)
        guard isIdempotent else { return all }
        var seen: Set<UUID> = []
        return all.filter { seen.insert($0).inserted }
    }

    static func body(_ ids: [UUID]) -> [UInt8] {
        Array("[\(ids.map { "\"\($0)\"" }.joined(separator: ","))]".utf8)
    }

    func offer(
        _ batch: [UInt8], token: String?, account: String?
    ) async throws -> TransportReply {
        offered.withLock { $0 += 1 }
        return try await send(.append(batch: batch), token: token)
    }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request else {
            return TransportReply(status: 200, body: Array("[]".utf8))
        }
        guard case .array(let list) = try JSONValue(batch.span.bytes) else {
            return TransportReply(status: 400)
        }
        let ids = list.compactMap { $0.stringValue.flatMap(UUID.init(uuidString:)) }
        state.withLock { $0.append(ids) }
        let verdicts = ids.map { "{\"id\":\"\($0)\",\"status\":\"applied\"}" }
        return TransportReply(
            status: 200, body: Array("{\"verdicts\":[\(verdicts.joined(separator: ","))]}".utf8),
            date: 1_772_000_000_000)
    }
}

/// A network with given faults, and its only server.
private struct Line {
    let choices: SharedChoices
    let clock = VirtualClock()
    let server: Ledger
    let network: SimulatedNetwork

    init(_ faults: [NetworkFault], _ choices: Choices, isIdempotent: Bool = true) {
        self.choices = SharedChoices(choices)
        server = Ledger(isIdempotent: isIdempotent)
        network = SimulatedNetwork(
            self.choices, clock: clock, replicas: [server], faults: faults)
    }

    func count(_ fault: NetworkFault) -> Int { choices.choices.counts[fault.rawValue] ?? 0 }

    /// Ships ids, at most three in a batch, until the client treats all as settled.
    ///
    /// - Parameter settled: returns the ids that the client treats as settled after a reply.
    func ship(_ ids: [UUID], settled: (TransportReply?, [UUID]) -> [UUID]) async {
        var queue = ids
        for _ in 0..<400 where !queue.isEmpty {
            let batch = Array(queue.prefix(3))
            let reply = try? await network.send(.append(batch: Ledger.body(batch)), token: nil)
            let done = Set(settled(reply, batch))
            queue.removeAll { done.contains($0) }
        }
        await network.deliverAll()
    }
}

private let ids = (1...20).map { UUID(integer: UInt128($0)) }

/// A correct client.
private func careful(_ reply: TransportReply?, _ batch: [UUID]) -> [UUID] {
    guard let reply, reply.status == 200 else { return [] }
    return (Verdict.parse(reply.body) ?? []).filter {
        [.applied, .duplicate].contains($0.status)
    }.map(\.id)
}

@Suite struct SimulatedNetworkTests {
    @Test(arguments: [.copyLate, .requestDoubled, .requestLate, nil] as [NetworkFault?])
    func `an offer arrives as an offer, also later and twice`(fault: NetworkFault?) async throws {
        for seed in 0..<20 as Range<UInt64> {
            let line = Line(fault.map { [$0] } ?? [], Choices(seed: seed))
            let batch = Ledger.body([ids[0]])
            _ = try? await line.network.offer(batch, token: nil, account: nil)
            _ = try? await line.network.send(.append(batch: Ledger.body([ids[1]])), token: nil)
            await line.network.deliverAll()
            #expect(line.server.offers == line.server.batches.count { $0 == [ids[0]] })
            #expect(line.server.offers > 0)
        }
    }

    @Test(arguments: NetworkFault.allCases)
    func `every fault has its effect`(fault: NetworkFault) async throws {
        for seed in 0..<40 as Range<UInt64> {
            let line = Line([fault], Choices(seed: seed))
            var hit: [[UUID]] = []
            while line.count(fault) == 0 || fault == .replyMixedUp && hit.count < 2 {
                let batch = [
                    UUID(integer: UInt128(line.server.batches.count + 1)), ids[10], ids[11],
                ]
                let (arrived, time) = (line.server.batches.count, line.clock.milliseconds)
                let hits = line.count(fault)
                let reply = try? await line.network.send(
                    .append(batch: Ledger.body(batch)), token: nil)
                guard line.count(fault) > hits else { continue }
                hit.append(batch)
                check(
                    fault, reply, batch, first: hit[0],
                    arrivals: line.server.batches.count - arrived,
                    milliseconds: line.clock.milliseconds - time, line)
            }
            let before = line.server.batches.count
            await line.network.deliverAll()
            let isLate = [.requestLate, .copyLate].contains(fault)
            #expect(line.server.batches.count - before == (isLate ? 1 : 0))
        }
    }

    private func check(
        _ fault: NetworkFault, _ reply: TransportReply?, _ batch: [UUID], first: [UUID],
        arrivals: Int, milliseconds: Int64, _ line: Line
    ) {
        let verdicts = reply.flatMap { Verdict.parse($0.body) }
        let answered = verdicts.map { $0.map(\.id) }
        switch fault {
        case .requestLost, .requestLate:
            #expect(reply == nil)
            #expect(arrivals == 0)
            #expect(milliseconds == 30_000)
        case .replyLost:
            #expect(reply == nil)
            #expect(arrivals == 1)
            #expect(milliseconds == 30_000)
        case .requestDoubled:
            #expect(answered == batch)
            #expect(arrivals == 2)
        case .copyLate:
            #expect(answered == batch)
            #expect(arrivals == 1)
        case .replyMixedUp where batch == first:
            // The first request gets no reply, since there is no earlier one.
            #expect(reply == nil)
            #expect(arrivals == 1)
        case .replyMixedUp: #expect(answered == first)
        case .slow:
            #expect(answered == batch)
            #expect(milliseconds >= 1_000)
        case .captivePortal:
            #expect(reply?.status == 200)
            #expect(verdicts == nil)
            #expect(arrivals == 0)
        case .redirect:
            #expect((300..<400).contains(reply?.status ?? 0))
            #expect(arrivals == 0)
        case .malformedRequest:
            #expect([400, 422].contains(reply?.status ?? 0))
            #expect(arrivals == 0)
        case .unauthorized:
            #expect(reply?.status == 401)
            #expect(arrivals == 0)
        case .wrongEndpoint:
            #expect((403...415).contains(reply?.status ?? 0))
            #expect(arrivals == 0)
        case .tooLarge:
            #expect(reply?.status == 413)
            #expect(arrivals == 0)
        case .overloaded:
            #expect([429, 503].contains(reply?.status ?? 0))
            #expect(arrivals == 0)
        case .serverError: #expect(reply.map { ![200, 401].contains($0.status) } ?? false)
        case .replyTruncated, .replyGarbled:
            #expect(reply?.status == 200)
            #expect(verdicts == nil)
            #expect(arrivals == 1)
        case .replyMalformed:
            #expect(verdicts?.isEmpty ?? true)
            #expect(arrivals == 1)
        case .verdictsMissing, .verdictsShuffled:
            #expect(Set(answered ?? []).isSubset(of: batch) || fault == .verdictsShuffled)
            #expect(arrivals == 1)
        case .verdictsUnprocessed:
            #expect(verdicts?.allSatisfy { [.applied, .unprocessed].contains($0.status) } ?? false)
        case .verdictsRetry:
            #expect(verdicts?.allSatisfy { [.applied, .retry].contains($0.status) } ?? false)
        case .wrongDate:
            #expect(answered == batch)
            #expect(reply?.date != nil)
        }
    }

    /// Whether a client loses events in at least one of a hundred runs.
    private func loses(
        _ faults: [NetworkFault], _ settled: (TransportReply?, [UUID]) -> [UUID]
    ) async -> Bool {
        for seed in 0..<100 as Range<UInt64> {
            let line = Line(faults, Choices(seed: seed))
            await line.ship(ids, settled: settled)
            if line.server.held.count < ids.count { return true }
        }
        return false
    }

    @Test func `a client that settles before the reply loses events`() async {
        for fault in [NetworkFault.requestLost, .unauthorized, .redirect, .overloaded] {
            #expect(await loses([fault]) { _, batch in batch })
            #expect(await !loses([fault], careful))
        }
    }

    @Test func `a client that settles the whole batch after any 200 loses events`() async {
        #expect(
            await loses([.captivePortal]) { reply, batch in reply?.status == 200 ? batch : [] })
        #expect(await !loses([.captivePortal], careful))
    }

    @Test func `a client that matches verdicts by index loses events`() async {
        func byPlace(_ reply: TransportReply?, _ batch: [UUID]) -> [UUID] {
            let verdicts = reply.flatMap { Verdict.parse($0.body) } ?? []
            return zip(verdicts, batch).filter { $0.0.status == .applied }.map(\.1)
        }
        #expect(await loses([.replyMixedUp], byPlace))
        #expect(await !loses([.replyMixedUp], careful))
    }

    @Test(arguments: [
        NetworkFault.requestDoubled, .replyLost, .copyLate, .requestLate, .replyTruncated,
        .serverError,
    ])
    func `a server that does not compare ids counts events twice`(fault: NetworkFault) async {
        var doubled = false
        for seed in 0..<100 as Range<UInt64> {
            let naive = Line([fault], Choices(seed: seed), isIdempotent: false)
            await naive.ship(ids, settled: careful)
            doubled = doubled || naive.server.held.count > ids.count
            let sound = Line([fault], Choices(seed: seed))
            await sound.ship(ids, settled: careful)
            #expect(sound.server.held == ids)
        }
        #expect(doubled)
    }

    @Test func `a late request arrives after newer ones`() async {
        var overtaken = false
        for seed in 0..<100 as Range<UInt64> where !overtaken {
            let line = Line([.requestLate], Choices(seed: seed), isIdempotent: false)
            await line.ship(ids, settled: careful)
            let order = line.server.held.map { $0.integer }
            overtaken = order != order.sorted()
        }
        #expect(overtaken)
    }

    @Test func `the simplest choices have no faults`() async throws {
        let line = Line(NetworkFault.allCases, Choices(replaying: []))
        await line.ship(ids, settled: careful)
        #expect(line.server.batches.flatMap(\.self) == ids)
    }

    @Test func `after calm there are no faults`() async throws {
        for seed in 0..<20 as Range<UInt64> {
            let line = Line(NetworkFault.allCases, Choices(seed: seed))
            await line.ship(Array(ids.prefix(4)), settled: careful)
            line.network.calm()
            let before = line.server.batches.count
            await line.ship(ids, settled: careful)
            #expect(line.server.batches.count - before == 7)
        }
    }

    @Test func `a client that hangs up gets no reply, and the server continues`() async throws {
        let line = Line([.requestLate], Choices(seed: 3))
        while line.count(.requestLate) == 0 {
            _ = try? await line.network.send(.append(batch: Ledger.body([ids[0]])), token: nil)
        }
        let before = line.server.batches.count
        line.network.hangUp()
        await #expect(throws: SimulatedNetwork.Failure.hungUp) {
            try await line.network.send(.append(batch: Ledger.body([ids[1]])), token: nil)
        }
        await line.network.deliverAll()
        #expect(line.server.batches.count == before + 1)
        line.network.reconnect()
        line.network.calm()
        _ = try await line.network.send(.append(batch: Ledger.body([ids[1]])), token: nil)
        #expect(line.server.batches.last == [ids[1]])
    }

    @Test func `a late reply to the previous client is dropped at reconnection`() async throws {
        let line = Line([.replyMixedUp], Choices(seed: 3))
        while line.count(.replyMixedUp) == 0 {
            _ = try? await line.network.send(.append(batch: Ledger.body([ids[0]])), token: nil)
        }
        line.network.hangUp()
        line.network.reconnect()
        let hits = line.count(.replyMixedUp)
        while line.count(.replyMixedUp) == hits {
            let reply = try? await line.network.send(
                .append(batch: Ledger.body([ids[1]])), token: nil)
            let verdicts = reply.flatMap { Verdict.parse($0.body) }
            #expect(verdicts?.map(\.id).contains(ids[0]) != true)
        }
    }

    @Test func `the same choices give the same trace, others another`() async {
        func hash(_ seed: UInt64) async -> UInt64 {
            let line = Line(NetworkFault.allCases, Choices(seed: seed))
            await line.ship(ids, settled: careful)
            return line.network.traceHash
        }
        var hashes: Set<UInt64> = []
        for seed in 0..<20 as Range<UInt64> {
            let first = await hash(seed)
            #expect(await hash(seed) == first)
            hashes.insert(first)
        }
        #expect(hashes.count > 10)
    }
}
