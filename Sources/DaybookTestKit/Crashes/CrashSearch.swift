// Takes every state that a crash may leave and looks whether the log recovers from it. Comes after
// Workload; the states are CrashPoint's, what must hold is RecoveryCheck's.
// Spec/testing/testing.md.

import LogStorage

/// A search through the states that crashes leave.
public struct CrashSearch: Sendable {
    /// What was looked at, by what it is.
    public private(set) var counts: [String: Int] = [:]
    /// How far each crash point is searched.
    public let scope: CrashPoint.Scope
    /// One state in so many is crashed again in its recovery, and that perhaps once more.
    public let nestedOneIn: UInt64
    /// One state in so many is worked on: opened again, appended to, sealed, verified.
    public let workedOnOneIn: UInt64
    private var random: SeededRandom

    /// Crashes within each other: the workload's, its recovery's, and that one's recovery's.
    public static let depthMax = 3
    /// How many crashes of a recovery are looked at.
    private static let crashesOfRecovery = 4

    /// Creates a search.
    public init(
        scope: CrashPoint.Scope = CrashPoint.Scope(), nestedOneIn: UInt64 = 8,
        workedOnOneIn: UInt64 = 8, seed: UInt64 = 0
    ) {
        self.scope = scope
        self.nestedOneIn = nestedOneIn
        self.workedOnOneIn = workedOnOneIn
        random = SeededRandom(seed: seed)
    }

    /// States looked at so far.
    public var states: Int { counts["crash states"] ?? 0 }

    /// Searches through all crash points of a run. On a medium that promises less than
    /// Spec/format/recovery.md assumes, the log must not survive but notice: it opens with lines that were
    /// appended, or refuses with a typed error.
    ///
    /// - Parameters:
    ///   - run: what `Workload.run(on:)` gave.
    ///   - points: the machine's crash points.
    /// - Throws: `CrashFailure` for a state that breaks an invariant.
    public mutating func explore(_ run: WorkloadRun, _ points: [CrashPoint]) throws {
        for point in points {
            count("crash points")
            count("process kills")
            try look(point.afterKill(), RecoveryCheck(run, at: point.operation), ["\(point), kill"])
            let isAll = try point.forEachState(in: scope, seed: random.next()) { files, decision in
                try look(
                    files, RecoveryCheck(run, at: point.operation),
                    ["\(point), state \(decision)"])
            }
            count(isAll ? "crash points with all combinations" : "crash points sampled")
        }
    }

    private mutating func count(_ label: String) { counts[label, default: 0] += 1 }

    private func isOne(in number: UInt64, _ draw: UInt64) -> Bool {
        number > 0 && draw % number == 0
    }

    private mutating func look(
        _ files: SimulatedFileSystem, _ check: RecoveryCheck, _ trail: @autoclosure () -> [String],
        depth: Int = 1
    ) throws {
        count("crash states")
        if depth > 1 { count(depth == 2 ? "double crashes" : "triple crashes") }
        // A crash within a crash is rare enough to be crashed again more often.
        let isNested =
            depth < Self.depthMax && isOne(in: depth == 1 ? nestedOneIn : 2, random.next())
        let isWorkedOn = isOne(in: workedOnOneIn, random.next())
        if isNested { files.record() }
        do {
            guard files.medium.isSound else {
                count(try check.notice(files) ? "damage noticed" : "damage harmless")
                return
            }
            let log = try check.recover(files)
            let points = isNested ? files.crashPoints : []
            if isWorkedOn {
                count("recoveries worked on")
                try RecoveryCheck.workOn(log, files)
            }
            for _ in 0..<(points.isEmpty ? 0 : Self.crashesOfRecovery) {
                let point = points[Int(random.next() % UInt64(points.count))]
                let seed = random.next()
                var choices = Choices(seed: seed)
                let machine = seed % 8 == 0 ? point.afterKill() : point.afterPowerCut(&choices)
                let known = trail()
                try look(
                    machine, check, known + ["recovery: \(point), seed \(seed)"], depth: depth + 1)
            }
        } catch let failure as CrashFailure {
            throw failure
        } catch {
            throw CrashFailure(run: check.run, trail: trail(), cause: error)
        }
    }
}

extension CrashPoint: CustomStringConvertible {
    /// Where it is, in words.
    public var description: String { "crash at operation \(operation), before \(next)" }
}

/// A state from which a log did not recover as it must.
public struct CrashFailure: Error, CustomStringConvertible {
    let run: WorkloadRun
    /// The crashes, the workload's first.
    public let trail: [String]
    /// What is wrong.
    public let cause: any Error

    /// All of it, in several lines.
    public var description: String {
        (["a crash was not survived: \(cause)", "  workload \(run.workload)"]
            + trail.map { "  \($0)" }).joined(separator: "\n")
    }
}
