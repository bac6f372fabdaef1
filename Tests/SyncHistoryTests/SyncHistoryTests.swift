// Histories of client, network and server, a bounded number of them; long runs do the same ones by
// the hundred thousand. Spec/sync-simulation.md.

import DaybookTestKit
import SyncHistories
import TestSupport
import Testing

@Suite struct SyncHistoryTests {
    @Test func `nothing is settled that the server does not hold, whatever happens`() async throws {
        let histories = try SyncHistories()
        try await Property.check(
            "sync histories", runs: 300, covering: SyncHistories.labels
        ) { choices in
            try await histories.run(&choices)
        }
    }
}
