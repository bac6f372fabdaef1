// The command that compares the replayer's rate with a plain client's. One run, not a search on all cores.

import ArgumentParser
import Foundation
import WireHistories

/// Measures the rate of shipping.
struct Shipping: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compares the rate of shipping with a plain client that posts the same bytes.",
        discussion: """
            Both post in turn to a server on this machine that replies 'applied' to every event. \
            Exits with 1 if the median of the ratios is below 0.7, or if the log's records of the \
            verdicts take more than 1 % of the shipped bytes.
            """)
    @Option(help: "Number of events in the log.")
    var events = 200_000
    @Option(help: "Number of measurements of each client.")
    var rounds = 5
    @Option(help: "Number of concurrent requests.")
    var requests = 2

    func validate() throws {
        guard events > 0, rounds > 0, requests > 0 else {
            throw ValidationError("'--events', '--rounds', '--requests' must be more than 0.")
        }
    }

    func run() async throws {
        let race = ShippingRace(
            events: events, rounds: rounds, requests: requests, progress: printToStandardError)
        let result = try await race.run()
        print(result)
        guard result.ratio >= 0.7, result.recordShare <= 0.01 else { throw ExitCode(1) }
    }
}
