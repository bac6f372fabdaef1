// The growth benchmark: costs by the size of the log.

import ArgumentParser

struct GrowthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "growth", abstract: "Costs and memory as a log grows.")
    @OptionGroup var options: BenchmarkOptions
    @Option(help: "The events of the logs, separated by commas. Default: depends on --full.")
    var sizes: String?

    func run() async throws {
        let sizes = try sizes?.split(separator: ",").map {
            guard let size = Int($0), size > 0 else {
                throw ValidationError("'\($0)' is not a number of events.")
            }
            return size
        }
        try await Self.measure(sizes, options)
    }

    static func measure(_ sizes: [Int]?, _ options: BenchmarkOptions) async throws {
        let usual =
            options.full
            ? [10_000, 100_000, 1_000_000, 5_000_000, 20_000_000] : [2_000, 20_000, 200_000]
        let sizes = (sizes ?? usual).sorted()
        // The same entities in every log, so that only its length differs.
        var source = options.source
        source.patternsMax = sizes.first
        try await options.inFolder { folder in
            let report = GrowthReport(
                origin: Origin(full: options.full, input: options.source.name, folder),
                curves: try Growth(sizes: sizes, source: source, folder: folder).measure())
            print(report.markdown)
            if let reports = try options.reports {
                try reports.write(report.markdown, "growth.md")
                try reports.write(report, "growth.json")
                try reports.write(report.svg, "growth.svg")
            }
        }
    }
}
