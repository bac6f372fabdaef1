// A pool of connections, which are opened on demand and lent to one request at a time.

import DequeModule
import SyncServerStorage
import Synchronization

/// A pool of connections to one database.
final class PostgreSQLPool: Sendable {
    /// The most connections.
    static let connectionsMax = 10
    /// The most requests that wait for a connection.
    static let waitingMax = 1_000
    /// The longest wait of a request, which then fails.
    static let waitMax = Duration.seconds(10)

    private struct Waiter {
        let ticket: Int
        let continuation: CheckedContinuation<PostgreSQLConnection, any Error>
    }

    private struct State {
        var idle: [PostgreSQLConnection] = []
        var opened = 0
        var ticketsIssued = 0
        var waiting: Deque<Waiter> = []
        var isClosed = false
    }

    private let location: PostgreSQLLocation
    private let state = Mutex(State())

    init(_ location: PostgreSQLLocation) { self.location = location }

    /// Lends a connection to a closure.
    ///
    /// - Throws: `StorageError` if no connection becomes free; the closure's errors.
    func withConnection<Result: Sendable>(
        _ body: (PostgreSQLConnection) async throws -> Result
    ) async throws -> Result {
        let connection = try await borrow()
        do {
            let result = try await body(connection)
            putBack(connection)
            return result
        } catch {
            // The idle ones may lead to the same silent machine, and each would cost a request its time.
            if await connection.isLost { dropIdleConnections() }
            putBack(connection)
            throw error
        }
    }

    private func dropIdleConnections() {
        state.withLock { state in
            state.opened -= state.idle.count
            state.idle = []
        }
    }

    /// Closes the pool. Lent connections are closed when they are put back.
    func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            state.idle = []
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiter in waiting { waiter.continuation.resume(throwing: Self.closed) }
    }

    private static let closed = StorageError(.failed, "PostgreSQL: the storage is closed")
    private static let busy = StorageError(
        .failed, "PostgreSQL: all \(connectionsMax) connections are busy")

    private func borrow() async throws -> PostgreSQLConnection {
        try await withCheckedThrowingContinuation { continuation in
            var ticket = 0
            let answer: Result<PostgreSQLConnection, any Error>? = state.withLock { state in
                if state.isClosed { return .failure(Self.closed) }
                if let connection = state.idle.popLast() { return .success(connection) }
                if state.opened < Self.connectionsMax {
                    state.opened += 1
                    return .success(PostgreSQLConnection(location))
                }
                guard state.waiting.count < Self.waitingMax else { return .failure(Self.busy) }
                state.ticketsIssued += 1
                ticket = state.ticketsIssued
                state.waiting.append(Waiter(ticket: ticket, continuation: continuation))
                return nil
            }
            if let answer { return continuation.resume(with: answer) }
            Task { [weak self, ticket] in
                try await Task.sleep(for: Self.waitMax)
                self?.timeOut(ticket)
            }
        }
    }

    /// Fails a request with `busy`, if it still waits.
    private func timeOut(_ ticket: Int) {
        let waiter = state.withLock { state in
            // The queue is sorted by ticket, and this one is near its start.
            state.waiting.firstIndex { $0.ticket >= ticket }.flatMap { index in
                state.waiting[index].ticket == ticket ? state.waiting.remove(at: index) : nil
            }
        }
        waiter?.continuation.resume(throwing: Self.busy)
    }

    private func putBack(_ connection: PostgreSQLConnection) {
        let next = state.withLock { state in
            let next = state.waiting.popFirst()
            if next == nil, !state.isClosed { state.idle.append(connection) }
            return next
        }
        next?.continuation.resume(returning: connection)
    }
}
