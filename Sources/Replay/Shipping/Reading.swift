// The machine that reads the account's events page by page. G1 to G7 of Spec/protocol/replay.md.

import Foundation
import LogFormat
import SyncWire

/// The reading of the account's events.
///
/// | state | next | by |
/// |---|---|---|
/// | idle | reading | a read is due, a demand, the end of a stream |
/// | reading | reading | G1; G2 and G7 once, from the first page |
/// | reading | idle | the last page, G3, G4, G6 |
///
/// The position of the reading is the cursor on record, or the one after the pages without a new event that
/// were read since.
struct Reading: Sendable {
    enum Effect {
        /// Report this message.
        case report(String)
        /// Ship again what the restored server may lack.
        case recover(ServerRestore)
    }

    private struct Pages {
        var cursor: String?
        /// True if the server refused the cursor and reading began again at the beginning.
        var isRestarted = false
        /// XXH64 hashes of the `next` cursors since the last page with a new event. A collision only ends
        /// reading early.
        var staleCursors: Set<UInt64> = []
    }

    private enum State {
        case idle
        case reading(Pages)
    }

    private var state = State.idle
    /// True while events of the account are to be read and not all of them were.
    private(set) var isBehind = false
    /// The cursor after pages without a new event: it is recorded when reading ends.
    private(set) var unrecordedCursor: String?
    /// The time of the next periodic read.
    private(set) var nextRead: Int64?
    private var plannedAt = Int64.min
    /// The number of pushed events since the cursor was recorded.
    private var pushedSinceRecord = 0

    /// The number of pages in a row without a new event after which reading ends until the next read. Such
    /// pages are legitimate: the server sends what this log has shipped, up to 500 events a page.
    static let stalePagesMax = 10_000
    /// The number of pushed events that the log had already after which the cursor is recorded.
    private static let pushedWithoutRecordMax = 500

    // MARK: The pages

    /// Whether a page is to be read.
    var isReading: Bool { if case .reading = state { true } else { false } }

    /// The cursor of the next page; nil for the first one.
    var cursor: String? { if case .reading(let pages) = state { pages.cursor } else { nil } }

    /// Begins to read after a cursor; nil is the beginning. Does nothing if pages are being read.
    mutating func begin(after cursor: String?) {
        if !isReading { state = .reading(Pages(cursor: cursor)) }
    }

    /// G4, G3: ends reading until the next read.
    mutating func end() { state = .idle }

    /// G7: reads from the first page, because the server was restored.
    mutating func readFromStart() {
        unrecordedCursor = nil
        state = .reading(Pages(cursor: nil, isRestarted: true))
    }

    /// G2, G3, G7: handles an answer that is no page.
    mutating func handleRefusal(_ reply: TransportReply, to cursor: String?) -> [Effect] {
        let mayRestart =
            if case .reading(let pages) = state { cursor != nil && !pages.isRestarted } else {
                false
            }
        if reply.status == 400, let restore = reply.restore,
            mayRestart || restore.otherServer != nil
        {  // G7
            return [.recover(restore)]
        }
        if mayRestart {
            if [400, 404, 410, 422].contains(reply.status) {  // G2
                state = .reading(Pages(cursor: nil, isRestarted: true))
                return [.report("the server does not know the cursor; reading from the start")]
            }
        }
        state = .idle  // G3
        let reason = ReplayState.Pause.endpoint(status: reply.status).message
        return [.report("the server's events cannot be read: \(reason)")]
    }

    /// Continues after a page that was recorded, unless it was the last. G6: reading also ends if pages without
    /// new events form a cycle, or too many of them come in a row.
    ///
    /// - Returns: the reason why reading ends by G6; nil if it does not.
    mutating func pageRecorded(next: String?, isLast: Bool, hasNew: Bool) -> String? {
        var pages = if case .reading(let pages) = state { pages } else { Pages() }
        state = .idle
        guard !isLast, let next else { return nil }
        pages.cursor = next
        if hasNew { pages.staleCursors = [] }
        let hash = XXH64.hash(Array(next.utf8).span.bytes)
        guard pages.staleCursors.insert(hash).inserted else {
            return "the server's pages of events form a cycle"
        }
        guard pages.staleCursors.count <= Self.stalePagesMax else {
            return "the server's last \(Self.stalePagesMax) pages of events have no new event"
        }
        state = .reading(pages)
        return nil
    }

    // MARK: The cursor

    /// A page with a next cursor was read, and the cursor is not recorded yet.
    mutating func advance(to cursor: String) { unrecordedCursor = cursor }

    /// The cursor was recorded with the events before it, or is being recorded.
    mutating func cursorRecorded() { unrecordedCursor = nil }

    /// Counts pushed events whose page was recorded.
    ///
    /// - Returns: true if the cursor is to be recorded now.
    mutating func countPushed(_ count: Int) -> Bool {
        pushedSinceRecord = unrecordedCursor == nil ? 0 : pushedSinceRecord + count
        guard pushedSinceRecord >= Self.pushedWithoutRecordMax else { return false }
        pushedSinceRecord = 0
        return true
    }

    // MARK: The schedule

    /// Whether a planned read is due. Before the time at which it was planned, the clock has stepped back.
    func isDue(now: Int64) -> Bool {
        nextRead.map { $0 <= now || now < plannedAt } ?? false
    }

    /// Starts to read the pages after the cursor, and plans the next read.
    ///
    /// - Parameter recorded: the cursor on record.
    mutating func start(after recorded: String?, nextIn milliseconds: Int64?, now: Int64) {
        isBehind = true
        begin(after: unrecordedCursor ?? recorded)
        plan(at: milliseconds.map { now + $0 }, now: now)
    }

    /// Plans the next read; nil plans none.
    mutating func plan(at time: Int64?, now: Int64) { (nextRead, plannedAt) = (time, now) }

    /// Events may have been missed: no stream is opened before all were read.
    mutating func fellBehind() { isBehind = true }

    /// All events were read.
    mutating func caughtUp() { isBehind = false }
}
