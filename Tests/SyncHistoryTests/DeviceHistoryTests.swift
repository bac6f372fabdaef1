// Several devices of one account, a bounded number of histories. Spec/protocol/sync-simulation.md.

import DaybookTestKit
import SyncHistories
import TestSupport
import Testing

@Suite struct DeviceHistoryTests {
    @Test func `any number of devices come to show the same, whatever happens to them`()
        async throws
    {
        let histories = try DeviceHistories()
        try await Property.check(
            "device histories", runs: 400, covering: DeviceHistories.labels
        ) { choices in
            try await histories.run(&choices)
        }
    }
}
