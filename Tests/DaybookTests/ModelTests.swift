// The whole public interface against a model of dictionaries and arrays: lives of a store at random,
// compared after every step. The model and the histories are in Tools/soaker/StoreHistories.

import DaybookTestKit
import StoreHistories
import Testing

@Suite struct ModelTests {
    /// Choices of failures that were found and mended.
    private static let regressions: [[UInt64]] = []

    /// What must have happened, in all lives together.
    private static let covered = [
        "append", "relaxed", "batch", "transaction", "sync", "compact", "reopen", "kill", "new",
        "known", "command refused", "past", "read back", "followed", "server: applied",
    ]

    @Test func `a store does what its model says, whatever happens in its life`() async throws {
        try await Property.check(
            "a store is its model", runs: 40, regressions: Self.regressions,
            covering: Self.covered
        ) { choices in
            var history = try await StoreHistory(&choices)
            try await choices.run(&history, steps: 0...60)
            try await history.end()
            for (label, number) in history.counts { choices.count(label, by: number) }
        }
    }
}
