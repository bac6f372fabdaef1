// The command that kills a downloading process repeatedly. One run, not a search on all cores.

import ArgumentParser
import DownloadHistories
import Foundation

/// Downloads a city with a process that is killed repeatedly.
struct Downloads: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Downloads a city with a process that is killed at random moments.",
        discussion: """
            In the end the store must have every image byte for byte, and no other files. Prints \
            the number of bytes that were transferred.
            """)
    @Option(help: "Number of kills.")
    var kills = 20
    @Option(help: "Seed of the sizes of images and the moments of kills.")
    var seed = DownloadHistory.Options().seed
    @Flag(help: "Omit checksums, so that a download continues only from durable bytes.")
    var withoutChecksums = false

    func validate() throws {
        guard kills > 0 else { throw ValidationError("'--kills' must be more than 0.") }
    }

    func run() async throws {
        var options = DownloadHistory.Options()
        (options.kills, options.seed) = (kills, seed)
        options.includesChecksums = !withoutChecksums
        let history = DownloadHistory(
            URL(filePath: CommandLine.arguments[0]), ["download"], options: options,
            progress: printToStandardError)
        do {
            for (label, count) in try await history.run().sorted(by: { $0.key < $1.key }) {
                print("\(label): \(count)")
            }
        } catch let failure as DownloadHistoryFailure {
            printToStandardError("\(failure) (seed \(seed))")
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
        guard let base = URL(string: base) else {
            throw ValidationError("'\(base)' is not a valid URL.")
        }
        do {
            try await DownloadChild(folder: folder, base: base, city: city).run()
        } catch {
            printToStandardError("\(error)")
            throw ExitCode(1)
        }
    }
}
