// Takes a posted batch apart: one JSON array, one element an event. The first step of an append;
// what follows is EventStorage. Spec/protocol/sync-protocol.md, SYNC-6 to SYNC-8.

import EventSourcing
import LogFormat

/// Why a batch was refused as a whole.
package enum BatchError: Error, Hashable, Sendable {
    /// The body is not a JSON array.
    case notAnArray(detail: String)
    /// An element, counted from 0, has no id by which it could be answered.
    case unusableID(index: Int)
    /// More events than a batch may have.
    case tooManyEvents
}

/// Reads posted batches.
package enum BatchReader {
    /// Events in one batch.
    package static let eventsMax = 500
    /// Bytes of a body: the 1 MiB of lines that a client may send, and room for what joins them.
    package static let bodyBytesMax = 1024 * 1024 + 64 * 1024

    /// Reads a batch.
    ///
    /// - Parameter now: the time of events that have none.
    package static func read(
        _ body: RawSpan, catalogue: EventCatalogue, now: Timestamp
    ) throws(BatchError) -> [ReceivedEvent] {
        var elements: [Range<Int>] = []
        var scanner = JSONScanner()
        do throws(JSONError) {
            guard scanner.peek(body) == UInt8(ascii: "[") else {
                throw scanner.fault("a batch is a JSON array")
            }
            try scanner.elements(body) { (scanner) throws(JSONError) in
                elements.append(try scanner.value(body, depth: 1))
            }
            try scanner.expectEnd(body)
        } catch {
            throw .notAnArray(detail: "\(error.detail) (byte \(error.offset + 1))")
        }
        guard elements.count <= eventsMax else { throw .tooManyEvents }
        var events: [ReceivedEvent] = []
        events.reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            guard
                let event = ReceivedEvent(
                    body.extracting(element), catalogue: catalogue, now: now)
            else { throw .unusableID(index: index) }
            events.append(event)
        }
        return events
    }
}
