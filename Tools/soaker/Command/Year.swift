// The command that simulates a year of use. One run, not a search on all cores.

import ArgumentParser
import Foundation
import YearOfUse

/// Measures a simulated year of use.
struct Year: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measures a year of a heavy user: log, files, memory, times of opening.",
        discussion: """
            Each simulated day the app starts, cleans up, syncs, and reads a city eight times, \
            which it downloads first if it is not cached. Runs on a real disk, with a storage \
            limit of 100 MB and one compaction a week. Exits with 1 if the limit is exceeded or \
            an image is damaged.
            """)
    @Option(help: "Number of days.")
    var days = 365
    @Option(help: "Number of cities.")
    var cities = 100
    @Option(help: "Number of images of each city.")
    var images = 10
    @Option(help: "Bytes of each image.")
    var imageBytes = 262_144
    @Option(help: "Seed of the random numbers.")
    var seed: UInt64 = 1
    @Option(
        help: "The folder, which must not exist. Default: one that is removed afterwards.")
    var folder: String?

    func validate() throws {
        guard days > 0, cities > 0, images >= 0, imageBytes >= 0 else {
            throw ValidationError("'--days' and '--cities' must be more than 0.")
        }
    }

    func run() async throws {
        var year = YearOfUse()
        year.days = days
        year.cities = cities
        year.imagesPerCity = images
        year.imageBytes = imageBytes
        year.seed = seed
        year.progress = printToStandardError
        let target =
            folder.map { URL(filePath: $0) }
            ?? FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: false)
        defer { if folder == nil { try? FileManager.default.removeItem(at: target) } }
        print(try await year.run(in: target))
    }
}
