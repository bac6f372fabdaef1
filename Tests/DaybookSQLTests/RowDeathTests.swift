// A small share of the searches of `Tools/soak rows`: a process dies at operations of its log and its database.

import DaybookTestKit
import RowHistories
import TestSupport
import Testing

@Suite(.verifies("SQL-2", "SQL-4")) struct RowDeathTests {
    @Test func `after any death the rows are those of the log, each event once`() async throws {
        // The first two have some 480 deaths.
        let report = try await Property.check(
            "rows after deaths", runs: 2, covering: RowHistory.labels
        ) { choices in
            try await RowHistory.run(&choices)
        }
        #expect(report.counts["deaths", default: 0] > 100)
    }
}
