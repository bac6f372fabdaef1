// The race of the replayer against a plain client. One run, not a search on all cores.

import ArgumentParser
import Foundation
import WireHistories

/// How fast the replayer ships.
struct Shipping: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "How fast a log is shipped, beside a plain client that posts the same bytes.",
        discussion: """
            Both post to a server on this machine that says 'applied' to everything; in turns. \
            Exits with 1 if the median of the ratios is below 0.7, or if the records of the log on \
            what was shipped take more than 1 % of it.
            """)
    @Option(help: "Events of the log.")
    var events = 200_000
    @Option(help: "How often each is timed.")
    var rounds = 5
    @Option(help: "Requests that are under way at the same time.")
    var requests = 2

    func validate() throws {
        guard events > 0, rounds > 0, requests > 0 else {
            throw ValidationError("'--events', '--rounds', '--requests' must be more than 0.")
        }
    }

    func run() async throws {
        let race = ShippingRace(events: events, rounds: rounds, requests: requests, say: tell)
        let result = try await race.run()
        print(result)
        guard result.ratio >= 0.7, result.recordShare <= 0.01 else { throw ExitCode(1) }
    }
}
