// A page of the account's events, as a server hands it out. Between the transport and the store.
// Spec/protocol/sync-protocol.md, SYNC-31.

import EventSourcing
import Foundation

/// The events of a page.
struct EventPage {
    private(set) var events: [ForeignEvent] = []
    private var sizes: [Int] = []
    /// Elements that are no events, or hold a token.
    private(set) var unusable = 0

    /// Bytes of events that are recorded together at most: far below what a commit holds, so that
    /// their lines fit whatever they gain.
    private static let commitBytesMax = 1024 * 1024

    /// Reads a JSON array. One element that is no event hides no other. O(bytes).
    ///
    /// - Parameter tokens: an event that holds one of them is unusable.
    /// - Returns: nil if it is no JSON array.
    init?(_ body: [UInt8], without tokens: SentTokens) {
        let text = body.span.bytes
        var ranges: [Range<Int>] = []
        do throws(JSONError) {
            // A server that took deeper events hides no others by them.
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

    /// Whether there is nothing on it.
    var isEmpty: Bool { events.isEmpty && unusable == 0 }

    /// The events in parts that fit a commit each.
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
