// A fixed number of histories of a client, a network and the server; `Tools/soak sync` runs many more.
// Spec/protocol/sync-simulation.md.

import DaybookTestKit
import SyncHistories
import TestSupport
import Testing

@Suite struct SyncHistoryTests {
    @Test func `the same choices give the same history`() async throws {
        // Two servers, so that an earlier history cannot affect a later one.
        let (one, other) = (try SyncHistories(), try SyncHistories())
        try await one.run(seed: 1)
        for seed in 10..<25 as Range<UInt64> {
            #expect(try await one.run(seed: seed) == other.run(seed: seed))
        }
    }

    @Test func `no event is settled that the server does not have, with any faults`() async throws {
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
    /// Runs the history of a seed.
    @discardableResult
    fileprivate func run(seed: UInt64) async throws -> [UInt64] {
        var choices = Choices(seed: seed)
        let hash = try await run(&choices)
        return [hash] + choices.recorded
    }
}

@Suite(.timeLimit(.minutes(10))) struct StreamHistoryTests {
    @Test(
        .verifies("PUSH-10", "PUSH-12", "PUSH-14", "PUSH-16", "TRG-8"),
        arguments: [1, 2] as [UInt64])
    func `a device whose streams break again and again has each event once`(
        _ seed: UInt64
    ) async throws {
        let counts = try await StreamHistory(cuts: 60, seed: seed).run()
        #expect(counts["cut connections"] == 60)
    }
}
