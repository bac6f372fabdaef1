// A download that is killed again and again. One run, not a search on all cores.

import ArgumentParser
import DownloadHistories
import Foundation

/// Downloads of a city by a process that is killed.
struct Downloads: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "A city is downloaded by a process that is killed at random moments.",
        discussion: """
            In the end every image must be there byte for byte, and nothing else. Prints how many \
            bytes were transferred for it.
            """)
    @Option(help: "How often the process is killed.")
    var kills = 20
    @Option(help: "What decides on sizes and moments.")
    var seed = DownloadHistory.Options().seed
    @Flag(help: "The server says no checksums: only what was made durable is gone on from.")
    var withoutChecksums = false

    func validate() throws {
        guard kills > 0 else { throw ValidationError("'--kills' must be more than 0.") }
    }

    func run() async throws {
        var options = DownloadHistory.Options()
        (options.kills, options.seed) = (kills, seed)
        options.tellsChecksums = !withoutChecksums
        let history = DownloadHistory(
            URL(filePath: CommandLine.arguments[0]), ["download"], options: options, say: tell)
        do {
            for (label, count) in try await history.run().sorted(by: { $0.key < $1.key }) {
                print("\(label): \(count)")
            }
        } catch let failure as DownloadHistoryFailure {
            tell("\(failure) (seed \(seed))")
            throw ExitCode(1)
        }
    }
}

/// The process that is killed.
struct Download: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Downloads one city; started and killed by 'downloads'.", shouldDisplay: false)
    @Argument(help: "The store's folder.")
    var folder: String
    @Argument(help: "The server's address.")
    var base: String
    @Argument(help: "The city.")
    var city: String

    func run() async throws {
        guard let base = URL(string: base) else { throw ValidationError("That is no address.") }
        do {
            try await DownloadChild(folder: folder, base: base, city: city).run()
        } catch {
            tell("\(error)")
            throw ExitCode(1)
        }
    }
}
