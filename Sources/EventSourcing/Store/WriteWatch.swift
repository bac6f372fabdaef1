// Notices a closure of write(_:) that keeps the store's queue while other calls wait for it. If the closure waits
// for one of those calls, neither ever ends; without a log line an app only hangs.

import LogStorage
import Synchronization
import Telemetry

/// Watches the closures of `write(_:)` of one store.
final class WriteWatch: Sendable {
    private struct State {
        /// The number of the closure that runs; nil between closures.
        var running: UInt64?
        var last: UInt64 = 0
        /// The number of the last closure that a call has waited for.
        var watched: UInt64 = 0
        /// True while a task watches. One task watches all closures: under load, calls wait for thousands of
        /// closures a second, and a task for each of them would sleep for 2 s.
        var isWatching = false
    }

    private let state = Mutex(State())
    private let instruments: Instruments
    private let sleep: @Sendable (Duration) async throws -> Void

    /// How long a closure may run before a line is logged.
    private static let timeout = Duration.seconds(2)

    init(_ instruments: Instruments, _ environment: LogEnvironment) {
        self.instruments = instruments
        sleep = environment.sleep
    }

    /// Runs a closure of `write(_:)`.
    func run<Result>(_ body: () throws -> Result) rethrows -> Result {
        state.withLock { state in
            state.last += 1
            state.running = state.last
        }
        defer { state.withLock { $0.running = nil } }
        return try body()
    }

    /// Notes that a call waits for the store's queue. O(1); a task, if none watches.
    func noteWaiter() {
        let closure = state.withLock { state -> UInt64? in
            guard let running = state.running, state.watched < running else { return nil }
            state.watched = running
            guard !state.isWatching else { return nil }
            state.isWatching = true
            return running
        }
        guard let closure else { return }
        Task { [weak self, sleep] in
            var next: UInt64? = closure
            while let closure = next {
                do { try await sleep(Self.timeout) } catch { return }
                next = self?.report(closure)
            }
        }
    }

    /// Logs a line if a closure still runs. Ends the watch, unless a call waits for a later closure.
    ///
    /// - Returns: the number of the later closure.
    private func report(_ closure: UInt64) -> UInt64? {
        let (isRunning, next) = state.withLock { state -> (Bool, UInt64?) in
            var next: UInt64?
            if let running = state.running, running > closure, running == state.watched {
                next = running
            }
            state.isWatching = next != nil
            return (state.running == closure, next)
        }
        guard isRunning else { return next }
        instruments.logger.warning(
            """
            a closure of write(_:) has run for \(Self.timeout.components.seconds) s while another call waits for the \
            store; it must not wait for a call of the same store, which runs after it
            """)
        return next
    }
}
