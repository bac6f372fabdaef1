// A few connections for many requests: lent to one at a time, opened as they are needed. Between
// PostgreSQLEventStorage and PostgreSQLConnection.

import DequeModule
import SyncServerStorage
import Synchronization

/// Connections to one database.
final class PostgreSQLPool: Sendable {
    /// Connections at most.
    static let connectionsMax = 10
    /// Requests that may wait for one.
    static let waitingMax = 1_000
    /// How long a request waits before it is told to come again.
    static let waitMax = Duration.seconds(10)

    private struct Waiter {
        let number: Int
        let continuation: CheckedContinuation<PostgreSQLConnection, any Error>
    }

    private struct State {
        var idle: [PostgreSQLConnection] = []
        var opened = 0
        var asked = 0
        var waiting: Deque<Waiter> = []
        var isClosed = false
    }

    private let location: PostgreSQLLocation
    private let state = Mutex(State())

    init(_ location: PostgreSQLLocation) { self.location = location }

    /// Lends a connection as long as a closure runs.
    ///
    /// - Throws: `StorageError` if none becomes free; what the closure throws.
    func withConnection<Result: Sendable>(
        _ body: (PostgreSQLConnection) async throws -> Result
    ) async throws -> Result {
        let connection = try await borrow()
        do {
            let result = try await body(connection)
            giveBack(connection)
            return result
        } catch {
            giveBack(connection)
            throw error
        }
    }

    /// Lends no more. Connections are closed as they come back.
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
            var number = 0
            let answer: Result<PostgreSQLConnection, any Error>? = state.withLock { state in
                if state.isClosed { return .failure(Self.closed) }
                if let connection = state.idle.popLast() { return .success(connection) }
                if state.opened < Self.connectionsMax {
                    state.opened += 1
                    return .success(PostgreSQLConnection(location))
                }
                guard state.waiting.count < Self.waitingMax else { return .failure(Self.busy) }
                state.asked += 1
                number = state.asked
                state.waiting.append(Waiter(number: number, continuation: continuation))
                return nil
            }
            if let answer { return continuation.resume(with: answer) }
            Task { [weak self, number] in
                try await Task.sleep(for: Self.waitMax)
                self?.giveUp(number)
            }
        }
    }

    /// Tells a request to come again, if it still waits.
    private func giveUp(_ number: Int) {
        let waiter = state.withLock { state in
            // They stand in the order of their numbers, and this one is among the first.
            state.waiting.firstIndex { $0.number >= number }.flatMap { index in
                state.waiting[index].number == number ? state.waiting.remove(at: index) : nil
            }
        }
        waiter?.continuation.resume(throwing: Self.busy)
    }

    private func giveBack(_ connection: PostgreSQLConnection) {
        let next = state.withLock { state in
            let next = state.waiting.popFirst()
            if next == nil, !state.isClosed { state.idle.append(connection) }
            return next
        }
        next?.continuation.resume(returning: connection)
    }
}
