// The searches for changes that an app's own API gets never, or more often than promised.

import ArgumentParser
import DaybookTestKit
import Foundation
import RequestHistories

/// Simulates a device, a network and an API.
struct Requests: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Requests to an app's own API: lost, late and doubled; kills and power cuts.")
    @OptionGroup var options: SoakOptions
    @Option(help: "Number of histories of each job; overrides '--minutes'.")
    var histories: Int?

    func run() async throws {
        let histories = histories
        try await SoakRun(options, isTimed: histories == nil).run { job in
            guard let histories else {
                return try await job.checkHistories("requests") {
                    try await RequestHistory.run(&$0)
                }
            }
            try await Property.check("histories of requests", runs: histories, seed: job.seed) {
                try await RequestHistory.run(&$0)
                job.counts.add($0.counts)
                job.counts.add(["histories": 1])
            }
        }
    }
}
