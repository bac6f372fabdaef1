// Four queues on trial: three as apps write them, and this store. The code of the article "Testing queues".

import DaybookTestKit
import Foundation
import Testing

@Suite struct QueueTrialTests {
    // trial begins
    @Test func theStoreLosesNothingInAnyWay() async {
        let report = await QueueTrial.run(StoreQueue.self)
        #expect(report.failed.isEmpty, "\(report)")
        #expect(report.notTried.isEmpty, "\(report)")
    }
    // trial ends

    @Test func `queues as apps write them fail where reports say so, and the article shows it`()
        async throws
    {
        let file = await QueueTrial.run(JSONFileQueue.self, name: "JSON file")
        #expect(
            file.failed == [
                .unreadableTakenForEmpty, .sendsOnEdgeOnly, .attemptsBurnt, .expiredSession,
                .proxyTakenForAPI, .bookkeepingFailed, .lostAtLogout, .deadLettersUnseen,
                .rejectedUnder200, .replayDoubles, .orderBroken,
            ], "\(file)")
        let settings = await QueueTrial.run(DefaultsQueue.self, name: "settings")
        #expect(
            settings.failed == [
                .memoryOnly, .unreadableTakenForEmpty, .strandedInFlight, .onePageDrained,
                .attemptsBurnt, .expiredSession, .timeOutTakenForFinal, .proxyTakenForAPI,
                .lostAtLogout, .deadLettersUnseen, .rejectedUnder200, .replayDoubles, .orderBroken,
            ], "\(settings)")
        let table = await QueueTrial.run(TableQueue.self, name: "GRDB table")
        #expect(
            table.failed == [
                .unreadableTakenForEmpty, .strandedInFlight, .onePageDrained, .proxyTakenForAPI,
                .lostAtLogout, .deadLettersUnseen, .poisonBlocks, .rejectedUnder200,
            ], "\(table)")
        // A way in which no queue fails would prove nothing.
        let detected = file.failed.union(settings.failed).union(table.failed)
        #expect(detected == Set(QueueTrial.allCases))

        let store = await QueueTrial.run(StoreQueue.self, name: "Daybook")
        let article = try String(
            contentsOf: URL(filePath: #filePath).appending(
                path: "../../../../Sources/Daybook/Daybook.docc/TestingQueues.md"
            ).standardizedFileURL, encoding: .utf8)
        let some = await QueueTrial.run(
            JSONFileQueue.self, name: "JSON file",
            trials: [.memoryOnly, .expiredSession, .bookkeepingFailed])
        for text in [QueueTrialReport.table([file, settings, table, store]), "\(some)"]
        where !article.contains(text) {
            Issue.record("not in the article:\n\(text)")
        }
    }
}
