// Sorting by identifiers gives what comparing them gives.

import DaybookTestKit
import EventSourcing
import TestSupport
import Testing

@Suite struct SortedByIDTests {
    @Test func `elements are in the order of their identifiers' bytes`() throws {
        try Property.check("sorted by id", runs: 500, covering: ["equal", "prefix"]) { choices in
            let start = choices.element(of: ["", "note-", "n", "é", "a\u{0}"])
            let ids = (0..<choices.int(in: 0...60)).map { _ in
                let letters = (0..<choices.int(in: 0...12)).map { _ in
                    choices.element(of: ["a", "b", "\u{0}", "ü", "7"])
                }
                return EntityID(start + letters.joined())
            }
            let sorted = ids.sorted(byID: { $0 })
            try #require(sorted == ids.sorted())
            for (one, other) in zip(sorted, sorted.dropFirst()) {
                if one == other { choices.count("equal") }
                if other.string.utf8.starts(with: one.string.utf8) { choices.count("prefix") }
            }
        }
    }
}
