// The benchmark's command line. Started by Tools/benchmark. Spec/benchmarks describes how each figure is
// measured, and has the results of the last full run.

import ArgumentParser
import Foundation
import StandardStreams

@main
enum Main {
    static func main() async {
        ProgramArguments.requireUTF8(of: "benchmark")
        await Benchmarker.main()
    }
}

struct Benchmarker: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "benchmark",
        abstract: "Compares Daybook with the alternatives, in alternating turns.",
        discussion: """
            Prints tables. The quick form takes one to two minutes and gives an estimate; the full \
            form is for published figures.
            """,
        subcommands: [
            RacesCommand.self, GrowthCommand.self, PhoneCommand.self, AllCommand.self,
            ErrandCommand.self,
        ], defaultSubcommand: RacesCommand.self)
}

/// The options of all commands.
struct BenchmarkOptions: ParsableArguments {
    @Flag(help: "More events and more turns, for published figures.")
    var full = false
    @Option(
        help: """
            CloudEvents lines to record, repeated with fresh ids. Default: \
            ../shared/data/journey.ndjson if it exists, otherwise generated events.
            """)
    var input: String?
    @Option(help: "The folder for the logs, on the disk to be measured.")
    var folder: String?
    @Option(help: "Write the tables, all figures as JSON, and plots into this folder.")
    var write: String?

    private static let usualInput = "../shared/data/journey.ndjson"

    var source: Input.Source {
        let isThere = FileManager.default.fileExists(atPath: Self.usualInput)
        return Input.Source(file: input ?? (isThere ? Self.usualInput : nil))
    }

    /// Calls a closure with a temporary folder and removes the folder.
    func inFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = try Folder(
            in: folder.map { URL(filePath: $0) } ?? FileManager.default.temporaryDirectory)
        defer { folder.remove() }
        try await body(folder.url)
    }

    var reports: ReportFolder? {
        get throws { try write.map { try ReportFolder($0) } }
    }
}

/// All measurements, one after the other.
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
