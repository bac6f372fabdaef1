// Progress of long work on stderr: on a terminal a bar that is redrawn, otherwise a plain line every
// 5 s, nothing for work that ends sooner. Spec/operations/logtool.md, TOOL-12.

import Foundation
import Synchronization

final class Progress: Sendable {
    /// The total amount of work.
    enum Total {
        case items(Int)
        case bytes(Int)
    }

    private struct State {
        let started = ContinuousClock.now
        var shown: ContinuousClock.Instant?
        var isOpen = false
        var count = 0
        var bytes = 0
    }

    private let verb: String
    private let unit: String?
    private let total: Total?
    private let isTerminal = Terminal.canRedraw(STDERR_FILENO)
    private let state = Mutex(State())

    /// - Parameter unit: the unit of `update`'s count; nil if only bytes are counted.
    init(_ verb: String, unit: String? = "events", of total: Total? = nil) {
        self.verb = verb
        self.unit = unit
        self.total = total
    }

    /// Sets the number of items done, and of bytes if `add(bytes:)` is not used. May be called often.
    func update(_ count: Int, bytes: Int? = nil) {
        state.withLock { state in
            state.count = count
            if let bytes { state.bytes = bytes }
            show(&state)
        }
    }

    /// Adds to the number of bytes done. May be called often.
    func add(bytes: Int) {
        state.withLock { state in
            state.bytes += bytes
            show(&state)
        }
    }

    private func show(_ state: inout State) {
        let now = ContinuousClock.now
        let pause: Duration = isTerminal ? .milliseconds(200) : .seconds(5)
        guard now - (state.shown ?? state.started) >= pause else { return }
        state.shown = now
        let text = ProgressText(
            verb: verb, unit: unit, count: unit == nil ? state.bytes : state.count,
            share: share(state),
            secondsElapsed: (now - state.started) / .seconds(1))
        guard isTerminal else { return Message.note(text.line) }
        state.isOpen = true
        let columns = Terminal.columns(STDERR_FILENO) - 1
        Message.write("\r\u{1B}[K" + text.bar(columns: columns, isUTF8: Terminal.isUTF8))
    }

    private func share(_ state: State) -> Double? {
        switch total {
        case .items(let total)? where total > 0: min(1, Double(state.count) / Double(total))
        case .bytes(let total)? where total > 0: min(1, Double(state.bytes) / Double(total))
        default: nil
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
