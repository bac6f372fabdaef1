// Notes events of a view's own types that the view could not decode. A view that decodes with `try?` leaves such an
// event out, and nothing else says so: a member was added or renamed, or a newer release has another case.

import Synchronization

/// The number of failed readings by event type.
final class UnreadableEvents: Sendable {
    /// The notes of the store whose views fold on this thread.
    @TaskLocal static var current: UnreadableEvents?

    private struct State {
        var counts: [String: Int] = [:]
        /// The first errors of types of which nothing was reported yet.
        var news: [EventError] = []
    }

    private let state = Mutex(State())

    /// The number of failures by type.
    var byType: [String: Int] { state.withLock { $0.counts } }

    /// Counts an event that a view could not decode.
    func note(_ error: EventError, ofType type: String) {
        state.withLock { state in
            if state.counts[type] == nil { state.news.append(error) }
            state.counts[type, default: 0] += 1
        }
    }

    /// The first error of each type that was not reported yet.
    func takeNews() -> [EventError] {
        state.withLock { state in
            defer { state.news = [] }
            return state.news
        }
    }
}
