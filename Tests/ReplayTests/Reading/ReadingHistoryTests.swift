// A fixed number of histories of devices that read an app's own API; `Tools/soak reading` runs many more.

import DaybookTestKit
import RequestHistories
import TestSupport
import Testing

@Suite struct ReadingHistoryTests {
    @Test(.verifies("READ-3", "READ-4", "READ-5", "READ-6", "READ-7"))
    func
        `views are the API's state with the user's changes, whatever is lost and whenever the app is killed`()
        async throws
    {
        try await Property.check(
            "reading histories", runs: 200, covering: ReadingHistory.labels
        ) { choices in
            try await ReadingHistory.run(&choices)
        }
    }
}
