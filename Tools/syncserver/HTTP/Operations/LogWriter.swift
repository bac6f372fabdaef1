// Writes log lines to standard error on a thread of its own. If standard error is not read, lines are
// dropped and counted: the log must not block the server.

import Dispatch
import StandardStreams
import Synchronization

/// Writes lines in order, without blocking the caller.
final class LogWriter: Sendable {
    private struct State {
        var waiting = 0
        var lost = 0
    }

    /// The most lines that wait.
    private static let waitingMax = 1_000
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "log")

    /// Writes a line that ends with a newline.
    func write(_ line: [UInt8]) {
        let isQueued = state.withLock { state in
            guard state.waiting < Self.waitingMax else {
                state.lost += 1
                return false
            }
            state.waiting += 1
            return true
        }
        guard isQueued else { return }
        queue.async { [self] in
            Self.writeLine(line)
            let lost = state.withLock { state in
                defer { state.lost = 0 }
                state.waiting -= 1
                return state.lost
            }
            if lost > 0 {
                Self.writeLine(Array("{\"message\":\"lines lost\",\"count\":\(lost)}\n".utf8))
            }
        }
    }

    /// Waits until all lines are written, for one second at most.
    func flush() {
        let done = DispatchSemaphore(value: 0)
        queue.async { done.signal() }
        _ = done.wait(timeout: .now() + 1)
    }

    /// Writes a line with one call. A failure is ignored: there is no other place to report it.
    private static func writeLine(_ line: [UInt8]) {
        _ = StandardStream.error.write(line)
    }
}
