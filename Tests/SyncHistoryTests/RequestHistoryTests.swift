// A fixed number of histories of requests to an app's own API; `Tools/soak requests` runs many more.

import DaybookTestKit
import RequestHistories
import TestSupport
import Testing

@Suite struct RequestHistoryTests {
    @Test(.verifies("REQ-3", "REQ-4", "REQ-5", "REQ-8", "REQ-11"))
    func `each change takes effect as often as promised, with numbers that the API has told`()
        async throws
    {
        try await Property.check(
            "request histories", runs: 300, covering: RequestHistory.labels
        ) { choices in
            try await RequestHistory.run(&choices)
        }
    }

    @Test(arguments: [PlaceRules.Mistake.guessesNumbers, .assumesKeys])
    func `a mistake of the app is found`(_ mistake: PlaceRules.Mistake) async throws {
        await #expect(throws: RequestFailure.self) {
            for seed in 0..<200 as Range<UInt64> {
                var choices = Choices(seed: seed)
                try await RequestHistory.run(&choices, mistake: mistake)
            }
        }
    }
}
