// The replayer against a plain client that sends the same bytes, to a server that accepts everything. Row
// 8 of the table.

import WireHistories

/// The shipping row.
struct Shipping {
    let events: Int
    let turns: Int

    func measure() async throws -> RaceResult {
        let race = ShippingRace(events: events, rounds: turns, requests: 2) {
            reportProgress("shipping: \($0)")
        }
        let result = try await race.run()
        func costs(_ seconds: [Double]) -> [Double] {
            seconds.map { $0 * 1e6 / Double(result.events) }
        }
        return RaceResult(
            name: "shipping to a null server", unit: "µs an event",
            entries: [
                .init(name: RaceResult.ours, costs: costs(result.ours)),
                .init(name: "plain client", costs: costs(result.plain)),
            ], budgets: [.atMost(1 / 0.7, of: "plain client")])
    }
}
