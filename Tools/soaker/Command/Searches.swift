// The searches, one command each.

import ArgumentParser
import DaybookTestKit
import StoreHistories
import SyncHistories

/// Searches random workloads at every crash point, with states drawn at random.
struct Crashes: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Random workloads, with power cuts and kills at every operation and in recovery.")
    @OptionGroup var options: SoakOptions

    private static let scope = CrashPoint.Scope(combinationsMax: 256, samples: 48)

    func run() async throws {
        try await SoakRun(options, isTimed: true).run { job in
            try await job.check("crashes are survived") { choices in
                let workload = Workload.random(&choices)
                let medium = Medium.random(&choices)
                choices.note("\(workload) on \(medium)")
                let files = SimulatedFileSystem(medium: medium)
                let run = await workload.run(on: files)
                if let failure = run.failures.first { throw failure }
                var search = CrashSearch(
                    scope: Self.scope, nestedOneIn: 4, workedOnOneIn: 32, seed: choices.bits())
                try search.explore(run, files.crashPoints)
                job.counts.add(search.counts)
                job.counts.add(["workloads": 1, "workloads, \(medium.name)": 1])
            }
        }
    }
}

/// Searches all workloads up to a length.
struct Small: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Every workload of up to three operations, every crash point, every state.")
    @OptionGroup var options: SoakOptions
    @Option(help: "Highest number of operations in a workload.")
    var length = 3

    func run() async throws {
        let all = Workload.all(upTo: length)
        try await SoakRun(options, isTimed: false).run { job in
            for (index, workload) in all.enumerated() where index % job.count == job.number {
                let files = SimulatedFileSystem()
                let run = await workload.run(on: files)
                if let failure = run.failures.first { throw failure }
                var search = CrashSearch(seed: job.seed &+ UInt64(index))
                try search.explore(run, files.crashPoints)
                job.counts.add(search.counts)
                job.counts.add(["workloads of \(all.count)": 1])
            }
        }
    }
}

/// Makes every call of all workloads up to a length fail in every way.
struct Faults: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Every call of every small workload fails in every way, once and permanently.")
    @OptionGroup var options: SoakOptions
    @Option(help: "Highest number of operations in a workload.")
    var length = 2

    func run() async throws {
        let all = Workload.all(upTo: length)
        try await SoakRun(options, isTimed: false).run { job in
            for (index, workload) in all.enumerated() where index % job.count == job.number {
                var search = FaultSearch()
                try await search.explore(workload)
                job.counts.add(search.counts)
                job.counts.add(["workloads of \(all.count)": 1])
            }
        }
    }
}

/// Tries every damage of every file of a corpus of logs.
struct Rot: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Every bit of stored logs flipped, sectors and files zeroed, swapped, missing.")
    @OptionGroup var options: SoakOptions

    func run() async throws {
        let corpus = try await StoredLog.corpus()
        try await SoakRun(options, isTimed: true).run { job in try Self.search(corpus, job) }
    }

    private static func search(_ corpus: [StoredLog], _ job: SoakRun.Job) throws {
        for log in corpus {
            var search = RotSearch()
            try search.explore(log, part: job.number, of: job.count) { job.isOver }
            job.counts.add(search.counts)
        }
    }
}

/// Compares the whole interface of a store with a model.
struct Store: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Every operation of an app on a store, compared with a model in dictionaries.")
    @OptionGroup var options: SoakOptions

    func run() async throws {
        try await SoakRun(options, isTimed: true).run { job in
            try await job.check("histories of a store") { choices in
                var history = try await StoreHistory(&choices)
                try await choices.run(&history, steps: 0...60)
                try await history.end()
                job.counts.add(history.counts)
                job.counts.add(["histories": 1])
            }
        }
    }
}

/// Simulates one client, a network and the server.
struct Sync: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "One device, a faulty network, and the server's real storage.")
    @OptionGroup var options: SoakOptions

    func run() async throws {
        try await SoakRun(options, isTimed: true).run { job in
            let histories = try SyncHistories()
            try await job.checkHistories("syncing") { _ = try await histories.run(&$0) }
        }
    }
}

/// Simulates several devices of one account.
struct Devices: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Several devices that ship, read, conflict and crash; all must show the same.")
    @OptionGroup var options: SoakOptions

    func run() async throws {
        try await SoakRun(options, isTimed: true).run { job in
            let histories = try DeviceHistories()
            try await job.checkHistories("devices") { _ = try await histories.run(&$0) }
        }
    }
}

extension Medium {
    /// Draws a medium: mostly the default, sometimes larger sectors or weaker guarantees.
    fileprivate static func random(_ choices: inout Choices) -> Medium {
        switch choices.int(in: 0...9) {
        case 7, 8: Medium(sectorBytes: 4_096)
        case 9:
            choices.bool()
                ? Medium(hasPowersafeOverwrite: false) : Medium(honoursSync: false)
        default: Medium()
        }
    }

    fileprivate var name: String {
        if !honoursSync { return "syncs that lie" }
        if !hasPowersafeOverwrite { return "no powersafe overwrite" }
        return "sectors of \(sectorBytes)"
    }
}
