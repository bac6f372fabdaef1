// What a crash search does to a store: a few steps, run once on a recording machine. The run says
// what was acknowledged when, and what every line was; CrashSearch holds each state to that.
// Spec/testing/testing.md.

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
        /// Events of more than a block, which are written as a big commit.
        case bigBatch
        /// Sealing the live segment.
        case roll
        /// Compaction of what is sealed.
        case compact
        /// Storing the view's state.
        case checkpoint
        /// Closing and opening again.
        case reopen
    }

    /// What was done before: nothing, or a store with a sealed segment that holds values that were
    /// replaced, and more behind it.
    public enum Start: String, CaseIterable, Sendable {
        /// A folder that is not there yet.
        case empty
        /// A store with a sealed segment, replaced values, a checkpoint, and more behind.
        case filled
    }

    /// The store at the beginning.
    public var start: Start
    /// The operations.
    public var steps: [Step]

    /// Creates a workload.
    public init(_ start: Start = .empty, _ steps: [Step]) {
        self.start = start
        self.steps = steps
    }

    /// All workloads of up to `length` operations, on both beginnings. 8 operations make 2 · (8 + 8²
    /// + …) of them.
    public static func all(upTo length: Int) -> [Workload] {
        var rows: [[Step]] = [[]]
        var all: [[Step]] = []
        for _ in 0..<length {
            rows = rows.flatMap { row in Step.allCases.map { row + [$0] } }
            all += rows
        }
        return Start.allCases.flatMap { start in all.map { Workload(start, $0) } }
    }

    /// A workload of 1 to 12 operations. Big batches are rare: their many sectors make searches slow.
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

    /// Where the store is.
    public static let directory = "/log"
    static let catalogue = EventCatalogue([.of(ValueSet.self)])

    static let beginning: [Step] = [.append, .batch, .batch, .roll, .relaxed, .batch, .checkpoint]

    /// Runs the workload on a machine. A step that fails does not stop the others; if nobody knows
    /// what is on the disk any more, the next one opens the store again.
    ///
    /// - Parameters:
    ///   - files: the machine.
    ///   - records: whether the machine records crash points, from the first step on.
    /// - Returns: what became of each append. The store is not closed: the process ends as by a
    ///   kill.
    public func run(on files: SimulatedFileSystem, records: Bool = true) async -> WorkloadRun {
        var runner = Runner(self, files)
        if start == .filled {
            for step in Self.beginning { await runner.run(step) }
            await runner.close()
        }
        if records { files.record() }
        runner.begin()
        for step in steps { await runner.run(step) }
        return runner.end()
    }

    /// What a log of this kind takes from outside. The clock steps back now and then; numbers are
    /// the same in every run, and no timer goes off: on a busy machine it would write between steps,
    /// or behind the last.
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
    /// A store on its way through a workload.
    private struct Runner {
        /// What makes a number a UUID of version 4 (RFC 9562).
        private static let idPattern: UInt128 = 0x4000 << 64 | 0x8000 << 48

        let files: SimulatedFileSystem
        let environment: LogEnvironment
        var store: EventStore?
        var outcome: WorkloadRun
        var made = 0

        init(_ workload: Workload, _ files: SimulatedFileSystem) {
            self.files = files
            outcome = WorkloadRun(workload: workload)
            environment = Workload.environment(files)
        }

        mutating func begin() {
            outcome.ends = [.init(operations: 0, last: outcome.last)]
            outcome.callsAtStart = files.calls
        }

        mutating func close() async {
            do { try await store?.close() } catch {}
            store = nil
        }

        mutating func opened() async throws -> EventStore {
            if let store { return store }
            let store = try await EventStore.open(
                at: Workload.directory, catalogue: Workload.catalogue, views: [Values.self],
                environment: environment)
            self.store = store
            return store
        }

        mutating func run(_ step: Step) async {
            do {
                let store = try await opened()
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
                    _ = try await opened()
                }
            } catch {
                outcome.failures.append(error)
                if (error as? LogError)?.code == .indeterminate { await close() }
            }
            await note()
        }

        /// Noise that does not compress, so that sizes are what they seem.
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
                made += 1
                return try EventDraft(
                    ValueSet(key: "k\(made % 3)", value: value(made, bytes: bytes)),
                    id: UUID(integer: Self.idPattern | UInt128(made)))
            }
            let ids = drafts.map { $0.id.integer }
            do {
                let appended = try await store.append(drafts, durability: durability)
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

        /// Takes down what is on the disk now.
        private mutating func note() async {
            guard let store, case let last = await store.lastDurable else { return }
            var position = outcome.last
            while position < last.rawValue {
                position += 1
                guard let line = try? store.log.line(at: Position(position)) else { continue }
                outcome.add(line, at: position)
            }
            outcome.last = max(outcome.last, last.rawValue)
            outcome.ends.append(.init(operations: files.operations, last: outcome.last))
        }

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

/// What became of a workload.
public struct WorkloadRun: Sendable {
    /// What was to be done.
    public let workload: Workload
    /// What is durable when so many operations have been done.
    struct End: Sendable {
        var operations: Int
        var last: UInt64
    }

    /// Errors of steps, in order.
    public internal(set) var failures: [any Error] = []
    /// Ids of events whose durable append returned.
    public internal(set) var acknowledged: Set<UInt128> = []
    /// Ids of events of which nobody knows whether they were recorded.
    public internal(set) var indeterminate: Set<UInt128> = []
    /// Ids of events whose append failed with nothing recorded.
    public internal(set) var refused: Set<UInt128> = []

    /// Calls of the machine before the first step.
    var callsAtStart = 0
    /// Where each accepted event is to be.
    var positions: [UInt128: Position] = [:]
    /// The view's state at each position, as it is stored.
    var states: [UInt64: [UInt8]] = [0: (try? Values().encodedState()) ?? []]
    private var values = Values()
    /// The last position of each append: commits are all or nothing.
    var boundaries: Set<UInt64> = [0]
    /// Each line, by position.
    var lines: [UInt64: [UInt8]] = [:]
    /// Positions that compaction has emptied, with their ids.
    var compacted: [UInt64: UInt128] = [:]
    /// The operation from which on compaction may have emptied them.
    var compactionFrom = Int.max
    var ends: [End] = []
    var last: UInt64 = 0

    init(workload: Workload) { self.workload = workload }

    /// Takes down a line that is durable, in order.
    mutating func add(_ line: [UInt8], at position: UInt64) {
        lines[position] = line
        guard
            let event = try? LogReader.event(
                line.span.bytes, Workload.catalogue, directory: Workload.directory)
        else { return }
        values.fold(event)
        states[position] = (try? values.encodedState()) ?? []
    }

    /// The last position that must be there before an operation, and the last that may be there.
    func durable(before operation: Int) -> ClosedRange<UInt64> {
        let least = ends.last { $0.operations <= operation }?.last ?? 0
        let most = ends.first { $0.operations > operation }?.last ?? last
        return least...max(least, most)
    }
}
