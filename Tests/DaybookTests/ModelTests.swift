// The whole public interface against a model of dictionaries and arrays: lives of a store at random,
// compared after every step. The model and the histories are in Tests/Histories.

import DaybookTestKit
import Histories
import Testing

@Suite struct ModelTests {
    /// Choices of failures that were found and mended.
    private static let regressions: [[UInt64]] = []

    /// What must have happened, in all lives together.
    private static let rare = [
        "new", "known", "refused: id-reused", "refused: not-json", "refused: bad-attribute",
        "refused: invalid-data", "command refused", "lone surrogate", "no future", "past",
        "read back", "followed", "unsynced", "server: applied", "server: rejected",
    ]

    @Test func `a store does what its model says, whatever happens in its life`() async throws {
        let operations = StoreHistory.Operation.allCases.map(\.rawValue)
        try await Property.check(
            "a store is its model", runs: 150, regressions: Self.regressions,
            covering: operations + Self.rare
        ) { choices in
            var history = try await StoreHistory(&choices)
            try await choices.run(&history, steps: 0...60)
            try await history.end()
            for (label, number) in history.counts { choices.count(label, by: number) }
        }
    }
}
