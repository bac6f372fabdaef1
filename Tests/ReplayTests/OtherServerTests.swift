// A log that meets another server, or a token of another account, than it has synced with.
// Spec/protocol/replay.md, RPL-15 and RPL-16.

import DaybookOffline
import DaybookTestKit
import EventSourcing
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Replay

@Suite struct OtherServerTests {
    private let first = InMemorySyncServer()
    private let second = InMemorySyncServer()

    /// A device with notes of its own that a server has.
    private func device(
        _ count: Int, named name: String, syncing server: any Transport
    ) async throws -> OfflineStore {
        let store = try await OfflineStore.inMemory()
        for number in 1...count {
            try await store.notes.add("\(name) \(number)", city: "c", by: "u")
        }
        _ = try await store.sync(over: server)
        return store
    }

    private func notes(_ store: OfflineStore) -> Set<String> {
        Set(store.notes(in: "c").current.map(\.content))
    }

    @Test(.verifies("RPL-15"))
    func `a log that moves to another server brings what it has and gets what is there`()
        async throws
    {
        let phone = try await device(6, named: "phone", syncing: first)
        let tablet = try await device(8, named: "tablet", syncing: second)
        let report = try await phone.sync(over: second)
        #expect(report.shippedAgain == 6)
        #expect(report.received == 8)
        #expect(report.otherServer != nil)
        #expect(report.restoredTo == nil)
        #expect(report.message == nil)
        try await tablet.sync(over: second)
        #expect(notes(phone).count == 14)
        #expect(notes(tablet) == notes(phone))
        let next = try await phone.sync(over: second)
        #expect(next.shippedAgain == 0)
        #expect(next.otherServer == nil)
        try await phone.close()
        try await tablet.close()
    }

    @Test(.verifies("RPL-15"))
    func `a server at another address gets what changes are based on before the changes`()
        async throws
    {
        let phone = try await device(6, named: "phone", syncing: Addressed(first, "a.example"))
        let note = try #require(phone.notes(in: "c").current.first)
        try await phone.notes.update(note.id, "edited", by: "u")
        let report = try await phone.sync(over: Addressed(second, "b.example"))
        #expect(report.conflict == 0)
        #expect(report.pending == 0)
        #expect(second.events.count == 7)
        try await phone.close()
    }

    @Test(.verifies("RPL-15"))
    func `a run that only ships brings everything to a server at another address`() async throws {
        let phone = try await device(6, named: "phone", syncing: Addressed(first, "a.example"))
        let tablet = try await device(8, named: "tablet", syncing: second)
        var options = Replayer.Options()
        options.reads = false
        let replayer = Replayer(
            phone.events, transport: Addressed(second, "b.example"), options: options)
        let report = try await replayer.run()
        #expect(report.shippedAgain == 6)
        #expect(!report.isBehind)
        #expect(second.events.count == 14)
        #expect(try await replayer.run().shippedAgain == 0)
        try await phone.close()
        try await tablet.close()
    }

    @Test(.verifies("RPL-15"))
    func `servers of one database are one server at every address`() async throws {
        let phone = try await device(6, named: "phone", syncing: Addressed(first, "a.example"))
        try await phone.notes.add("new", city: "c", by: "u")
        let report = try await phone.sync(over: Addressed(first, "b.example:8080"))
        #expect(report.applied == 1)
        #expect(report.shippedAgain == 0)
        #expect(report.otherServer == nil)
        try await phone.close()
    }

    @Test(.verifies("RPL-15"), arguments: [("a.example", 0), ("b.example", 6)])
    func `a server without a name is known by its address`(address: String, again: Int)
        async throws
    {
        let phone = try await device(
            6, named: "phone", syncing: Addressed(first, "a.example", isNamed: false))
        let report = try await phone.sync(over: Addressed(first, address, isNamed: false))
        #expect(report.shippedAgain == 0)
        #expect(report.otherServer == (again > 0 ? address : nil))
        try await phone.close()
    }

    @Test(.verifies("RPL-15"))
    func `a move that is interrupted is completed by the next opening`() async throws {
        let files = InMemoryFileSystem()
        func open() async throws -> OfflineStore {
            try await OfflineStore.open(
                at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: files))
        }
        var phone = try await open()
        for number in 1...6 { try await phone.notes.add("phone \(number)", city: "c", by: "u") }
        try await phone.sync(over: first)
        try await phone.sync(over: Addressed(second, nil, refusesAppends: true))
        try await phone.close()
        phone = try await open()
        #expect(try await phone.sync(over: second).shippedAgain == 6)
        try await phone.close()
    }

    /// The last change of each note names a base that compaction has removed.
    @Test(.verifies("RPL-14", "RPL-15"), arguments: [false, true])
    func `a log that was compacted brings a server the last texts and deletions`(isRestore: Bool)
        async throws
    {
        let phone = try await OfflineStore.open(
            at: URL(filePath: "/log"), compaction: nil,
            environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
        let kept = try await phone.notes.add("kept 0", city: "c", by: "u")
        let deleted = try await phone.notes.add("deleted 0", city: "c", by: "u")
        for number in 1...4 {
            try await phone.notes.update(kept.id, "kept \(number)", by: "u")
            try await phone.notes.update(deleted.id, "deleted \(number)", by: "u")
        }
        try await phone.notes.delete(deleted.id, by: "u")
        try await phone.sync(over: first)
        try phone.events.log.roll()
        #expect(try await phone.compact().removed > 0)
        let server = isRestore ? first : second
        if isRestore { first.restore(keeping: 2, to: Date(timeIntervalSinceNow: -60)) }
        let report = try await phone.sync(over: server)
        #expect(report.notAccepted == 0)
        #expect(report.shippedAgain > 0)
        let tablet = try await OfflineStore.inMemory()
        try await tablet.sync(over: server)
        #expect(notes(tablet) == ["kept 4"])
        #expect(notes(phone) == ["kept 4"])
        try await phone.close()
        try await tablet.close()
    }

    @Test(.verifies("OUT-11"))
    func `the record of the cursor keeps the peer, and leaves out what no record can hold`() throws
    {
        var peer = SyncPeer(
            account: "ada", server: String(repeating: "s", count: 256), address: "a.example:1"
        ) { $0 != "a.example:1" }
        #expect(peer.server == nil)
        #expect(peer.address == nil)
        peer.server = "9f0c"
        peer.adopts = true
        peer.refusal = "wrong-account"
        let record = SyncPulled(by: UUID(), next: nil, peer: peer)
        #expect(try SyncPulled(json: record.json()) == record)
        let odd = #"{"by":"\#(UUID())","next":"c","account":7,"server":"","adopts":1}"#
        #expect(try SyncPulled(json: Array(odd.utf8)).peer == SyncPeer())
        var writer = StateWriter()
        peer.encode(to: &writer)
        var reader = StateReader(writer.bytes)
        #expect(try SyncPeer(&reader) == peer)
    }

    // MARK: Accounts

    @Test(.verifies("RPL-16"))
    func `a token of another account than the first gets no event of the log`() async throws {
        let (ada, bob) = (
            Addressed(first, nil, account: "ada"), Addressed(second, nil, account: "bob")
        )
        let tablet = try await device(5, named: "bob", syncing: second)
        let phone = try await device(1, named: "ada", syncing: first)
        // The first token of a log that has nothing may be anyone's.
        let shared = try await OfflineStore.inMemory()
        _ = try await shared.sync(over: ada)
        #expect(shared.events.syncPeer.account == "ada")
        try await shared.notes.add("unsent", city: "c", by: "u")
        let report = try await shared.sync(over: bob)
        #expect(report.refusal?.code == .wrongAccount)
        #expect(report.pending == 1)
        #expect(second.events.count == 5)
        #expect(notes(shared).count == 2)
        #expect(try await shared.sync(over: ada).pending == 0)
        for store in [tablet, phone, shared] { try await store.close() }
    }

    @Test(.verifies("RPL-16", "ACC-10"))
    func `events that were recorded before the first account need its adoption`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.notes.add("whose", city: "c", by: "u")
        let bob = Addressed(second, nil, account: "bob")
        #expect(try await store.sync(over: bob).refusal?.code == .accountNeeded)
        #expect(second.events.isEmpty)
        try await store.events.adoptUnsentEvents()
        #expect(try await store.sync(over: bob).applied == 1)
        #expect(store.events.syncPeer.account == "bob")
        try await store.close()
    }

    @Test(.verifies("RPL-16"))
    func `an adoption while a request is unanswered is kept`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.notes.add("whose", city: "c", by: "u")
        let report = try await store.sync(over: AdoptingServer(store.events))
        #expect(report.refusal?.code == .accountNeeded)
        #expect(store.events.syncPeer.refusal == "account-needed")
        #expect(store.events.syncPeer.adopts)
        try await store.close()
    }

    @Test(.verifies("RPL-16"))
    func `a server that names no account gets the events of a log without one`() async throws {
        let phone = try await device(2, named: "phone", syncing: first)
        #expect(first.events.count == 2)
        #expect(phone.events.syncPeer.account == nil)
        try await phone.close()
    }

    @Test(.verifies("RPL-16"))
    func `a stream names the same account as a request`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.notes.add("whose", city: "c", by: "u")
        var options = Replayer.Options()
        options.ships = false
        let transport = Streaming()
        let replayer = Replayer(store.events, transport: transport, options: options)
        let run = Task { try await replayer.run(until: .never) }
        try await eventually("streams", where: { $0 > 0 }) { transport.streams.count }
        run.cancel()
        _ = try? await run.value
        #expect(transport.streams.first == "")
        #expect(transport.requests.first == "")
        try await store.close()
    }
}

/// A server that names no account; it keeps what each request and stream names.
private final class Streaming: FollowingTransport {
    private let named = Mutex<(requests: [String?], streams: [String?])>(([], []))
    var requests: [String?] { named.withLock { $0.requests } }
    var streams: [String?] { named.withLock { $0.streams } }

    func send(_ request: TransportRequest, token: String?) -> TransportReply {
        TransportReply(status: 200, body: Array("[]".utf8))
    }

    func send(_ request: TransportRequest, token: String?, account: String?) -> TransportReply {
        named.withLock { $0.requests.append(account) }
        return send(request, token: token)
    }

    func follow(
        after cursor: String?, token: String?, account: String?,
        receive: @escaping @Sendable (StreamSignal) -> Bool
    ) -> StreamEnd {
        named.withLock { $0.streams.append(account) }
        return .ended
    }
}

/// A server at an address, with the tokens of one account.
private final class Addressed: Transport {
    private let server: InMemorySyncServer
    private let isNamed: Bool
    private let account: String?
    private let refusesAppends: Bool
    let serverAddress: String?

    init(
        _ server: InMemorySyncServer, _ address: String?, isNamed: Bool = true,
        account: String? = nil, refusesAppends: Bool = false
    ) {
        self.server = server
        self.isNamed = isNamed
        self.account = account
        self.refusesAppends = refusesAppends
        serverAddress = address
    }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        try await send(request, token: token, account: nil)
    }

    func send(
        _ request: TransportRequest, token: String?, account expected: String?
    ) async throws -> TransportReply {
        if let account, let expected, expected != account {
            throw TransportError.account(expected, at: "server")
        }
        if case .append = request, refusesAppends { return TransportReply(status: 403) }
        var reply = try await server.send(request, token: token)
        reply.account = account
        if !isNamed { reply.server = nil }
        return reply
    }
}

/// Refuses a log of no known account, whose user adopts its events before the refusal arrives.
private final class AdoptingServer: Transport {
    private let store: EventStore

    init(_ store: EventStore) { self.store = store }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        try await store.adoptUnsentEvents()
        throw TransportError.account("", at: "server")
    }
}
