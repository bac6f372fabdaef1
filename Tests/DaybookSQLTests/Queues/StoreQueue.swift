// The trial's queue of this store: the outbox of an EventStore for each user, and a transport to the scripted API.

import Daybook
import DaybookTestKit
import Foundation

// store queue begins
struct ChangeMade: EventPayload, Codable {
    static let type = "com.example.change.made"
    var change: TrialChange
    var subject: String? { change.entity }
}

actor StoreQueue: OfflineQueue {
    private let api: ScriptedAPI
    private var files = InMemoryFileSystem()
    private var condition = StorageCondition.normal
    private var user = "alice"
    private var store: EventStore?

    init(sendingTo api: ScriptedAPI) async throws {
        self.api = api
        try await open()
    }

    private func open() async throws {
        store = nil
        store = try await EventStore.open(
            at: URL(filePath: "/\(user)"), account: user,
            rules: [.of(ChangeMade.self, action: "CHANGE")],
            environment: api.clock.environment(fileSystem: files, seed: 1))
    }

    private func opened() throws -> EventStore {
        guard let store else { throw NotOpen() }
        return store
    }

    func enqueue(_ change: TrialChange) async throws {
        try await opened().append(ChangeMade(change: change))
    }

    func run(after signal: QueueSignal) async {
        guard let store else { return }
        let clock = api.clock
        let replayer = Replayer(
            store, transport: ScriptedTransport(api: api), credentials: BearerToken(user)
        ) { clock.advance(by: $0) }
        _ = try? await replayer.run()
    }

    func pending() async throws -> [PendingChange] {
        let store = try opened()
        var pending: [PendingChange] = []
        for entry in store.view(Outbox.self).entries {
            guard let event = try await store.event(at: entry.position) else { continue }
            let change = try event.payload(as: ChangeMade.self).change
            pending.append(PendingChange(change, isRefused: entry.status == .failed))
        }
        return pending
    }

    func killAndReopen() async throws {
        files = files.snapshot()
        applyCondition()
        try await open()
    }

    func signIn(as user: String) async throws {
        try await opened().close()
        self.user = user
        try await open()
    }

    func setStorage(_ condition: StorageCondition) {
        self.condition = condition
        applyCondition()
    }

    private func applyCondition() {
        let failing: [String] =
            switch condition {
            // The log is not in a folder that the system may empty.
            case .normal, .purged: []
            case .unreadable: ["open", "read"]
            case .full: ["create", "grow", "write"]
            }
        files.failing { [condition] operation, path in
            guard failing.contains(operation) else { return nil }
            return FileError(
                condition == .full ? .noSpace : .io, operation: operation, path: path,
                reason: "the storage is \(condition)")
        }
    }

    private struct NotOpen: Error {}
}

/// Sends the store's events to the scripted API, with their ids as keys.
struct ScriptedTransport: Transport {
    let api: ScriptedAPI

    private struct Shipped: Decodable {
        var id: String
        var data: ChangeMade
    }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request else {
            return TransportReply(status: 200, body: Array("[]".utf8))
        }
        let events = try JSONDecoder().decode([Shipped].self, from: Data(batch))
        let reply = try await api.send(
            events.map { ($0.data.change, $0.id) }, user: token ?? "")
        guard reply.results.count == events.count else {
            return TransportReply(status: reply.status, body: Array(reply.body.utf8))
        }
        let verdicts = zip(events, reply.results).map { event, result in
            let status = result.body.contains("error") ? "rejected" : "applied"
            return #"{"id":"\#(event.id)","status":"\#(status)"}"#
        }
        let body = #"{"verdicts":[\#(verdicts.joined(separator: ","))]}"#
        return TransportReply(status: 200, body: Array(body.utf8))
    }
}
// store queue ends
