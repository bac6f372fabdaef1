// An owner and companions as real processes, on real files, stopped, continued and killed at random. A process that is
// stopped between its appends holds no lock; one that is stopped inside an append holds up no other; in the end the log
// has every acknowledged event once, in each process's order. Spec/testing/testing.md.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage

/// The error of a run with a wrong result.
package struct CompanionKillsFailure: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// The processes of one log.
package final class CompanionKills {
    private let command: URL
    private let duration: Duration
    private let progress: (String) -> Void
    private var choices: Choices
    private let folder: TemporaryFolder
    private var log: String { folder.path + "/log" }
    private var children: [StoppableChild] = []

    /// Three processes share each name.
    private static let namesakes = 3
    /// How long a process that is not stopped may be silent on a loaded machine.
    private static let silenceMax = Duration.seconds(30)

    /// - Parameters:
    ///   - command: the executable that runs a `CompanionChild` with `append-companion` and an `OwnerChild` with
    ///     `own-log`.
    ///   - companions: the number of companions.
    ///   - duration: how long the processes are stopped and killed.
    ///   - seed: the seed of moments. The processes run freely, so it does not repeat a run.
    ///   - progress: called with messages of progress.
    package init(
        _ command: URL, companions: Int, for duration: Duration, seed: UInt64,
        progress: @escaping (String) -> Void
    ) throws {
        self.command = command
        self.duration = duration
        self.progress = progress
        choices = Choices(seed: seed)
        folder = try TemporaryFolder()
        let log = log
        children = [StoppableChild(command, ["own-log", log], isOwner: true)]
        children += (0..<companions).map { number in
            StoppableChild(
                command, ["append-companion", log, "widget\(number / Self.namesakes)"],
                isOwner: false)
        }
    }

    /// Runs the processes.
    ///
    /// - Returns: the counts by label.
    /// - Throws: `CompanionKillsFailure`.
    package func run() async throws -> [String: Int] {
        defer { folder.remove() }
        try await ChildLog.open(log).close()
        defer { for child in children { child.kill() } }
        for child in children { try child.start() }
        let end = ContinuousClock.now + duration
        var reported = ContinuousClock.now
        while ContinuousClock.now < end {
            try step()
            if ContinuousClock.now - reported > .seconds(30) {
                reported = .now
                progress("\(choices.counts.sorted { $0.key < $1.key })")
            }
        }
        try stopAllIdle()
        for child in children { child.kill() }
        try await check()
        return choices.counts
    }

    // MARK: Signals

    private func step() throws {
        usleep(UInt32(choices.int(in: 0...20)) * 1_000)
        let blocked = children.filter { $0.isStopped && $0.locks > 0 && !$0.isOwner }.count
        for child in children {
            let acknowledged = try child.drain()
            choices.count("acknowledged events", by: acknowledged)
            if blocked > 0 {
                choices.count("acknowledged while one was stopped with a lock", by: acknowledged)
            }
            guard child.isStopped || child.silence < Self.silenceMax else {
                throw CompanionKillsFailure("\(child.name) is held up by another process")
            }
        }
        for child in children where child.isStopped && ContinuousClock.now > child.stoppedUntil {
            child.resume()
        }
        let child = choices.element(of: children)
        switch choices.int(in: 0...9) {
        case 0:
            child.kill()
            choices.count(child.isStopped ? "kills of a stopped process" : "kills")
            choices.count("acknowledged events", by: try child.drain())
            try child.start()
        case 1...6 where !child.isStopped: try stop(child)
        default: break
        }
    }

    private func stop(_ child: StoppableChild) throws {
        // Some for long: longer than the wait for any lock.
        let milliseconds =
            choices.bool(oneIn: 8) ? choices.int(in: 1_000...6_000) : choices.int(in: 0...300)
        try child.stop(for: .milliseconds(milliseconds))
        choices.count("acknowledged events", by: try child.drain())
        let kind = child.isOwner ? "owner" : "companion"
        guard child.isIdle else {
            choices.count("stops while busy, \(kind)")
            if child.locks > 0 { choices.count("stops with a lock, \(kind)") }
            return
        }
        choices.count("stops while idle, \(kind)")
        guard child.locks == 0 else {
            throw CompanionKillsFailure(
                "\(child.name) holds \(child.locks) locks while it is stopped and idle")
        }
    }

    /// Stops every process while it is idle: no lock of any file in the log's folder is held.
    private func stopAllIdle() throws {
        // The owner last: it is rarely idle while others append.
        for child in children.reversed() {
            child.resume()
            let end = ContinuousClock.now + Self.silenceMax
            repeat {
                child.resume()
                usleep(UInt32(choices.int(in: 0...20)) * 1_000)
                try child.stop(for: .seconds(3_600))
                choices.count("acknowledged events", by: try child.drain())
            } while !child.isIdle && ContinuousClock.now < end
            guard child.isIdle else {
                throw CompanionKillsFailure("\(child.name) does not become idle")
            }
        }
        let held = try StoppableChild.locks(inFolder: log)
        choices.count("locks in the folder while all are stopped and idle", by: held.count)
        guard held.isEmpty else {
            throw CompanionKillsFailure("locks while all are stopped and idle: \(held)")
        }
    }

    // MARK: Checking

    private func check() async throws {
        let owner = try await ChildLog.open(log)
        try await owner.absorbCompanions()
        let report = try await owner.absorbCompanions()
        let spools = try CompanionSpool.all(of: log)
        let view = owner.view(Sequences.self)
        guard report.left.isEmpty, spools.isEmpty else {
            throw CompanionKillsFailure("spools stay: \(spools)")
        }
        guard view.faults.isEmpty else {
            throw CompanionKillsFailure("lost, doubled or out of order: \(view.faults)")
        }
        for (key, number) in children.flatMap(\.acknowledged) {
            // One more may be durable without an acknowledgement.
            guard (number...number + 1).contains(view.last[key] ?? 0) else {
                throw CompanionKillsFailure(
                    "the log has \(view.last[key] ?? 0) events of \(key), not \(number)")
            }
        }
        var ids: Set<UInt128> = []
        var count = 0
        var folded = Sequences()
        try LogReader(log).forEachEvent(catalogue: ChildLog.catalogue) { event in
            count += 1
            ids.insert(event.id.integer)
            folded.fold(event)
            return true
        }
        let companion = try await ChildLog.companion(log, "widget0")
        let seen = await companion.view(Sequences.self)
        guard ids.count == count, folded == view, seen == view else {
            throw CompanionKillsFailure(
                "the views differ from the fold, or of \(count) events \(count - ids.count) are "
                    + "doubled")
        }
        choices.count("events in the log", by: count)
        choices.count("processes", by: view.last.count)
        try await owner.close()
    }
}
