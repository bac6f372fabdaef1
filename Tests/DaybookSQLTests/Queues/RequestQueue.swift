// The trial's queue of this store, shipping to the app's own API: each change is a request of its own. TableQueue after
// its conversion by the article "Replacing a queue".

import Daybook
import DaybookTestKit
import Foundation
import GRDB

// Replacing-1 begins
/// Records the changes that the old queue has not sent, and drops its table. A row's key becomes the event's id: after
/// a kill in between, the rows that the log has are not recorded again.
func takeOver(_ database: DatabaseQueue, into store: EventStore) async throws {
    let rows = try await database.read { db in
        try db.tableExists("pendingMutation") ? PendingMutation.order(sql: "id").fetchAll(db) : []
    }
    let drafts = try rows.map { row in
        let id = UUID(uuidString: row.key) ?? EventDraft.derivedID(from: "mutation:\(row.key)")
        return try EventDraft(ChangeMade(change: row.change), id: id)
    }
    try await store.append(contentsOf: drafts)
    try await database.write { db in try db.execute(sql: "DROP TABLE IF EXISTS pendingMutation") }
}
// Replacing-1 ends

actor RequestQueue: OfflineQueue {
    private let api: ScriptedAPI
    private var files = InMemoryFileSystem()
    private var condition = StorageCondition.normal
    private var user = "alice"
    private(set) var store: EventStore?

    init(sendingTo api: ScriptedAPI) async throws {
        self.api = api
        try await open()
    }

    private func open() async throws {
        store = nil
        store = try await EventStore.open(
            at: URL(filePath: "/\(user)"), account: user,
            rules: [
                .of(ChangeMade.self, action: "CHANGE") { made, context in
                    // As the old queue sent it, in upper case: the server knows some of these keys.
                    let key = context.event.id.uuidString
                    return try APIRequest(
                        .post, "changes", headers: ["Idempotency-Key": key], json: made.change)
                }
            ],
            environment: api.clock.environment(fileSystem: files, seed: 1))
    }

    private struct NotOpen: Error {}

    private func opened() throws -> EventStore {
        guard let store else { throw NotOpen() }
        return store
    }

    func enqueue(_ change: TrialChange) async throws {
        try await opened().append(ChangeMade(change: change))
    }

    func run(after signal: QueueSignal) async {
        guard let store, let base = URL(string: "https://api.example.com"),
            let transport = try? RequestTransport(
                store, api: "changes", at: base, key: .inRequest,
                promise: .once(keysKeptFor: nil), client: ScriptedClient(api: api),
                // The API refuses under 200.
                verdict: { $0.status == 200 && $0.text.contains("error") ? .rejected() : nil })
        else { return }
        let clock = api.clock
        let replayer = Replayer(store, transport: transport, credentials: BearerToken(user)) {
            clock.advance(by: $0)
        }
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
}

/// Sends a request to the scripted API.
private struct ScriptedClient: APIClient {
    let api: ScriptedAPI

    func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
        let change = try JSONDecoder().decode(TrialChange.self, from: Data(request.body ?? []))
        let key = request.fields.first { $0.name == "Idempotency-Key" }?.value
        let reply = try await api.send(change, key: key, user: token ?? "")
        return APIAnswer(
            status: reply.status, headers: reply.headers, body: Array(reply.body.utf8))
    }
}

extension APIAnswer {
    fileprivate var text: String { String(decoding: body, as: UTF8.self) }
}
