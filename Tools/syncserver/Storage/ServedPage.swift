// One page of a pull, read by an EventStorage and sent as a reply or in a stream.
// Spec/protocol/sync-protocol.md, SYNC-34.

import SyncWire

/// Some events of an account and the cursors after them.
package struct ServedPage: Equatable, Sendable {
    /// The stored lines, without newlines.
    package private(set) var lines: [[UInt8]] = []
    /// The cursor after each line.
    package private(set) var cursors: [EventCursor] = []
    /// The bytes of all lines.
    package private(set) var bytes = 0
    /// The number of the account's events after the page in the server's order, if it has that order.
    package private(set) var remaining: Int?
    /// The cursor of the request.
    private let start: EventCursor

    /// Creates an empty page after a cursor.
    package init(after start: EventCursor) { self.start = start }

    /// Appends an event.
    package mutating func append(_ line: [UInt8], _ cursor: EventCursor) {
        lines.append(line)
        cursors.append(cursor)
        bytes += line.count
    }

    /// Sets the number of events after the page. The serials of an account's events have no gaps.
    ///
    /// - Parameter last: the account's last serial when the page was read.
    package mutating func setRemaining(until last: Int64) {
        guard case .serial(let serial) = next else { return }
        remaining = lines.isEmpty ? 0 : Int(max(0, last - serial))
    }

    /// The cursor after the last line; the cursor of the request if the page is empty.
    package var next: EventCursor { cursors.last ?? start }

    /// Whether it has so many events or bytes that more may follow.
    ///
    /// - Parameter limit: the most events.
    package func isFull(limit: Int) -> Bool {
        lines.count >= limit || bytes >= WireLimits.lineBytes
    }
}
