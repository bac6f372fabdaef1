// A fixed number of histories of several devices of one account. Spec/protocol/sync-simulation.md.

import DaybookTestKit
import SyncHistories
import TestSupport
import Testing

@Suite struct DeviceHistoryTests {
    @Test func `all devices show the same in the end, with any faults`()
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
