// The options that all searches share (duration, number of jobs, seed), and the code that runs their jobs,
// with progress on stderr and counts on stdout.

import ArgumentParser
import DaybookTestKit
import Dispatch
import Foundation
import Synchronization

struct SoakOptions: ParsableArguments {
    @Option(help: "Duration in minutes.")
    var minutes: Double = 1
    @Option(help: "Number of concurrent searches.")
    var jobs = ProcessInfo.processInfo.activeProcessorCount
    @Option(help: "Seed of the random numbers.")
    var seed: UInt64 = Property.defaultSeed

    func validate() throws {
        guard minutes > 0, jobs > 0 else {
            throw ValidationError("'--minutes' and '--jobs' must be more than 0.")
        }
    }
}

/// A search that runs in several jobs.
struct SoakRun: Sendable {
    let options: SoakOptions
    /// Whether the jobs end after `SoakOptions.minutes`, or when their work is complete.
    let isTimed: Bool
    private let counts = SharedCounts()

    /// One of the jobs.
    struct Job: Sendable {
        let number: Int
        let count: Int
        let seed: UInt64
        let deadline: ContinuousClock.Instant
        let counts: SharedCounts

        var isOver: Bool { ContinuousClock.now >= deadline }

        /// Checks a property a number of times; nil for until the deadline.
        func check(
            _ name: String, runs: Int? = nil, _ body: (inout Choices) async throws -> Void
        ) async throws {
            var isReported = false
            try await Property.check(
                name, runs: runs ?? .max, seed: seed, while: { _ in runs != nil || !isOver }
            ) {
                do { try await body(&$0) } catch {
                    // Shrinking may take minutes.
                    if !isReported {
                        printToStandardError("\(name): \(error); searching for a simpler case")
                    }
                    isReported = true
                    throw error
                }
            }
        }

        /// Runs a number of histories, or as many as there is time for, and adds their counts.
        func checkHistories(
            _ subject: String, runs: Int? = nil, _ run: (inout Choices) async throws -> Void
        ) async throws {
            try await check("histories of \(subject)", runs: runs) { choices in
                try await run(&choices)
                counts.add(choices.counts)
                counts.add(["histories": 1])
            }
        }
    }

    init(_ options: SoakOptions, isTimed: Bool) {
        self.options = options
        self.isTimed = isTimed
    }

    /// Runs the jobs until they end. The first failure ends all of them.
    func run(_ body: @escaping @Sendable (Job) async throws -> Void) async throws {
        let begun = ContinuousClock.now
        // A timer and not a task: the jobs occupy all threads of the cooperative pool.
        let progress = DispatchSource.makeTimerSource()
        progress.setEventHandler { [counts] in
            Self.printToStandardError(counts.text(since: begun, separator: ", "))
        }
        progress.schedule(deadline: .now() + 15, repeating: 15)
        progress.activate()
        defer { progress.cancel() }
        let deadline = isTimed ? begun + .seconds(options.minutes * 60) : begun + .seconds(1e9)
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<options.jobs {
                    let job = Job(
                        number: number, count: options.jobs,
                        seed: options.seed &+ UInt64(number) &* 0x9E37_79B9_7F4A_7C15,
                        deadline: deadline, counts: counts)
                    group.addTask { try await body(job) }
                }
                try await group.waitForAll()
            }
        } catch {
            print(counts.text(since: begun, separator: "\n"))
            Self.printToStandardError("\(error)")
            throw ExitCode(1)
        }
        print(counts.text(since: begun, separator: "\n"))
    }

    private static func printToStandardError(_ text: String) {
        FileHandle.standardError.write(Data("soak: \(text)\n".utf8))
    }
}

/// The sums of the counts of all jobs.
final class SharedCounts: Sendable {
    private let counts = Mutex<[String: Int]>([:])

    func add(_ jobCounts: [String: Int]) {
        counts.withLock { $0.merge(jobCounts, uniquingKeysWith: +) }
    }

    func text(since begun: ContinuousClock.Instant, separator: String) -> String {
        let seconds = (ContinuousClock.now - begun) / .seconds(1)
        let lines = counts.withLock { counts in
            counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        }
        return (lines + ["seconds: \(Int(seconds))"]).joined(separator: separator)
    }
}
