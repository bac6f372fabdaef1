// Takes log lines to standard error on a thread of its own. If no process reads them there, they are
// dropped and counted: a log must not hold up the server. Used by JSONLogHandler.

import Dispatch
import StandardStreams
import Synchronization

/// Writes lines, in order, without making the caller wait.
final class LogWriter: Sendable {
    private struct State {
        var waiting = 0
        var lost = 0
    }

    /// Lines that may wait.
    private static let waitingMax = 1_000
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "log")

    /// Writes a line that ends with a newline.
    func write(_ line: [UInt8]) {
        let isTaken = state.withLock { state in
            guard state.waiting < Self.waitingMax else {
                state.lost += 1
                return false
            }
            state.waiting += 1
            return true
        }
        guard isTaken else { return }
        queue.async { [self] in
            Self.put(line)
            let lost = state.withLock { state in
                defer { state.lost = 0 }
                state.waiting -= 1
                return state.lost
            }
            if lost > 0 { Self.put(Array("{\"message\":\"lines lost\",\"count\":\(lost)}\n".utf8)) }
        }
    }

    /// Waits until all is written, for a second at most.
    func flush() {
        let done = DispatchSemaphore(value: 0)
        queue.async { done.signal() }
        _ = done.wait(timeout: .now() + 1)
    }

    /// One write a line. A line that cannot be written is lost: there is no other place to say so.
    private static func put(_ line: [UInt8]) {
        _ = StandardStream.error.write(line)
    }
}
