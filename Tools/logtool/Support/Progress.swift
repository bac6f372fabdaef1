// Progress of long work on stderr: on a terminal a bar that renews itself, elsewhere now and then a
// plain line, nothing for work that is over at once. Spec/operations/logtool.md, TOOL-12.

import Foundation
import Synchronization

final class Progress: Sendable {
    /// What the work is measured by.
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

    /// - Parameter unit: what `update` counts; nil if there are only bytes.
    init(_ verb: String, unit: String? = "events", of total: Total? = nil) {
        self.verb = verb
        self.unit = unit
        self.total = total
    }

    /// Says how many items are done, and how many bytes if the work is measured by them and nobody
    /// adds them up. May be called often.
    func update(_ count: Int, bytes: Int? = nil) {
        state.withLock { state in
            state.count = count
            if let bytes { state.bytes = bytes }
            show(&state)
        }
    }

    /// Says that so many more bytes are done. May be called often.
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
