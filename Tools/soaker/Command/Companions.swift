// The searches for events of companions that are lost or doubled, and for processes that hold each other up.

import ArgumentParser
import CompanionKills
import DaybookTestKit
import Foundation

/// Searches histories of an owner and three companions that interrupt each other.
struct CompanionHistories: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "companions",
        abstract: "An owner and three companions: interrupted, stopped and killed at any call.")
    @OptionGroup var options: SoakOptions

    func run() async throws {
        try await SoakRun(options, isTimed: true).run { job in
            try await job.checkHistories("companions") { try await CompanionSearch.run(&$0) }
        }
    }
}

/// Stops and kills real processes.
struct KillCompanions: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "companion-kills",
        abstract: "An owner and companions as real processes, stopped and killed at random.",
        discussion: """
            A process that is stopped between its appends must hold no lock (/proc/locks), and one \
            that is stopped inside an append must hold up no other. In the end the log must have \
            every acknowledged event once, in each process's order. Only on Linux.
            """)
    @Option(help: "Duration in minutes.")
    var minutes: Double = 1
    @Option(help: "Number of companions.")
    var companions = 15
    @Option(help: "Seed of the moments of stops and kills.")
    var seed = Property.defaultSeed

    func validate() throws {
        guard minutes > 0, companions > 0 else {
            throw ValidationError("'--minutes' and '--companions' must be more than 0.")
        }
    }

    func run() async throws {
        let search = try CompanionKills(
            URL(filePath: CommandLine.arguments[0]), companions: companions,
            for: .seconds(minutes * 60), seed: seed, progress: printToStandardError)
        do {
            for (label, count) in try await search.run().sorted(by: { $0.key < $1.key }) {
                print("\(label): \(count)")
            }
        } catch let failure as CompanionKillsFailure {
            printToStandardError("\(failure) (seed \(seed))")
            throw ExitCode(1)
        }
    }
}

/// A companion that is stopped and killed.
struct AppendCompanion: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Appends as a companion; started, stopped and killed by 'companion-kills'.",
        shouldDisplay: false)
    @Argument(help: "The log's folder.")
    var folder: String
    @Argument(help: "The companion's name.")
    var name: String

    func run() async throws { try await CompanionChild(folder: folder, name: name).run() }
}

/// The owner that is stopped and killed.
struct OwnLog: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Appends and absorbs; started, stopped and killed by 'companion-kills'.",
        shouldDisplay: false)
    @Argument(help: "The log's folder.")
    var folder: String

    func run() async throws { try await OwnerChild(folder: folder).run() }
}
