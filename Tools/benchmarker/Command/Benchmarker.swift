// Every row of the table in one run. Started by Tools/benchmark; Spec/benchmarks holds what came of
// the last full run, and how each row is measured.

import ArgumentParser
import Foundation
import WireHistories

@main
struct Benchmarker: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "benchmark",
        abstract: "Measures Daybook beside what somebody would take instead, in turns.",
        discussion: """
            Prints costs, and ratios beside the budgets. Exits with 1 if a budget is not met. The \
            quick form takes about two minutes and says how things stand; the full form is for \
            figures that are shown.
            """,
        subcommands: [Run.self, Memory.self], defaultSubcommand: Run.self)
}

/// Runs the races.
struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "All rows of the table.")

    @Flag(help: "A million events instead of twenty thousand, and more turns.")
    var full = false
    @Option(help: "CloudEvents lines to record, repeated with fresh ids; else generated ones.")
    var input: String?
    @Option(help: "Where the logs are made: a folder on the disk that is to be measured.")
    var folder: String?
    @Option(help: "Write results.md, results.json and results.svg into this folder.")
    var write: String?
    @Option(help: "Only races whose name holds this.")
    var only: String?

    func run() async throws {
        let place = try Folder(
            in: folder.map { URL(filePath: $0) } ?? FileManager.default.temporaryDirectory)
        defer { place.remove() }
        let input = try Input(input.map { URL(filePath: $0) })
        let events = full ? 1_000_000 : 20_000
        let appending = Appending(
            input: input, folder: place.url,
            sizes: full ? (2_000, 32_000, 200_000) : (300, 3_200, 20_000))
        let reading = Reading(input: input, folder: place.url, events: events)
        let turns = full ? 9 : 3
        var results: [RaceResult] = []
        let races: [(String, () async throws -> Race)] = [
            ("durable append", appending.single), ("16 writers", { appending.concurrent() }),
            ("bulk append", { appending.bulk() }), ("scan", reading.scan),
            ("rebuild", reading.rebuild), ("open", reading.opening),
            ("size batches", { try await reading.size(batch: 1_000) }),
            ("size ten", { try await reading.size(batch: 10) }),
            ("size single", { try await reading.size(batch: 1) }),
        ]
        for (name, race) in races where only.map(name.contains) ?? true {
            let race = try await race()
            results.append(
                try await race.run(turns: race.unit.hasPrefix("bytes") ? 1 : turns, say: tell))
        }
        if only.map("shipping".contains) ?? true {
            results.append(try await shipping(turns))
        }
        if only.map("memory".contains) ?? true {
            results.append(try await memory(reading))
        }
        let report = Report(
            machine: Report.machineDescription(), input: input.origin, results: results)
        print(report.markdown)
        if let write {
            let folder = URL(filePath: write)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(report.markdown.utf8).write(to: folder.appending(path: "results.md"))
            try report.json().write(to: folder.appending(path: "results.json"))
            try Data(report.svg.utf8).write(to: folder.appending(path: "results.svg"))
        }
        guard results.allSatisfy({ $0.verdicts.allSatisfy(\.isMet) }) else { throw ExitCode(1) }
    }

    /// The replayer beside a plain client with the same bytes, to a server that takes everything.
    private func shipping(_ turns: Int) async throws -> RaceResult {
        let race = ShippingRace(
            events: full ? 200_000 : 20_000, rounds: turns, requests: 2, say: tell)
        let result = try await race.run()
        func costs(_ seconds: [Double]) -> [Double] {
            seconds.map { $0 * 1e6 / Double(result.events) }
        }
        return RaceResult(
            name: "shipping to a null server", unit: "µs an event",
            entries: [
                .init(name: "Daybook", costs: costs(result.ours)),
                .init(name: "plain client", costs: costs(result.plain)),
            ], budgets: [.atMost(1 / 0.7, of: "plain client")], note: nil)
    }

    /// Peak memory over a log that grows tenfold.
    private func memory(_ reading: Reading) async throws -> RaceResult {
        let log = try await reading.log("memory", reading.events, checkpoint: false)
        let peaks = try StreamingWork.allCases.map { work in
            RaceResult.Entry(name: work.rawValue, costs: [try work.measured(on: log)])
        }
        return RaceResult(
            name: "peak memory, \(reading.events) events", unit: "MiB", entries: peaks,
            budgets: [], note: nil)
    }
}

/// What a process of its own does for the row of memory.
struct Memory: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Does one piece of work, and prints the peak of this process in MiB.",
        shouldDisplay: false)
    @Argument var work: String
    @Argument var log: String

    func run() async throws {
        guard let work = StreamingWork(rawValue: work) else {
            throw ValidationError("There is no such work.")
        }
        try await work.perform(on: URL(filePath: log))
        print(try StreamingWork.peak())
    }
}

/// How it goes, for people.
func tell(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
