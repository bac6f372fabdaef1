// Parses a posted batch: a JSON array with one event in each element. An EventStorage applies the
// result. Spec/protocol/sync-protocol.md, SYNC-6 to SYNC-8.

import EventSourcing
import LogFormat
import SyncWire

/// The reason for refusing a whole batch.
package enum BatchError: Error, Hashable, Sendable {
    /// The body is not a JSON array.
    case notAnArray(detail: String)
    /// An element, counted from 0, has no usable id, so it cannot get a verdict.
    case unusableID(index: Int)
    /// More events than a batch may have.
    case tooManyEvents
}

/// A parser of posted batches.
package enum BatchReader {
    /// Parses a batch.
    ///
    /// - Parameters:
    ///   - now: the time for events without one.
    ///   - isOffer: whether another server, or this one before a restore, has accepted the events (SYNC-52).
    package static func read(
        _ body: RawSpan, catalogue: EventCatalogue, now: Timestamp, isOffer: Bool = false
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
        guard elements.count <= WireLimits.events else { throw .tooManyEvents }
        // On all cores if the batch is big: of the intake's processor time, reading events is the greatest part,
        // 41 % in batches of 500. Spec/decisions/0057-intake-of-the-server.md.
        let shares = elements.parallelShares { share in
            share.map { ReceivedEvent(body.extracting($0), catalogue: catalogue, now: now) }
        }
        var events: [ReceivedEvent] = []
        events.reserveCapacity(elements.count)
        for event in shares.joined() {
            guard let event else { throw .unusableID(index: events.count) }
            events.append(isOffer ? event.offered : event)
        }
        return events
    }
}
