// A simulated year of use. One run, not a search on all cores.

import ArgumentParser
import Foundation
import YearOfUse

/// What a year of use comes to.
struct Year: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "What a year with a heavy user comes to: log, files, memory, opening.",
        discussion: """
            Each simulated day the app starts, tidies up, syncs, and eight times a city is looked \
            at, which is downloaded first if it is not there. On a real disk, with a storage limit \
            of 100 MB; compacted once a week. Exits with 1 if the limit is not kept or an image is not what it was.
            """)
    @Option(help: "Days to live.")
    var days = 365
    @Option(help: "Cities that there are.")
    var cities = 100
    @Option(help: "Images of each city.")
    var images = 10
    @Option(help: "Bytes of each image.")
    var imageBytes = 262_144
    @Option(help: "Where chance begins.")
    var seed: UInt64 = 1
    @Option(
        help: "Where to live; the folder must not exist. Default: one that is removed afterwards.")
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
        year.say = tell
        let place =
            folder.map { URL(filePath: $0) }
            ?? FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
        defer { if folder == nil { try? FileManager.default.removeItem(at: place) } }
        print(try await year.run(in: place))
    }
}
