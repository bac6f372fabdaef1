// A library of assets, read beside SQLite. One run, not a search on all cores.

import ArgumentParser
import AssetReads
import DaybookTestKit
import Foundation

/// What reads of a library take, beside SQLite.
struct Assets: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "What reads of a library of photos take, beside SQLite with the same indexes.",
        discussion: """
            Puts the same assets into a store and into a database, reads both in turn and compares \
            the answers. Prints medians, memory, and the times of folding and opening. Exits with \
            1 if a read is slower than SQLite's or the answers differ.
            """)
    @Option(help: "Assets of the library.")
    var assets = 100_000
    @Option(help: "Users whose they are.")
    var owners = 10
    @Option(help: "How often each read is measured.")
    var rounds = 15
    @Option(help: "Where chance begins.")
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
        reads.say = tell
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let report = try await reads.run(in: folder.url)
        print(report)
        guard report.slower.isEmpty else {
            tell("slower than SQLite: \(report.slower.joined(separator: ", "))")
            throw ExitCode(1)
        }
    }
}
