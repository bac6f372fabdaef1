// The search for events that a following device misses or has twice.

import ArgumentParser
import SyncHistories

/// Runs histories of devices that follow their account while their streams break.
struct Streams: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Devices that follow their account while their streams break.")
    @OptionGroup var options: SoakOptions
    @Option(help: "Number of streams that break in a history.")
    var cuts = 2_000

    func run() async throws {
        try await SoakRun(options, isTimed: true).run { job in
            var seed = job.seed
            while !job.isOver {
                job.counts.add(try await StreamHistory(cuts: cuts, seed: seed).run())
                job.counts.add(["histories": 1])
                seed &+= 1
            }
        }
    }
}
