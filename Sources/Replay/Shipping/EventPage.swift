// Parses a page of the account's events from the server. Between the transport and the store.
// Spec/protocol/sync-protocol.md, SYNC-31.

import EventSourcing
import Foundation

/// The events of a page.
struct EventPage {
    private(set) var events: [ForeignEvent] = []
    private var sizes: [Int] = []
    /// The number of elements that are not events or contain a token.
    private(set) var unusable = 0

    /// The largest size in bytes of events that are recorded in one commit: far below the limit of a
    /// commit, because a line is longer than the event that the server sends.
    private static let commitBytesMax = 1024 * 1024

    /// Parses a JSON array. An element that is not an event is counted and skipped. O(bytes).
    ///
    /// - Parameter tokens: an event that contains one of them is unusable.
    /// - Returns: nil if the body is not a JSON array.
    init?(_ body: [UInt8], without tokens: SentTokens) {
        let text = body.span.bytes
        var ranges: [Range<Int>] = []
        do throws(JSONError) {
            // Two more levels than an event may have: an event that is too deep must not make the rest of the
            // page unreadable.
            var scanner = JSONScanner(levelsMax: JSONScanner.levelsMax + 2)
            guard scanner.peek(text) == UInt8(ascii: "[") else { return nil }
            try scanner.elements(text) { (scanner) throws(JSONError) in
                ranges.append(try scanner.value(text, depth: 1))
            }
            try scanner.expectEnd(text)
        } catch { return nil }
        let holdsToken = tokens.isFound(inJSON: text)
        for range in ranges {
            let element = text.extracting(range)
            if holdsToken, tokens.isFound(inJSON: element) {
                unusable += 1
            } else if let event = try? ForeignEvent(element) {
                events.append(event)
                sizes.append(range.count)
            } else {
                unusable += 1
            }
        }
    }

    /// Whether the page has no elements.
    var isEmpty: Bool { events.isEmpty && unusable == 0 }

    /// The events in slices that fit into one commit each.
    var commits: [ArraySlice<ForeignEvent>] {
        var parts: [ArraySlice<ForeignEvent>] = []
        var start = 0
        var bytes = 0
        for index in events.indices {
            if index > start, bytes + sizes[index] > Self.commitBytesMax {
                parts.append(events[start..<index])
                start = index
                bytes = 0
            }
            bytes += sizes[index]
        }
        if start < events.count { parts.append(events[start...]) }
        return parts
    }
}
