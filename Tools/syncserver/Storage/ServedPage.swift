// One page of a pull, read by an EventStorage and sent as a reply.
// Spec/protocol/sync-protocol.md, SYNC-34.

/// Some events of an account and the cursor after them.
package struct ServedPage: Equatable, Sendable {
    /// Bytes of lines after which a page ends.
    package static let bytesTarget = 1024 * 1024

    /// The stored lines, without newlines.
    package var lines: [[UInt8]]
    /// The cursor after the last line; the cursor of the request if the page is empty.
    package var next: EventCursor

    package init(lines: [[UInt8]], next: EventCursor) {
        self.lines = lines
        self.next = next
    }
}
