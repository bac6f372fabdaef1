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

    /// Notes that a call waits for the store's queue. O(1); for the first call that waits for a closure, a task.
    func noteWaiter() {
        let closure = state.withLock { state -> UInt64? in
            guard let running = state.running, state.watched < running else { return nil }
            state.watched = running
            return running
        }
        guard let closure else { return }
        Task { [weak self, sleep] in
            do { try await sleep(Self.timeout) } catch { return }
            self?.report(closure)
        }
    }

    private func report(_ closure: UInt64) {
        guard state.withLock({ $0.running == closure }) else { return }
        instruments.logger.warning(
            """
            a closure of write(_:) has run for \(Self.timeout.components.seconds) s while another call waits for the \
            store; it must not wait for a call of the same store, which runs after it
            """)
    }
}
