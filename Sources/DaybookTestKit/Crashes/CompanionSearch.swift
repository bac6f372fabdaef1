// The owner of a log and three companions on one simulated disk. Each step of a process is interrupted at one of its
// calls by a whole step of another, which may be interrupted in turn; processes are killed and the power is cut.
// Spec/testing/testing.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization

/// How often each event was folded: a fold that counts an event twice shows.
public struct EventTally: Projection, Codable, Hashable {
    public static let name = "event-tally"
    public static let version = 1
    /// The number of folds by event id.
    public private(set) var counts: [String: Int] = [:]

    public init() {}

    public mutating func fold(_ event: Event) {
        guard event.type == ValueSet.type else { return }
        counts[event.id.text, default: 0] += 1
    }
}

/// One run of an owner and its companions.
public final class CompanionSearch: Sendable {
    private enum Action: Sendable {
        case append, look, absorb, checkpoint, reopen
    }

    private final class Step: Sendable {
        let process: Int
        let action: Action
        /// The call before which steps of other processes run, and before which the process is then stopped, if it is.
        let interruption: (call: Int, steps: [Step], stops: Bool)?
        let killAt: Int?

        init(
            _ process: Int, _ action: Action,
            _ interruption: (call: Int, steps: [Step], stops: Bool)?, killAt: Int?
        ) {
            self.process = process
            self.action = action
            self.interruption = interruption
            self.killAt = killAt
        }

        var description: String {
            let who = ["owner", "widget", "second widget", "share"][process]
            return "\(who) \(action)" + (killAt.map { " killed at \($0)" } ?? "")
                + (interruption.map { interruption in
                    let steps = interruption.steps.map(\.description).joined(separator: ", ")
                    return " [at \(interruption.call): \(steps)"
                        + (interruption.stops ? " stopped]" : "]")
                } ?? "")
        }
    }

    private static let directory = "/log"
    private static let names = ["", "widget", "widget", "share"]

    private let files: SimulatedFileSystem
    private let processes: [Process]
    private let outcome = Mutex(Outcome())

    private struct Outcome {
        /// By process, in order.
        var acknowledged: [Int: [String]] = [:]
        var counts: [String: Int] = [:]
        var failure: BrokenInvariant?
        var openings: UInt64 = 0
        var isPowerOff = false
    }

    private final class Process: Sendable {
        struct State {
            var system: InterruptedFileSystem
            var owner: EventStore?
            var companion: CompanionStore?
            /// Continues the caller of `run(_:)` when the step has ended or the process is stopped.
            var caller: CheckedContinuation<Void, Never>?
            /// Continues the process if it is stopped.
            var stopped: CheckedContinuation<Void, Never>?
        }
        let state: Mutex<State>
        init(_ files: SimulatedFileSystem) {
            state = Mutex(State(system: InterruptedFileSystem(files)))
        }
    }

    private init(_ files: SimulatedFileSystem) {
        self.files = files
        processes = (0..<4).map { _ in Process(files) }
    }

    /// Draws a history, runs it, and checks what is left after it.
    ///
    /// - Throws: `BrokenInvariant` if an acknowledged event is missing, an event counts twice, the events of a process are
    ///   not in its order, a view is not the fold of the events, or a spool stays; `LogError` where the log does not open.
    public static func run(_ choices: inout Choices) async throws {
        let files = SimulatedFileSystem(
            medium: Medium(sectorBytes: choices.bool() ? 4_096 : 512))
        let search = CompanionSearch(files)
        let first = Step(0, .append, nil, killAt: nil)
        await search.run(first)
        let steps = choices.array(2...8) { Self.step(&$0, busy: []) }
        for step in steps { choices.note(step.description) }
        let cut = choices.bool(oneIn: 3) ? files.operations + choices.int(in: 0...250) : nil
        if let cut {
            files.cutPower(at: cut)
            choices.note("power cut at operation \(cut)")
        }
        for step in steps { await search.run(step) }
        for number in search.processes.indices { await search.resume(number) }
        let isCut = cut.map { files.operations >= $0 } ?? false
        for process in search.processes {
            process.state.withLock { ($0.owner, $0.companion) = (nil, nil) }
        }
        files.endFaults()
        let left = isCut ? files.afterPowerCut(&choices) : files.afterKill()
        let outcome = search.outcome.withLock { $0 }
        for (label, count) in outcome.counts { choices.count(label, by: count) }
        choices.count(isCut ? "power cuts" : "runs without a power cut")
        if let failure = outcome.failure { throw failure }
        try await search.check(left, outcome)
    }

    private static func step(_ choices: inout Choices, busy: Set<Int>) -> Step {
        let process = choices.element(of: (0..<4).filter { !busy.contains($0) })
        let action: Action =
            process == 0
            ? choices.element(of: [.absorb, .absorb, .append, .checkpoint, .reopen])
            : choices.element(of: [.append, .append, .look, .look, .reopen])
        var interruption: (Int, [Step], Bool)?
        if !choices.bool(oneIn: 4) {
            let inner = choices.array(busy.count < 3 ? 0...2 : 0...0) {
                step(&$0, busy: busy.union([process]))
            }
            interruption = (choices.int(in: 0...80), inner, choices.bool(oneIn: 4))
        }
        let killAt = choices.bool(oneIn: 6) ? choices.int(in: 0...120) : nil
        return Step(process, action, interruption, killAt: killAt)
    }

    // MARK: Running

    /// Runs a step until it ends or its process is stopped. A process that is stopped continues instead.
    private func run(_ step: Step) async {
        guard await !resume(step.process) else { return }
        await withCheckedContinuation { caller in
            processes[step.process].state.withLock { $0.caller = caller }
            Task {
                await self.runToEnd(step)
                self.continueCaller(of: step.process)
            }
        }
    }

    /// Continues a stopped process until its step ends.
    ///
    /// - Returns: false if the process is not stopped.
    @discardableResult
    private func resume(_ number: Int) async -> Bool {
        let process = processes[number]
        let stopped = process.state.withLock { state in
            defer { state.stopped = nil }
            return state.stopped
        }
        guard let stopped else { return false }
        await withCheckedContinuation { caller in
            process.state.withLock { $0.caller = caller }
            stopped.resume()
        }
        return true
    }

    private func stop(_ number: Int) async {
        count("stops")
        await withCheckedContinuation { stopped in
            processes[number].state.withLock { $0.stopped = stopped }
            continueCaller(of: number)
        }
    }

    private func continueCaller(of number: Int) {
        let caller = processes[number].state.withLock { state in
            defer { state.caller = nil }
            return state.caller
        }
        caller?.resume()
    }

    private func runToEnd(_ step: Step) async {
        let process = processes[step.process]
        let system = process.state.withLock { $0.system }
        system.arm(interruptAt: step.interruption?.call, killAt: step.killAt) {
            for inner in step.interruption?.steps ?? [] {
                self.count("interruptions")
                await self.run(inner)
            }
            if step.interruption?.stops ?? false { await self.stop(step.process) }
        }
        do {
            try await perform(step)
        } catch let broken as BrokenInvariant {
            outcome.withLock { $0.failure = $0.failure ?? broken }
        } catch {
            if "\(error)".contains("the power is off") { outcome.withLock { $0.isPowerOff = true } }
            // A process that was not killed has no other reason to fail.
            if !system.isKilled {
                outcome.withLock { outcome in
                    guard !outcome.isPowerOff else { return }
                    outcome.failure =
                        outcome.failure ?? BrokenInvariant("I11", "\(step.description): \(error)")
                }
            }
        }
        system.disarm()
        if system.isKilled {
            count("kills")
            process.state.withLock {
                $0 = Process.State(system: InterruptedFileSystem(files), caller: $0.caller)
            }
        }
    }

    private func count(_ label: String) { outcome.withLock { $0.counts[label, default: 0] += 1 } }

    private func perform(_ step: Step) async throws {
        count("\(step.action)")
        if step.process == 0 {
            try await performOwner(step.action)
        } else {
            try await performCompanion(step.action, step.process)
        }
    }

    private func performOwner(_ action: Action) async throws {
        let process = processes[0]
        if case .reopen = action {
            try await process.state.withLock { $0.owner }?.close()
            process.state.withLock { $0.owner = nil }
        }
        let owner = try await openOwner()
        switch action {
        case .append:
            let draft = try draft(of: 0)
            try await owner.append(draft)
            acknowledge(draft, by: 0)
        case .absorb: try await owner.absorbCompanions()
        case .checkpoint: try await owner.checkpoint()
        case .look, .reopen: break
        }
        try requireOnce(owner.view(EventTally.self), "the owner's view")
    }

    private func openOwner() async throws -> EventStore {
        let process = processes[0]
        if let owner = process.state.withLock({ $0.owner }) { return owner }
        let system = process.state.withLock { $0.system }
        // The threads of a process that was killed may still hold the lock.
        for attempt in 0..<2_000 {
            do {
                let owner = try await EventStore.open(
                    at: Self.directory, catalogue: Workload.catalogue, views: [EventTally.self],
                    environment: environment(system))
                process.state.withLock { $0.owner = owner }
                return owner
            } catch let error as LogError where error.code == .locked && attempt < 1_999 {
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
        throw LogError(.locked, path: Self.directory, "the owner cannot be opened")
    }

    private func performCompanion(_ action: Action, _ number: Int) async throws {
        let process = processes[number]
        let name = Self.names[number]
        if case .reopen = action { process.state.withLock { $0.companion = nil } }
        let before = outcome.withLock {
            Set(
                $0.acknowledged.filter { $0.key == 0 || Self.names[$0.key] == name }.flatMap(
                    \.value))
        }
        let companion: CompanionStore
        if let open = process.state.withLock({ $0.companion }) {
            companion = open
            if case .look = action { try await companion.refresh() }
        } else {
            companion = try await CompanionStore.open(
                at: Self.directory, name: name, catalogue: Workload.catalogue,
                views: [EventTally.self],
                environment: environment(process.state.withLock { $0.system }))
            process.state.withLock { $0.companion = companion }
        }
        var expected: Set<String> = []
        switch action {
        case .append:
            let draft = try draft(of: number)
            try await companion.append(draft)
            acknowledge(draft, by: number)
            expected = [draft.id.text]
        case .look, .reopen: expected = before
        case .absorb, .checkpoint: break
        }
        let tally = await companion.view(EventTally.self)
        try requireOnce(tally, "the view of \(name)")
        let missing = expected.subtracting(tally.counts.keys)
        try RecoveryCheck.require(missing.isEmpty, "I1", "the view of \(name) lacks \(missing)")
    }

    private func acknowledge(_ draft: EventDraft, by process: Int) {
        outcome.withLock { $0.acknowledged[process, default: []].append(draft.id.text) }
        count("acknowledged events")
    }

    private func draft(of process: Int) throws -> EventDraft {
        let number = outcome.withLock { $0.counts.count + ($0.counts["acknowledged events"] ?? 0) }
        return try EventDraft(ValueSet(key: "\(process)\(number % 3)", value: "\(number)"))
    }

    private func requireOnce(_ tally: EventTally, _ name: String) throws {
        let twice = tally.counts.filter { $0.value != 1 }
        try RecoveryCheck.require(twice.isEmpty, "I3", "\(name) counts events twice: \(twice)")
    }

    private func environment(_ files: any FileSystem) -> LogEnvironment {
        let seed = outcome.withLock {
            $0.openings += 1
            return $0.openings
        }
        let random = Mutex(SeededRandom(seed: seed &* 0x9E37_79B9_7F4A_7C15))
        return LogEnvironment(
            fileSystem: files, now: { 1_771_756_214_425 },
            random: { random.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) } },
            sleep: { _ in throw CancellationError() })
    }

    // MARK: Checking

    /// Opens the log on a disk without processes, absorbs, and compares it with what was acknowledged.
    private func check(_ files: SimulatedFileSystem, _ outcome: Outcome) async throws {
        let environment = environment(files)
        let owner = try await EventStore.open(
            at: Self.directory, catalogue: Workload.catalogue, views: [EventTally.self],
            environment: environment)
        _ = try await owner.absorbCompanions()
        let report = try await owner.absorbCompanions()
        try RecoveryCheck.require(report.left.isEmpty, "I12", "spools stay: \(report.left)")
        let left = try CompanionSpool.all(of: Self.directory, environment: environment)
        try RecoveryCheck.require(left.isEmpty, "I12", "spools stay: \(left)")
        let tally = owner.view(EventTally.self)
        try requireOnce(tally, "the owner's view")
        var positions: [String: Position] = [:]
        try LogReader(Self.directory, fileSystem: files).forEachLine(from: Position(1)) {
            prefix, _ in
            positions[UUID(integer: prefix.id).text] = prefix.position
            return true
        }
        for (process, ids) in outcome.acknowledged {
            let lost = ids.filter { tally.counts[$0] == nil }
            try RecoveryCheck.require(lost.isEmpty, "I1", "lost events of \(process): \(lost)")
            let found = ids.compactMap { positions[$0] }
            try RecoveryCheck.require(
                found == found.sorted(), "I7", "events of \(process) in another order: \(found)")
        }
        let companion = try await CompanionStore.open(
            at: Self.directory, name: "widget", catalogue: Workload.catalogue,
            views: [EventTally.self], environment: environment)
        let seen = await companion.view(EventTally.self)
        try RecoveryCheck.require(seen == tally, "I5", "the companion's view is another one")
        try await owner.close()
    }
}
