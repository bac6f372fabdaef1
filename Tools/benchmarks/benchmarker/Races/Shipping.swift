// The replayer against a plain client that sends the same bytes, to a server that accepts everything.

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
        func entry(_ name: String, _ turns: [ShippingRace.Turn]) -> RaceResult.Entry {
            let scale = 1e6 / Double(result.events)
            return RaceResult.Entry(
                name: name, costs: turns.map { $0.seconds * scale },
                processor: turns.map { $0.processorSeconds * scale })
        }
        return RaceResult(
            name: "shipping to a null server", unit: "µs an event",
            entries: [
                entry(RaceResult.ours, result.ours), entry("plain client", result.plain),
            ],
            budgets: [
                .atMost(1.3, of: "plain client"), .processorAtMost(1.5, of: "plain client"),
            ])
    }
}
