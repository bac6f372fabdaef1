// The whole public interface against a model of dictionaries and arrays: random histories of a store,
// compared after every step. The model and the histories are in Tools/soaker/StoreHistories.

import DaybookTestKit
import StoreHistories
import Testing

@Suite struct ModelTests {
    /// The choices of failures that were found and fixed.
    private static let regressions: [[UInt64]] = []

    /// The cases that all histories together must cover.
    private static let covered = [
        "append", "relaxed", "batch", "transaction", "sync", "compact", "reopen", "kill", "new",
        "known", "command refused", "past", "read back", "followed", "server: applied",
    ]

    @Test func `a store behaves like its model, whatever happens to it`() async throws {
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
