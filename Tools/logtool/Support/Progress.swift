// Progress of long work on stderr: a line that renews itself on a terminal, now and then a plain
// line elsewhere, nothing for work that is over at once.

import Foundation
import Synchronization

final class Progress: Sendable {
    private struct State {
        var started = ContinuousClock.now
        var shown: ContinuousClock.Instant?
        var isOpen = false
    }

    private let verb: String
    private let unit: String
    private let total: Int?
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let state = Mutex(State())

    init(_ verb: String, unit: String = "events", total: Int? = nil) {
        self.verb = verb
        self.unit = unit
        self.total = total
    }

    /// Says how far the work is. May be called often.
    func update(_ count: Int) {
        state.withLock { state in
            let now = ContinuousClock.now
            let pause: Duration = isTerminal ? .milliseconds(200) : .seconds(5)
            guard now - (state.shown ?? state.started) >= pause else { return }
            state.shown = now
            state.isOpen = isTerminal
            let elapsed = max((now - state.started) / .seconds(1), 0.001)
            let rate = Double(count) / elapsed
            var text = "\(verb) \(count)"
            if let total, total > 0 {
                text += " of \(total) (\(count * 100 / total) %)"
            }
            text += " \(unit), \(Int(rate))/s"
            if let total, rate > 0, count < total {
                text += ", \(Int(Double(total - count) / rate)) s left"
            }
            Message.write(isTerminal ? "\r\u{1B}[K\(text)" : "\(text)\n")
        }
    }

    /// Clears the line.
    func finish() {
        state.withLock { state in
            if state.isOpen { Message.write("\r\u{1B}[K") }
            state.isOpen = false
        }
    }
}
