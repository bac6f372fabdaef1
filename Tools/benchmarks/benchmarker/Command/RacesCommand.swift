// The races: every row of the table in one run.

import ArgumentParser
import Foundation

struct RacesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "races", abstract: "All rows of the table. Exits with 1 if a budget is missed."
    )
    @OptionGroup var options: BenchmarkOptions
    @Option(help: "Only rows whose name contains this text.")
    var only: String?
    @Flag(help: "Run each timed race again with one core kept busy. The full form always does.")
    var busy = false

    func run() async throws { try await Self.measure(only, options, withBusyCore: busy) }

    /// - Throws: `ExitCode` 1 if a budget is not met.
    static func measure(
        _ only: String?, _ options: BenchmarkOptions, withBusyCore: Bool = false
    ) async throws {
        try await options.inFolder { folder in
            var results: [RaceResult] = []
            let rows = try rows(options, folder, withBusyCore || options.full)
            let chosen = rows.filter { name, _ in only.map(name.contains) ?? true }
            guard !chosen.isEmpty else {
                let names = rows.map { "'\($0.0)'" }.joined(separator: ", ")
                throw ValidationError(
                    "No row's name contains '\(only ?? "")'. The rows are \(names).")
            }
            for (_, row) in chosen { results += try await row() }
            let report = RaceReport(
                origin: Origin(full: options.full, input: options.source.name, folder),
                results: results)
            print(report.markdown)
            if let reports = try options.reports {
                try reports.write(report.markdown, "results.md")
                try reports.write(report.figures, "results.json")
                try reports.write(report.svg, "results.svg")
                if options.full, only == nil { try reports.refreshReadme(report.summary) }
            }
            guard results.allSatisfy({ $0.verdicts.allSatisfy(\.isMet) }) else {
                throw ExitCode(1)
            }
        }
    }

    /// The rows: names and measuring functions.
    private static func rows(
        _ options: BenchmarkOptions, _ folder: URL, _ withBusyCore: Bool
    ) throws -> [(String, () async throws -> [RaceResult])] {
        let (full, source) = (options.full, options.source)
        let input = try Input(source)
        let turns = full ? 9 : 3
        let appending = Appending(
            input: input, folder: folder,
            sizes: full ? (2_000, 16_000, 200_000) : (300, 3_200, 20_000))
        let reading = Reading(
            input: input, folder: folder, events: full ? 1_000_000 : 20_000,
            rebuilt: full ? 200_000 : 20_000)
        let memory = Memory(
            source: source, folder: folder, lineBytes: full ? 1_000_000_000 : 20_000_000)
        let rows = Rows(
            folder: folder, events: full ? 200_000 : 20_000, appends: full ? 500 : 100)
        var ofLongLog = rows
        if !full { ofLongLog.events = 70_000 }
        func timed(
            _ race: @escaping () async throws -> Race
        ) -> () async throws -> [RaceResult] {
            {
                let race = try await race()
                return try await runRace(withBusyCore: withBusyCore) {
                    try await race.run(turns: turns, reportProgress: reportProgress)
                }
            }
        }
        func size(_ batch: Int) -> () async throws -> [RaceResult] {
            {
                let race = try await reading.size(batch: batch)
                return [try await race.run(turns: 1, reportProgress: reportProgress)]
            }
        }
        let shipping = Shipping(events: full ? 200_000 : 20_000, turns: turns)
        return [
            ("durable append", timed(appending.single)),
            ("16 writers", timed(appending.concurrent)),
            ("bulk append", timed(appending.bulk)),
            ("ready lines", timed(appending.readyLines)),
            ("scan", timed(reading.scan)),
            ("rebuild", timed(reading.rebuild)),
            ("open", timed(reading.opening)),
            ("size batches", size(1_000)),
            ("size ten", size(10)),
            ("size single", size(1)),
            ("rows first", timed(ofLongLog.first)),
            ("rows rebuilt", timed(rows.rebuilt)),
            ("rows of a view", timed(rows.viewTable)),
            ("rows delay", timed(rows.delay)),
            ("rows query", timed(rows.query)),
            (
                "shipping",
                { try await runRace(withBusyCore: withBusyCore) { try await shipping.measure() } }
            ),
            ("requests", timed(Requests(folder: folder, events: full ? 10_000 : 2_000).race)),
            ("memory", { [try memory.measure()] }),
        ]
    }
}
