// One event on which requests fail stops neither a move or a restore, nor the reading of other logs' events.
// Spec/protocol/replay.md, RPL-14, RPL-7 and N1.

import DaybookOffline
import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Replay

/// What a server or a middlebox answers to a batch with a certain word.
private enum Poison: CaseIterable {
    case redirect, unauthorized, forbidden, notFound, malformedPage, tooLargePage, tooMany, error
    case unavailable, silence, page, noVerdicts

    var asksToWait: Bool { self == .tooMany || self == .unavailable }

    func answer() throws -> TransportReply {
        func reply(_ status: Int, _ body: String = "<html></html>", after seconds: Double? = nil)
            -> TransportReply
        {
            TransportReply(status: status, body: Array(body.utf8), retryAfterSeconds: seconds)
        }
        return switch self {
        case .redirect: reply(302)
        case .unauthorized: reply(401)
        case .forbidden: reply(403)
        case .notFound: reply(404)
        case .malformedPage: reply(400)
        case .tooLargePage: reply(413)
        case .tooMany: reply(429, after: 30)
        case .error: reply(500)
        case .unavailable: reply(503, after: 30)
        case .silence: throw TransportError(.timedOut, location: "server", "silence")
        case .page: reply(200)
        case .noVerdicts: reply(200, #"{"verdicts":[]}"#)
        }
    }
}

/// A way to a server that fails on batches with a word.
private final class PoisonedWay: Transport {
    let server: InMemorySyncServer
    private let poison: Poison
    /// The word; an empty one is in every batch.
    private let word: Mutex<String?>

    init(
        _ server: InMemorySyncServer, _ poison: Poison, on word: String = "poison",
        loneFailuresMax: Int = .max
    ) {
        self.server = server
        self.poison = poison
        self.loneFailuresMax = loneFailuresMax
        self.word = Mutex(word)
    }

    func open() { word.withLock { $0 = nil } }

    /// The number of failures of batches with one event after which the way is open.
    let loneFailuresMax: Int
    private let loneFailures = Mutex(0)

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        if case .append(let batch) = request, let word = word.withLock({ $0 }) {
            let text = String(decoding: batch, as: UTF8.self)
            let isLone = text.matches(of: /specversion/).count == 1
            let isOpen = loneFailures.withLock { count in
                guard isLone, text.contains(word) else { return false }
                count += 1
                return count > loneFailuresMax
            }
            if word.isEmpty || text.contains(word), !isOpen { return try poison.answer() }
        }
        return try await server.send(request, token: token)
    }
}

/// A way to a server that fails on two batches, and refuses all later ones.
private final class RefusingWay: Transport {
    private let server: InMemorySyncServer
    private let count = Mutex(0)
    var batches: Int { count.withLock { $0 } }

    init(_ server: InMemorySyncServer) { self.server = server }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append = request else { return try await server.send(request, token: token) }
        let number = count.withLock { count in
            count += 1
            return count
        }
        return TransportReply(status: number <= 2 ? 503 : 400)
    }
}

@Suite struct PoisonedOfferTests {
    private let clock = VirtualClock(milliseconds: LogEnvironment.systemTime())
    private let server = InMemorySyncServer()

    private func device(_ notes: [String] = []) async throws -> OfflineStore {
        let clock = clock
        let store = try await OfflineStore.open(
            at: URL(filePath: "/log"),
            environment: LogEnvironment(
                fileSystem: InMemoryFileSystem(), now: { clock.milliseconds }))
        for note in notes { try await store.notes.add(note, city: "c", by: "u") }
        return store
    }

    /// A run until nothing moves.
    @discardableResult
    private func sync(_ store: OfflineStore, over way: any Transport) async throws -> SyncReport {
        let clock = clock
        return try await Replayer(
            store.events, transport: way, sleep: { clock.advance(by: $0) }
        ).run()
    }

    /// Lets a tablet bring the server notes.
    private func addTablet(_ count: Int) async throws {
        let tablet = try await device((1...count).map { "tablet \($0)" })
        try await sync(tablet, over: server)
        try await tablet.close()
    }

    private func notes(_ store: OfflineStore) -> Set<String> {
        Set(store.notes(in: "c").current.map(\.content))
    }

    // MARK: The offer of settled events

    @Test(.verifies("RPL-14"), arguments: Poison.allCases, [[4], [1, 15], Array(3...13)])
    private func `a settled event on which batches fail does not stop a move`(
        poison: Poison, culprits: [Int]
    ) async throws {
        let phone = try await device(
            (1...15).map { culprits.contains($0) ? "poison \($0)" : "phone \($0)" })
        try await sync(phone, over: InMemorySyncServer())
        try await addTablet(8)
        try await phone.notes.add("unsent", city: "c", by: "u")
        let way = PoisonedWay(server, poison)
        var reports = [try await sync(phone, over: way)]
        // A server that asks to wait may be full: nothing is left out within that time, and the run ends.
        while poison.asksToWait, reports.count < 10, reports.allSatisfy({ $0.received == 0 }) {
            clock.advance(by: .seconds(30))
            reports.append(try await sync(phone, over: way))
        }
        #expect(reports.reduce(0) { $0 + $1.shippedAgain } == 15 - culprits.count)
        #expect(reports.reduce(0) { $0 + $1.received } == 8)
        #expect(reports.last?.pending == 0)
        #expect(!poison.asksToWait || reports.count > 4)
        let positions = reports.flatMap(\.notAcceptedPositions)
        #expect(positions.count == culprits.count)
        let refused = try await phone.events.jsonArray(of: positions)
        let text = String(decoding: refused, as: UTF8.self)
        #expect(text.matches(of: /poison/).count == culprits.count)
        try await phone.close()
    }

    @Test(.verifies("RPL-14"))
    func `an event whose requests a bad network loses is offered all the same`() async throws {
        let phone = try await device((1...15).map { $0 == 4 ? "poison" : "phone \($0)" })
        try await sync(phone, over: InMemorySyncServer())
        let way = PoisonedWay(server, .silence, loneFailuresMax: 4)
        let report = try await sync(phone, over: way)
        #expect(report.shippedAgain == 15)
        #expect(report.notAccepted == 0)
        try await phone.close()
    }

    @Test(.verifies("RPL-14"), arguments: Poison.allCases)
    private func `a server that takes no batch gets all of them later`(poison: Poison)
        async throws
    {
        let phone = try await device(["one", "two", "three"])
        try await sync(phone, over: InMemorySyncServer())
        let way = PoisonedWay(server, poison, on: "")
        for _ in 1...3 {
            let report = try await sync(phone, over: way)
            #expect(report.notAccepted == 0)
            #expect(report.otherServer == nil)
            #expect(report.message != nil)
            clock.advance(by: .seconds(120))
        }
        #expect(server.requests.count < 60)
        way.open()
        #expect(try await sync(phone, over: way).shippedAgain == 3)
        try await phone.close()
    }

    // MARK: Reading

    @Test(.verifies("RPL-17"), arguments: Poison.allCases, [1, 20])
    private func `changes on which requests fail do not stop the reading`(
        poison: Poison, count: Int
    ) async throws {
        try await addTablet(3)
        let phone = try await device((1...count).map { $0 == 1 ? "poison" : "phone \($0)" })
        let way = PoisonedWay(server, poison)
        let report = try await sync(phone, over: way)
        #expect(report.received == 3)
        #expect(server.events.count == 3 + count - 1)
        #expect(phone.outbox.count == 1)
        try await phone.close()
    }

    @Test(.verifies("RPL-17"))
    func `a pause by 400 after failures ends no sooner because reads are answered`() async throws {
        try await addTablet(1)
        let phone = try await device(["one", "two"])
        let way = RefusingWay(server)
        let report = try await sync(phone, over: way)
        #expect(report.received == 1)
        #expect(report.pending == 2)
        #expect(way.batches < 10)
        try await phone.close()
    }

    @Test(.verifies("RPL-7"))
    func `a silent event that is set aside does not end a run before it reads`() async throws {
        let phone = try await device(["poison", "phone"])
        let way = PoisonedWay(server, .silence)
        while phone.outbox.entries.first?.parking != .setAside {
            try await sync(phone, over: way)
            try await phone.notes.add("another", city: "c", by: "u")
        }
        for count in 1...3 {
            clock.advance(by: .seconds(7_200))
            try await addTablet(count)
            #expect(try await sync(phone, over: way).received == count)
        }
        #expect(phone.outbox.entries.first?.parking == .setAside)
        try await phone.close()
    }
}
