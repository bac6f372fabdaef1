// The network between the device and the API, which fails as the choices say, and the kill of the app at a moment at
// which the API has a request.

import DaybookTestKit
import Foundation
import Replay
import Synchronization

/// What happens to each request.
final class SimulatedConnection: Sendable {
    private struct State {
        var choices: Choices
        var files: SimulatedFileSystem
        var isReliable = false
        /// True from a kill to the next start of the app.
        var isDead = false
        var killed: SimulatedFileSystem?
    }

    private let state: Mutex<State>
    /// Whether a request may arrive after later ones.
    private let mayBeLate: Bool

    init(_ choices: Choices, _ files: SimulatedFileSystem, mayBeLate: Bool) {
        state = Mutex(State(choices: choices, files: files))
        self.mayBeLate = mayBeLate
    }

    var choices: Choices { state.withLock { $0.choices } }

    func draw<Value: Sendable>(_ body: (inout Choices) -> Value) -> Value {
        state.withLock { body(&$0.choices) }
    }

    func count(_ label: String, by number: Int = 1) {
        state.withLock { $0.choices.count(label, by: number) }
    }

    /// Ends all faults.
    func becomeReliable() { state.withLock { $0.isReliable = true } }

    /// The files at the moment of a kill; nil if there was none.
    var killed: SimulatedFileSystem? { state.withLock { $0.killed } }

    /// The app runs again.
    func restart(on files: SimulatedFileSystem) {
        state.withLock { ($0.files, $0.isDead, $0.killed) = (files, false, nil) }
    }

    func nextFate() -> SimulatedPlaces.Fate {
        state.withLock { state in
            guard !state.isDead else { return .dead }
            guard !state.isReliable else { return .answered }
            switch state.choices.int(in: 0...15) {
            case 8: return .lostRequest
            case 9, 10:
                state.choices.count("lost answers")
                return .lostAnswer
            case 11:
                state.choices.count("kills")
                state.isDead = true
                state.killed = state.files.afterKill()
                return .killed
            case 12 where mayBeLate:
                state.choices.count("late requests")
                return .late
            case 13: return .instead(state.choices.bool() ? .page(404) : .page(200))
            case 14:
                return .instead(.json([403, 408, 425, 429][state.choices.int(in: 0...3)], "{}"))
            case 15:
                return .instead(.json([409, 500, 502, 503][state.choices.int(in: 0...3)], "{}"))
            default: return .answered
            }
        }
    }
}
