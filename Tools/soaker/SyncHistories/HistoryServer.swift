// The real server's storage in a simulation: two replicas on one SQLite file; each history is a separate
// account. Requests are parsed and answered as by the real server, but without HTTP. A replica may die, fail,
// and be restarted.

import DaybookOffline
import DaybookTestKit
import EventSourcing
import Foundation
import GRDB
import Replay
import SyncServerStorage
import Synchronization

/// A server that histories use one after the other.
final class HistoryServer: Sendable {
    private struct State {
        var account = ""
        var token: String?
        var histories = 0
        var replicas: [SQLiteEventStorage] = []
        var isCalm = false
        /// The end of the last reading by the history's checks.
        var cursor: EventCursor?
    }

    static let labels = [
        "server: died before it looked", "server: died after the commit",
        "server: transaction failed", "server: started again", "server: token changed",
        "server: duplicate answered",
    ]

    /// The number of histories on one database. A new one is then created, so that it does not grow without
    /// bound.
    private static let historiesMax = 500

    private let folder: TemporaryFolder
    private let state = Mutex(State())
    /// Another connection to the database, which makes transactions fail.
    private let failureDatabase: Mutex<DatabaseQueue?> = Mutex(nil)
    private let catalogue = OfflineModel.catalogue

    init() throws {
        // In memory if possible: these histories do not test the server's disk.
        let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
        let parent =
            FileManager.default.isWritableFile(atPath: memory.path)
            ? memory : FileManager.default.temporaryDirectory
        folder = try TemporaryFolder(in: parent)
    }

    private func path(_ histories: Int) -> String {
        folder.appending("\(histories / Self.historiesMax).db").path
    }

    /// Begins a history with a new account, and now and then with a new database.
    func beginHistory(_ choices: SharedChoices) async throws {
        let number = state.withLock { $0.histories }
        if number % Self.historiesMax == 0 { try newDatabase(number) }
        state.withLock { state in
            state.histories += 1
            state.account = "account-\(number)"
            state.token = nil
            state.isCalm = false
            state.cursor = nil
        }
    }

    private func newDatabase(_ number: Int) throws {
        let old = state.withLock { state in
            defer { state.replicas = [] }
            return state.replicas
        }
        for replica in old { try replica.close() }
        try failureDatabase.withLock { failureDatabase in
            try failureDatabase?.close()
            failureDatabase = nil
        }
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            try FileManager.default.removeItem(at: folder.appending(name))
        }
        let path = path(number)
        let replicas = try (0..<2).map { _ in
            try SQLiteEventStorage(path: path, catalogue: catalogue)
        }
        state.withLock { $0.replicas = replicas }
        try failureDatabase.withLock { failureDatabase in
            let queue = try DatabaseQueue(path: path)
            try queue.write { db in
                try db.execute(
                    sql: """
                        CREATE TABLE simulated_failure (id BLOB PRIMARY KEY) STRICT;
                        CREATE TRIGGER simulated_failure BEFORE INSERT ON event
                        WHEN EXISTS (SELECT 1 FROM simulated_failure WHERE id = NEW.id)
                        BEGIN SELECT RAISE(ABORT, 'simulated'); END
                        """)
            }
            failureDatabase = queue
        }
    }

    // MARK: For the history

    /// Ends all faults.
    func calm() { state.withLock { $0.isCalm = true } }

    /// The valid token; nil accepts any.
    var token: String? { state.withLock { $0.token } }

    /// Makes a token the only valid one.
    func changeToken(to token: String) { state.withLock { $0.token = token } }

    /// The transports of the replicas.
    func replicas(_ choices: SharedChoices, _ clock: VirtualClock) -> [any Transport] {
        (0..<2).map { Replica(server: self, index: $0, choices: choices, clock: clock) }
    }

    /// Reads the server's events since the last call, in its order.
    func newLines() async throws -> [[UInt8]] {
        let state = state.withLock { $0 }
        var (lines, cursor): ([[UInt8]], EventCursor?) = ([], state.cursor)
        while true {
            let page = try await state.replicas[0].page(
                account: state.account, source: nil, after: cursor, limit: 500)
            cursor = page.next
            guard !page.lines.isEmpty else { break }
            lines += page.lines
        }
        self.state.withLock { [cursor] in $0.cursor = cursor }
        return lines
    }

    /// Makes the next `newLines()` begin at the first event.
    func resetReading() { state.withLock { $0.cursor = nil } }

    /// Stores events of another device of the account.
    func appendFromOtherDevice(_ lines: [[UInt8]]) async throws {
        let (account, replica) = state.withLock { ($0.account, $0.replicas[0]) }
        let body = JSONObjectWriter.array(lines)
        _ = try await replica.append(
            BatchReader.read(
                body.span.bytes, catalogue: catalogue, now: Timestamp(milliseconds: 0)),
            account: account)
    }

    // MARK: One replica

    private struct Replica: Transport {
        let server: HistoryServer
        let index: Int
        let choices: SharedChoices
        let clock: VirtualClock

        func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
            switch request {
            case .append(let batch):
                try await server.reply(toBatch: batch, token, index, choices, clock)
            case .read(let cursor):
                try await server.reply(toRead: cursor, token, index, choices, clock)
            }
        }

        func offer(
            _ batch: [UInt8], token: String?, account: String?
        ) async throws -> TransportReply {
            try await server.reply(toBatch: batch, isOffer: true, token, index, choices, clock)
        }
    }

    private struct Died: Error {}

    private func reply(
        toBatch body: [UInt8], isOffer: Bool = false, _ token: String?, _ index: Int,
        _ choices: SharedChoices, _ clock: VirtualClock
    ) async throws -> TransportReply {
        let state = state.withLock { $0 }
        let fate = choices.draw { state.isCalm ? 0 : $0.int(in: 0...29) }
        if fate == 1 {
            choices.count("server: died before it looked")
            throw Died()
        }
        guard state.token == nil || token == state.token else { return TransportReply(status: 401) }
        let batch: [ReceivedEvent]
        do throws(BatchError) {
            batch = try BatchReader.read(
                body.span.bytes, catalogue: catalogue,
                now: Timestamp(milliseconds: clock.milliseconds), isOffer: isOffer)
        } catch {
            if case .tooManyEvents = error { return TransportReply(status: 413) }
            return TransportReply(status: 400)
        }
        if fate == 2, let victim = choices.draw({ batch.isEmpty ? nil : $0.element(of: batch) }) {
            try failInsert(of: victim.id)
        }
        defer { if fate == 2 { try? stopFailingInserts() } }
        let verdicts: [SyncServerStorage.EventVerdict]
        do {
            verdicts = try await state.replicas[index].append(batch, account: state.account)
        } catch is StorageError {
            choices.count("server: transaction failed")
            return TransportReply(status: 503, retryAfterSeconds: 1)
        }
        choices.count(
            "server: duplicate answered", by: verdicts.count { $0.status == .duplicate })
        if fate == 3 {
            choices.count("server: died after the commit")
            if choices.draw({ $0.bool(oneIn: 8) }) {
                try restartReplica(index)
                choices.count("server: started again")
            }
            throw Died()
        }
        return TransportReply(
            status: 200, body: SyncServerStorage.EventVerdict.reply(verdicts),
            date: clock.milliseconds / 1_000 * 1_000)
    }

    /// The highest number of events on a page; low, so that a history has several pages.
    private static let pageMax = 7

    private func reply(
        toRead cursor: String?, _ token: String?, _ index: Int, _ choices: SharedChoices,
        _ clock: VirtualClock
    ) async throws -> TransportReply {
        let state = state.withLock { $0 }
        let fate = choices.draw { state.isCalm ? 0 : $0.int(in: 0...29) }
        if fate == 1 { throw Died() }
        guard state.token == nil || token == state.token else { return TransportReply(status: 401) }
        let start = cursor.map { EventCursor($0) } ?? EventCursor.start(bySource: false)
        guard let start, fate != 2 else { return TransportReply(status: 400) }
        let page = try await state.replicas[index].page(
            account: state.account, source: nil, after: start, limit: Self.pageMax)
        choices.count("server: page read")
        return TransportReply(
            status: 200, body: JSONObjectWriter.array(page.lines),
            date: clock.milliseconds / 1_000 * 1_000, next: page.next.text)
    }

    private func restartReplica(_ index: Int) throws {
        let (old, histories) = state.withLock { ($0.replicas[index], $0.histories - 1) }
        try old.close()
        let new = try SQLiteEventStorage(path: path(histories), catalogue: catalogue)
        state.withLock { $0.replicas[index] = new }
    }

    private func failInsert(of id: UUID) throws {
        try failureDatabase.withLock { failureDatabase in
            try failureDatabase?.write {
                try $0.execute(sql: "INSERT INTO simulated_failure VALUES (?)", arguments: [id])
            }
        }
    }

    private func stopFailingInserts() throws {
        try failureDatabase.withLock { failureDatabase in
            try failureDatabase?.write { try $0.execute(sql: "DELETE FROM simulated_failure") }
        }
    }
}
