// The search for wrong rows of projections in SQLite.

import ArgumentParser
import DaybookTestKit
import Foundation
import RowHistories

/// Simulates a log and a database with projections, whose process dies.
struct Rows: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Rows of projections: kills and power cuts at every write of log and database.")
    @OptionGroup var options: SoakOptions

    func run() async throws {
        try await SoakRun(options, isTimed: true).run { job in
            try await job.checkHistories("rows") { try await RowHistory.run(&$0) }
        }
    }
}

/// Kills a real process that follows a log with rows.
struct KillRows: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "row-kills",
        abstract: "Rows of projections: a real process is killed at random moments.",
        discussion: """
            The process appends events and follows them with rows in a database, through a pool and \
            a queue in turn. After each kill the log must have every acknowledged event, and the \
            rows must be those of its events. Now and then the database is full, deleted or \
            replaced by an older copy.
            """)
    @Option(help: "Number of kills.")
    var kills = 500
    @Option(help: "Seed of the events and the moments of kills.")
    var seed = Property.defaultSeed

    func validate() throws {
        guard kills > 0 else { throw ValidationError("'--kills' must be more than 0.") }
    }

    func run() async throws {
        let search = RowKills(
            URL(filePath: CommandLine.arguments[0]), ["follow-rows"], kills: kills, seed: seed,
            progress: printToStandardError)
        do {
            for (label, count) in try await search.run().sorted(by: { $0.key < $1.key }) {
                print("\(label): \(count)")
            }
        } catch let failure as RowHistoryFailure {
            printToStandardError("\(failure)")
            throw ExitCode(1)
        }
    }
}

/// The process that is killed.
struct FollowRows: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Appends events and follows them; started and killed by 'row-kills'.",
        shouldDisplay: false)
    @Argument(help: "The folder of the log and the database.")
    var folder: String
    @Argument(help: "'pool' or 'queue'.")
    var connections: String
    @Argument(help: "The version of the projection.")
    var version: Int
    @Argument(help: "The number of pages that the database may grow by, or '-'.")
    var pages: String
    @Argument(help: "The seed of the events.")
    var seed: UInt64

    func run() async throws {
        let child = RowChild(
            folder: folder, usesPool: connections == "pool", version: version,
            morePages: Int(pages), seed: seed)
        do { try await child.run() } catch {
            printToStandardError("\(error)")
            throw ExitCode(1)
        }
    }
}
