// One page of a pull. Comes from EventStorage, goes into the reply.
// Spec/protocol/sync-protocol.md, SYNC-34.

/// Some events of an account, and where to go on.
package struct EventPage: Equatable, Sendable {
    /// Bytes of lines after which a page takes no further event.
    package static let bytesTarget = 1024 * 1024

    /// The stored lines, without newlines.
    package var lines: [[UInt8]]
    /// Behind the last of them; where the page began if it is empty.
    package var next: EventCursor

    package init(lines: [[UInt8]], next: EventCursor) {
        self.lines = lines
        self.next = next
    }
}
