// Histories of client, network and server, a bounded number of them; long runs do the same ones by
// the hundred thousand. Spec/protocol/sync-simulation.md.

import DaybookTestKit
import SyncHistories
import TestSupport
import Testing

@Suite struct SyncHistoryTests {
    @Test func `the same choices make the same history`() async throws {
        // Two servers: nothing of an earlier history may show in a later one.
        let (one, other) = (try SyncHistories(), try SyncHistories())
        try await one.run(seed: 1)
        for seed in 10..<25 as Range<UInt64> {
            #expect(try await one.run(seed: seed) == other.run(seed: seed))
        }
    }

    @Test func `nothing is settled that the server does not hold, whatever happens`() async throws {
        let histories = try SyncHistories()
        try await Property.check(
            "sync histories", runs: 250,
            covering: SyncHistories.labels.filter { !SyncHistories.rareLabels.contains($0) }
        ) { choices in
            try await histories.run(&choices)
        }
    }
}

extension SyncHistories {
    /// One history of a seed.
    @discardableResult
    fileprivate func run(seed: UInt64) async throws -> [UInt64] {
        var choices = Choices(seed: seed)
        let hash = try await run(&choices)
        return [hash] + choices.recorded
    }
}
