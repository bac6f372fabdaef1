// The limits of the sync protocol that its client and its server share. Spec/protocol/sync-protocol.md, SYNC-6,
// SYNC-7, SYNC-13 and SYNC-34.

import EventSourcing

/// The limits of batches and pages.
package enum WireLimits {
    /// The most events of a batch, and of a page.
    package static let events = 500
    /// The most bytes of the lines of a batch. A page ends after so many bytes of lines.
    package static let lineBytes = 1024 * 1024
    /// The most bytes of the body of a batch: its lines, and the brackets and commas around them.
    package static let bodyBytes = lineBytes + 64 * 1024
    /// The most bytes of an event as it is sent: at least what any release of the library records.
    package static let eventBytes = EventCatalogue.shippedBytesMax
}
