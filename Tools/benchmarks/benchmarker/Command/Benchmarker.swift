// The benchmark's command line. Started by Tools/benchmark; Spec/benchmarks says how each figure is
// measured, and holds what came of the last full run.

import ArgumentParser
import Foundation

@main
struct Benchmarker: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "benchmark",
        abstract: "Measures Daybook beside what somebody would take instead, in turns.",
        discussion: """
            Prints tables. The quick form takes one to two minutes and says how things stand; the \
            full form is for figures that are shown.
            """,
        subcommands: [
            RacesCommand.self, GrowthCommand.self, PhoneCommand.self, AllCommand.self,
            ErrandCommand.self,
        ], defaultSubcommand: RacesCommand.self)
}

/// What all commands take.
struct BenchmarkOptions: ParsableArguments {
    @Flag(help: "More events and more turns: for figures that are shown.")
    var full = false
    @Option(
        help: """
            CloudEvents lines to record, repeated with fresh ids; else ../shared/data/journey.ndjson \
            if it is there, else generated ones.
            """)
    var input: String?
    @Option(help: "Where the logs are made: a folder on the disk that is to be measured.")
    var folder: String?
    @Option(help: "Write the tables, all figures as JSON, and plots into this folder.")
    var write: String?

    private static let usualInput = "../shared/data/journey.ndjson"

    var source: Input.Source {
        let isThere = FileManager.default.fileExists(atPath: Self.usualInput)
        return Input.Source(file: input ?? (isThere ? Self.usualInput : nil))
    }

    /// Gives a folder of its own, which goes afterwards.
    func inFolder(_ body: (URL) async throws -> Void) async throws {
        let place = try Folder(
            in: folder.map { URL(filePath: $0) } ?? FileManager.default.temporaryDirectory)
        defer { place.remove() }
        try await body(place.url)
    }

    var reports: ReportFolder? {
        get throws { try write.map { try ReportFolder($0) } }
    }
}

/// Everything, one after the other.
struct AllCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "all", abstract: "Races, growth and phone.")
    @OptionGroup var options: BenchmarkOptions

    func run() async throws {
        try await GrowthCommand.measure(nil, options)
        try await PhoneCommand.measure(options)
        try await RacesCommand.measure(nil, options)
    }
}
