// Opens the log in every state that a crash may leave, and checks that it recovers. The operations are
// Workload's, the states CrashPoint's, the invariants RecoveryCheck's. Spec/testing/testing.md.

import LogStorage

/// A search through the disk states that crashes leave.
public struct CrashSearch: Sendable {
    /// The number of states, crashes and outcomes of each kind.
    public private(set) var counts: [String: Int] = [:]
    /// The number of states that are tried at each crash point.
    public let scope: CrashPoint.Scope
    /// One state in `nestedOneIn` is crashed again during its recovery; 0 means none.
    public let nestedOneIn: UInt64
    /// After one recovery in `workedOnOneIn` the log is opened again, appended to, sealed and verified; 0
    /// means none.
    public let workedOnOneIn: UInt64
    private var random: SeededRandom

    /// The depth of nested crashes: the workload's, its recovery's, and that recovery's recovery's.
    public static let depthMax = 3
    /// The number of crash points that are drawn from one recovery.
    private static let crashesPerRecovery = 4

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

    /// The number of states that were checked.
    public var states: Int { counts["crash states"] ?? 0 }

    /// Checks all crash points of a run. On a medium that guarantees less than Spec/format/recovery.md
    /// assumes, the log need not recover, but must detect the damage: opening returns only lines that were
    /// appended, or throws a typed error.
    ///
    /// - Parameters:
    ///   - run: the result of `Workload.run(on:)`.
    ///   - points: the crash points that the simulated file system recorded in that run.
    /// - Throws: `CrashFailure` for a state that breaks an invariant.
    public mutating func explore(_ run: WorkloadRun, _ points: [CrashPoint]) throws {
        for point in points {
            count("crash points")
            count("process kills")
            try check(
                point.afterKill(), RecoveryCheck(run, at: point.operation), ["\(point), kill"])
            let isAll = try point.forEachState(in: scope, seed: random.next()) { files, decision in
                try check(
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

    private mutating func check(
        _ files: SimulatedFileSystem, _ invariants: RecoveryCheck,
        _ trail: @autoclosure () -> [String],
        depth: Int = 1
    ) throws {
        count("crash states")
        if depth > 1 { count(depth == 2 ? "double crashes" : "triple crashes") }
        // Nested crashes are rare, so a larger share of them is crashed again.
        let isNested =
            depth < Self.depthMax && isOne(in: depth == 1 ? nestedOneIn : 2, random.next())
        let isContinued = isOne(in: workedOnOneIn, random.next())
        if isNested { files.record() }
        do {
            guard files.medium.isSound else {
                count(
                    try invariants.detectsDamage(files) ? "damage noticed" : "damage harmless")
                return
            }
            let log = try invariants.recover(files)
            let points = isNested ? files.crashPoints : []
            if isContinued {
                count("recoveries worked on")
                try RecoveryCheck.checkContinuation(of: log, files)
            }
            for _ in 0..<(points.isEmpty ? 0 : Self.crashesPerRecovery) {
                let point = points[Int(random.next() % UInt64(points.count))]
                let seed = random.next()
                var choices = Choices(seed: seed)
                let machine = seed % 8 == 0 ? point.afterKill() : point.afterPowerCut(&choices)
                let outerTrail = trail()
                try check(
                    machine, invariants, outerTrail + ["recovery: \(point), seed \(seed)"],
                    depth: depth + 1)
            }
        } catch let failure as CrashFailure {
            throw failure
        } catch {
            throw CrashFailure(run: invariants.run, trail: trail(), cause: error)
        }
    }
}

extension CrashPoint: CustomStringConvertible {
    /// The number of the next operation, and the operation.
    public var description: String { "crash at operation \(operation), before \(next)" }
}

/// A state from which the log did not recover correctly.
public struct CrashFailure: Error, CustomStringConvertible {
    let run: WorkloadRun
    /// The crashes that led to the state, the workload's first.
    public let trail: [String]
    /// The invariant that does not hold, or the error of the log.
    public let cause: any Error

    /// The cause, the workload and the crashes, one a line.
    public var description: String {
        (["the log did not recover from a crash: \(cause)", "  workload \(run.workload)"]
            + trail.map { "  \($0)" }).joined(separator: "\n")
    }
}
