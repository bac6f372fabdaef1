// Devices, proxies and the real server together: a short run of `Tools/soak wire`.

import DaybookTestKit
import Foundation
import Testing
import WireHistories

@Suite struct WireTests {
    @Test func `devices behind hostile proxies and a killed server converge`()
        async throws
    {
        var options = WireHistory.Options()
        (options.events, options.kills, options.days) = (2_000, 3, 6)
        (options.dayMilliseconds, options.lifeMilliseconds) = (1_000, 1_200)
        options.timeoutMilliseconds = 1_000
        // Enough for most faults to happen, also on a slow machine.
        options.requests = 300
        let counts: [String: Int]
        do {
            counts = try await WireHistory(server: Tool.binary("syncserver"), options: options)
                .run()
        } catch {
            Issue.record("with the seed \(options.seed): \(error)")
            return
        }
        // A kind of event that did not happen was not tested.
        for label in ["server: kills", "devices: received", "devices: put back to a copy"] {
            #expect((counts[label] ?? 0) > 0, "\(label): \(counts)")
        }
        let faults = ProxyFault.allCases.filter { counts[$0.rawValue] != nil }
        #expect(faults.count > 6, "\(counts)")
        #expect((counts["server: events"] ?? 0) > 1_000)
    }

    @Test
    func `a replayer and a plain client ship the same bytes to a server that accepts everything`()
        async throws
    {
        let result = try await ShippingRace(events: 2_000, rounds: 1, requests: 2).run()
        #expect(result.events == 2_000)
        #expect(result.bytes > 400_000)
        #expect(result.recordShare < 0.05)
    }
}
