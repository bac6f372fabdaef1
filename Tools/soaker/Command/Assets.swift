// The command that compares reads of assets with SQLite. One run, not a search on all cores.

import ArgumentParser
import AssetReads
import DaybookTestKit
import Foundation

/// Compares the times of reads of a library with SQLite.
struct Assets: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compares reads of a library of photos with SQLite with the same indexes.",
        discussion: """
            Puts the same assets into a store and into a database, reads both in turn and compares \
            the answers. Prints medians, memory, and the times of folding and opening. Exits with \
            1 if a read is slower than SQLite's or the answers differ.
            """)
    @Option(help: "Number of assets in the library.")
    var assets = 100_000
    @Option(help: "Number of owners of the assets.")
    var owners = 10
    @Option(help: "Number of measurements of each read.")
    var rounds = 15
    @Option(help: "Seed of the random numbers.")
    var seed: UInt64 = 1

    func validate() throws {
        guard assets > 0, owners > 0, rounds > 0 else {
            throw ValidationError("'--assets', '--owners' and '--rounds' must be more than 0.")
        }
    }

    func run() async throws {
        var reads = AssetReads()
        (reads.assets, reads.owners) = (assets, owners)
        (reads.rounds, reads.seed) = (rounds, seed)
        reads.progress = printToStandardError
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let report = try await reads.run(in: folder.url)
        print(report)
        guard report.slower.isEmpty else {
            printToStandardError("slower than SQLite: \(report.slower.joined(separator: ", "))")
            throw ExitCode(1)
        }
    }
}
