// The operations that the searches run on a store. A run records when each append was acknowledged, and
// every line; the searches compare the recovered logs with that. Spec/testing/testing.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization

/// A sequence of operations on a store.
public struct Workload: Hashable, Sendable, CustomStringConvertible {
    /// One operation.
    public enum Step: String, CaseIterable, Sendable {
        /// One event, durable.
        case append
        /// One event that waits in memory for the next commit.
        case relaxed
        /// Three events in one commit.
        case batch
        /// Two events of more than a block together, which are written as a big commit.
        case bigBatch
        /// Sealing the live segment.
        case roll
        /// Compaction of the sealed segments.
        case compact
        /// Storing the view's state.
        case checkpoint
        /// Closing and opening again.
        case reopen
    }

    /// The state of the store before the first step.
    public enum Start: String, CaseIterable, Sendable {
        /// No folder.
        case empty
        /// A store that has a sealed segment with replaced values, a checkpoint, and more events after it.
        case filled
    }

    /// The state of the store before the first step.
    public var start: Start
    /// The operations.
    public var steps: [Step]

    /// Creates a workload.
    public init(_ start: Start = .empty, _ steps: [Step]) {
        self.start = start
        self.steps = steps
    }

    /// All workloads of up to `length` operations, with both starts: 2 · (8 + 8² + … + 8^`length`), since
    /// there are 8 kinds of step.
    public static func all(upTo length: Int) -> [Workload] {
        var rows: [[Step]] = [[]]
        var all: [[Step]] = []
        for _ in 0..<length {
            rows = rows.flatMap { row in Step.allCases.map { row + [$0] } }
            all += rows
        }
        return Start.allCases.flatMap { start in all.map { Workload(start, $0) } }
    }

    /// Draws a workload of 1 to 12 operations. Big batches are rare, since their many sectors make searches
    /// slow.
    public static func random(_ choices: inout Choices) -> Workload {
        Workload(
            choices.element(of: Start.allCases),
            choices.array(1...12) { choices in
                choices.bool(oneIn: 40)
                    ? .bigBatch : choices.element(of: Step.allCases.filter { $0 != .bigBatch })
            })
    }

    /// Start and steps in one line.
    public var description: String {
        "\(start.rawValue): \(steps.map(\.rawValue).joined(separator: ", "))"
    }

    /// The path of the store's folder.
    public static let directory = "/log"
    static let catalogue = EventCatalogue([.of(ValueSet.self)])

    /// The steps that make the store of `Start.filled`.
    static let fillingSteps: [Step] = [
        .append, .batch, .batch, .roll, .relaxed, .batch, .checkpoint,
    ]

    /// Runs the workload on a simulated file system. A step that fails does not stop the later ones; after an
    /// error with the code `indeterminate` the next step opens the store again.
    ///
    /// - Parameters:
    ///   - files: the file system.
    ///   - records: whether the file system records crash points, from the first step on.
    /// - Returns: the outcome of each append. The store is not closed, as after a kill.
    public func run(on files: SimulatedFileSystem, records: Bool = true) async -> WorkloadRun {
        var runner = Runner(self, files)
        if start == .filled {
            for step in Self.fillingSteps { await runner.run(step) }
            await runner.close()
        }
        if records { files.record() }
        runner.begin()
        for step in steps { await runner.run(step) }
        return runner.end()
    }

    /// An environment that is the same in every run. Every fifth reading of the clock is an hour back. Timers
    /// never fire: on a busy machine one would write between steps, or after the last.
    static func environment(_ files: any FileSystem) -> LogEnvironment {
        let random = Mutex(SeededRandom(seed: 0xDA1))
        let ticks = Mutex(0 as Int64)
        return LogEnvironment(
            fileSystem: files,
            now: {
                ticks.withLock { ticks in
                    ticks += 1
                    return 1_771_756_214_425 + ticks * 1_000 - (ticks % 5 == 0 ? 3_600_000 : 0)
                }
            },
            random: { random.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) } },
            sleep: { _ in throw CancellationError() })
    }
}

extension Workload {
    /// The store during a run, and the outcome so far.
    private struct Runner {
        /// The version and variant bits of a UUID of version 4 (RFC 9562).
        private static let idPattern: UInt128 = 0x4000 << 64 | 0x8000 << 48

        let files: SimulatedFileSystem
        let environment: LogEnvironment
        var store: EventStore?
        var outcome: WorkloadRun
        /// The number of events that were created.
        var eventCount = 0

        init(_ workload: Workload, _ files: SimulatedFileSystem) {
            self.files = files
            outcome = WorkloadRun(workload: workload)
            environment = Workload.environment(files)
        }

        /// Marks the start of the workload's own steps.
        mutating func begin() {
            outcome.durableEnds = [.init(operations: 0, last: outcome.last)]
            outcome.callsAtStart = files.calls
        }

        mutating func close() async {
            do { try await store?.close() } catch {}
            store = nil
        }

        mutating func openIfNeeded() async throws -> EventStore {
            if let store { return store }
            let store = try await EventStore.open(
                at: Workload.directory, catalogue: Workload.catalogue, views: [Values.self],
                environment: environment)
            self.store = store
            return store
        }

        mutating func run(_ step: Step) async {
            do {
                let store = try await openIfNeeded()
                switch step {
                case .append: try await append(1, 20, to: store)
                case .relaxed: try await append(1, 20, to: store, .relaxed)
                case .batch: try await append(3, 20, to: store)
                case .bigBatch: try await append(2, 31_000, to: store)
                case .roll:
                    try await store.flush()
                    try store.log.roll()
                case .compact:
                    outcome.compactionFrom = min(outcome.compactionFrom, files.operations)
                    try await store.compact()
                case .checkpoint: try await store.checkpoint()
                case .reopen:
                    try await store.close()
                    self.store = nil
                    _ = try await openIfNeeded()
                }
            } catch {
                outcome.failures.append(error)
                if (error as? LogError)?.code == .indeterminate { await close() }
            }
            await recordDurableLines()
        }

        /// A value that does not compress, so that `bytes` is also about the stored size.
        private func value(_ number: Int, bytes: Int) -> String {
            var random = SeededRandom(seed: UInt64(number))
            var text = ""
            while text.utf8.count < bytes { text += String(random.next(), radix: 36) }
            return text
        }

        private mutating func append(
            _ count: Int, _ bytes: Int, to store: EventStore, _ durability: Durability = .durable
        ) async throws {
            let drafts = try (0..<count).map { _ in
                eventCount += 1
                return try EventDraft(
                    ValueSet(key: "k\(eventCount % 3)", value: value(eventCount, bytes: bytes)),
                    id: UUID(integer: Self.idPattern | UInt128(eventCount)))
            }
            let ids = drafts.map { $0.id.integer }
            do {
                let appended = try await store.append(contentsOf: drafts, durability: durability)
                let positions = appended.map(\.position)
                outcome.boundaries.insert(positions.last?.rawValue ?? 0)
                for (id, position) in zip(ids, positions) { outcome.positions[id] = position }
                if durability == .durable { outcome.acknowledged.formUnion(ids) }
            } catch let error as LogError where error.code == .indeterminate {
                outcome.indeterminate.formUnion(ids)
                throw error
            } catch {
                outcome.refused.formUnion(ids)
                throw error
            }
        }

        /// Records the lines that have become durable.
        private mutating func recordDurableLines() async {
            guard let store, case let last = await store.lastDurable else { return }
            var position = outcome.last
            while position < last.rawValue {
                position += 1
                guard let line = try? store.log.line(at: Position(position)) else { continue }
                outcome.recordLine(line, at: position)
            }
            outcome.last = max(outcome.last, last.rawValue)
            outcome.durableEnds.append(.init(operations: files.operations, last: outcome.last))
        }

        /// Completes the outcome with the ids that compaction removed.
        mutating func end() -> WorkloadRun {
            guard let log = store?.log else { return outcome }
            for (position, line) in outcome.lines {
                guard (try? log.line(at: Position(position))) == .some(nil) else { continue }
                outcome.compacted[position] = (try? LinePrefix(line.span.bytes))?.id
            }
            return outcome
        }
    }
}

/// The outcome of a workload.
public struct WorkloadRun: Sendable {
    /// The operations.
    public let workload: Workload
    /// The last durable position after a number of operations.
    struct DurableEnd: Sendable {
        var operations: Int
        var last: UInt64
    }

    /// The errors of steps, in order.
    public internal(set) var failures: [any Error] = []
    /// The ids of events whose durable append returned.
    public internal(set) var acknowledged: Set<UInt128> = []
    /// The ids of events whose append failed with the code `indeterminate`: they may be recorded or not.
    public internal(set) var indeterminate: Set<UInt128> = []
    /// The ids of events whose append failed with nothing recorded.
    public internal(set) var refused: Set<UInt128> = []

    /// The number of file system calls before the first step.
    var callsAtStart = 0
    /// The position of each accepted event, by id.
    var positions: [UInt128: Position] = [:]
    /// The view's encoded state at each position.
    var states: [UInt64: [UInt8]] = [0: (try? Values().encodedState()) ?? []]
    private var values = Values()
    /// The last position of each append. A commit is all or nothing, so a recovered log ends at one of them.
    var boundaries: Set<UInt64> = [0]
    /// Each line, by position.
    var lines: [UInt64: [UInt8]] = [:]
    /// The ids that compaction removed, by position.
    var compacted: [UInt64: UInt128] = [:]
    /// The file system operation from which on compaction may have removed them.
    var compactionFrom = Int.max
    var durableEnds: [DurableEnd] = []
    var last: UInt64 = 0

    init(workload: Workload) { self.workload = workload }

    /// Records a durable line; called in order of position.
    mutating func recordLine(_ line: [UInt8], at position: UInt64) {
        lines[position] = line
        guard
            let event = try? LogReader.event(
                line.span.bytes, Workload.catalogue, directory: Workload.directory)
        else { return }
        values.fold(event)
        states[position] = (try? values.encodedState()) ?? []
    }

    /// The positions at which a log may end after a crash before `operation`: from the last acknowledged one
    /// to the last that was being written.
    func durableRange(before operation: Int) -> ClosedRange<UInt64> {
        let lowest = durableEnds.last { $0.operations <= operation }?.last ?? 0
        let highest = durableEnds.first { $0.operations > operation }?.last ?? last
        return lowest...max(lowest, highest)
    }
}
