// The events of a stream that are not recorded yet: between the transport's thread and the run, which
// dequeues them as pages. Spec/protocol/push.md, PUSH-13.

import DequeModule
import SyncWire
import Synchronization

/// Pushed events that wait for the run.
final class PushedEvents: Sendable {
    /// The largest number of bytes that wait. The run then reads pages instead, at its own pace.
    static let bytesMax = 4 * 1024 * 1024

    /// The result of an insertion.
    enum Insertion {
        /// No other event waits; the run must be signalled.
        case first
        case later
        /// Too many bytes wait, so the event was dropped.
        case full
    }

    private struct State {
        var events: Deque<(line: [UInt8], next: String)> = []
        var bytes = 0
        /// The cursor after the last event that was dequeued.
        var after: String?
    }

    private let state: Mutex<State>

    /// - Parameter cursor: the cursor after which the stream begins.
    init(after cursor: String?) { state = Mutex(State(after: cursor)) }

    /// Appends an event.
    func append(_ line: [UInt8], next: String) -> Insertion {
        state.withLock { state in
            let bytes = Self.bytes(of: line, next)
            guard state.bytes + bytes <= Self.bytesMax else { return .full }
            state.events.append((line, next))
            state.bytes += bytes
            return state.events.count == 1 ? .first : .later
        }
    }

    /// The memory of an event: an event without data costs its cursor and its place, too.
    private static func bytes(of line: [UInt8], _ next: String) -> Int {
        line.count + next.utf8.count + 64
    }

    /// Removes the oldest events.
    ///
    /// - Returns: a page of them; nil if there are none.
    func dequeuePage() -> ReplayState.Page? {
        state.withLock { state in
            guard let last = state.events.first else { return nil }
            var page = ReplayState.Page(body: [], after: state.after, next: last.next)
            var count = 0
            while count < WireLimits.events, page.body.count < WireLimits.lineBytes,
                let (line, next) = state.events.popFirst()
            {
                page.body.append(UInt8(ascii: count == 0 ? "[" : ","))
                page.body += line
                page.next = next
                state.bytes -= Self.bytes(of: line, next)
                count += 1
            }
            page.body.append(UInt8(ascii: "]"))
            state.after = page.next
            return page
        }
    }
}
