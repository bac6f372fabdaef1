// The power fails, or the process is killed, anywhere in a repair, and in the repair after that. The next
// repair has the same result as an uninterrupted one: no intact line is missing.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@testable import LogStorage

@Suite struct RepairCrashTests {
    /// Ways to damage a log of three segments.
    enum Damage: String, CaseIterable, Sendable {
        case block, header, footer, missing, cut, swapped, doubled, foreign, noise, twoSegments
        case renamedAndDamaged, unwhole

        func apply(to log: DamagedLog) throws {
            let stray = DamagedLog.path(SegmentName.of(Position(99)))
            switch self {
            case .block: try log.change(log.path(0)) { $0[560] ^= 1 }
            case .header:
                try log.change(log.path(1)) {
                    $0.replaceSubrange(0..<512, with: repeatElement(7, count: 512))
                }
            case .footer: try log.change(log.path(0)) { $0[$0.count - 3] ^= 1 }
            case .missing: try log.remove(log.path(1))
            case .cut: try log.change(log.path(2)) { $0.removeLast($0.count / 2) }
            case .swapped:
                let bytes = try log.read(log.path(0))
                try log.write(try log.read(log.path(1)), to: log.path(0))
                try log.write(bytes, to: log.path(1))
            case .doubled:
                try log.write(try log.read(log.path(1)), to: stray)
                try log.change(log.path(1)) { $0[560] ^= 1 }
            case .foreign:
                var header = SegmentHeader(
                    logID: 5, account: nil, base: Position(99), createdAt: 0)
                header.compatibleFlags = 1
                try log.write(header.encoded() + [1, 2, 3], to: stray)
            case .noise:
                try log.write([UInt8](repeating: 0x5A, count: 700), to: log.path(2))
            case .twoSegments:
                try log.change(log.path(0)) { $0[560] ^= 1 }
                try log.change(log.path(2)) { $0[560] ^= 1 }
            case .renamedAndDamaged:
                // The second segment is lost; the first has its name and is damaged.
                try log.change(log.path(0)) { $0[$0.count - 3] ^= 1 }
                try log.write(try log.read(log.path(0)), to: log.path(1))
                try log.remove(log.path(0))
            case .unwhole:
                try log.write([1, 2, 3], to: DamagedLog.path("rewrite"))
                try log.change(log.path(0)) { $0[560] ^= 1 }
            }
        }
    }

    /// A damaged log with a checkpoint, on a machine whose power can be cut.
    private func damaged(
        _ damage: Damage, _ ending: DamagedLog.Ending
    ) throws -> (log: DamagedLog, files: SimulatedFileSystem) {
        let files = SimulatedFileSystem()
        let log = try DamagedLog(on: files, commits: DamagedLog.small, ending: ending)
        let released = files.afterKill()
        let copy = log.moved(to: released)
        try released.createDirectory(DamagedLog.path("checkpoints"))
        try copy.write([1], to: DamagedLog.path("checkpoints/a"))
        try released.syncDirectory(DamagedLog.path("checkpoints"))
        try damage.apply(to: copy)
        return (copy, released)
    }

    private func positions(_ log: DamagedLog) throws -> Set<Position> {
        var found: Set<Position> = []
        try LogReader(TestLog.path, fileSystem: log.files).forEachLine { prefix, _ in
            found.insert(prefix.position)
            return true
        }
        return found
    }

    /// Repairs a copy without a fault, for the expected positions and the number of operations.
    private func rehearse(
        _ log: DamagedLog, _ files: SimulatedFileSystem
    ) throws -> (positions: Set<Position>, operations: Int) {
        let machine = files.afterKill()
        let rehearsal = log.moved(to: machine)
        try #require(try !rehearsal.repair().repair().actions.isEmpty)
        let operations = machine.operations
        return (try positions(rehearsal), operations)
    }

    private func check(_ log: DamagedLog, _ expected: Set<Position>, _ what: String) throws {
        _ = try log.repair().repair()
        try #require(try positions(log) == expected, "\(what): lines are missing")
        try #require(try log.image()["checkpoints/a"] == nil, "\(what): stored views stay")
        try log.checkRepaired(nil, what)
    }

    @Test(.verifies("REP-5"), arguments: Damage.allCases)
    func `a repair that is killed anywhere is completed by the next`(damage: Damage) throws {
        let (log, files) = try damaged(damage, .closed)
        let (expected, operations) = try rehearse(log, files)
        #expect(operations > 5)
        for cut in 0..<operations {
            var machine = files.afterKill()
            machine.cutPower(at: cut)
            #expect(throws: LogError.self) { try log.moved(to: machine).repair().repair() }
            machine = machine.afterKill()
            try check(log.moved(to: machine), expected, "\(damage), killed at \(cut)")
        }
    }

    @Test(.verifies("REP-3", "REP-5", "CHK-5"))
    func `a repair that is killed anywhere never lets a position be reused`() throws {
        let files = SimulatedFileSystem()
        let made = try DamagedLog(on: files, commits: DamagedLog.small, ending: .closed)
        let released = files.afterKill()
        let log = made.moved(to: released)
        let open = try Log(at: TestLog.path, environment: TestLog.environment(released))
        for _ in 0..<2 {
            try CheckpointSlots(TestLog.path, fileSystem: released).write(
                try open.snapshot().checkpoint(states: [], createdAt: 1, seed: 5))
        }
        try open.close()
        let last = Position(UInt64(log.lines.count))
        for empties in [false, true] {
            let damaged = log.moved(to: released.afterKill())
            if empties {
                try damaged.write([], to: damaged.path(2))
            } else {
                try damaged.remove(damaged.path(2))
            }
            let base = try #require(damaged.files as? SimulatedFileSystem)
            let rehearsal = base.afterKill()
            _ = try log.moved(to: rehearsal).repair().repair()
            for cut in 0..<rehearsal.operations {
                var machine = base.afterKill()
                machine.cutPower(at: cut)
                _ = try? log.moved(to: machine).repair().repair()
                machine = machine.afterKill()
                // Opening refuses, or continues after all acknowledged positions.
                let opened = try? Log(
                    at: TestLog.path, create: false,
                    environment: TestLog.environment(machine.afterKill()))
                if let opened { try #require(opened.next > last, "killed at \(cut)") }
                _ = try log.moved(to: machine).repair().repair()
                let after = try Log(
                    at: TestLog.path, create: false, environment: TestLog.environment(machine))
                try #require(after.next > last, "killed at \(cut)")
                try after.close()
            }
        }
    }

    @Test(.verifies("REP-5"))
    func `a repair whose power fails anywhere, three times over, is completed by the next`()
        throws
    {
        try Property.check("repair survives power cuts", runs: TestLog.isDebug ? 150 : 5_000) {
            choices in
            let damage = choices.element(of: Damage.allCases)
            let ending = choices.element(of: DamagedLog.Ending.allCases)
            choices.note("\(damage), \(ending)")
            let (log, files) = try damaged(damage, ending)
            // Repair does not treat a torn or truncated end from which opening can recover.
            guard try log.isDamaged() else { return }
            let (expected, operations) = try rehearse(log, files)
            var machine = files.afterKill()
            for depth in 1...3 {
                let cut = choices.int(in: 0...operations)
                machine.cutPower(at: cut)
                _ = try? log.moved(to: machine).repair().repair()
                choices.note("repair \(depth) cut at \(cut): \(machine.trace.suffix(2))")
                machine =
                    choices.bool(oneIn: 4)
                    ? machine.afterKill() : machine.afterPowerCut(&choices)
                guard depth < 3, choices.bool() else { break }
            }
            try check(log.moved(to: machine), expected, "\(damage)")
        }
    }

    /// Each of two swapped files is the only copy of its lines; neither may be lost while they are renamed.
    @Test(.verifies("REP-5"))
    func `swapped segments survive power cuts at the end of a repair`()
        throws
    {
        let (log, files) = try damaged(.swapped, .closed)
        let (expected, operations) = try rehearse(log, files)
        try Property.check("swapped segments survive", runs: TestLog.isDebug ? 80 : 1_000) {
            choices in
            let machine = files.afterKill()
            machine.cutPower(at: operations - choices.int(in: 1...8))
            _ = try? log.moved(to: machine).repair().repair()
            try check(log.moved(to: machine.afterPowerCut(&choices)), expected, "swapped")
        }
    }

    @Test(.verifies("REP-5"), arguments: [Damage.block, .swapped, .missing])
    func `a repair that fails at any operation leaves the log as it was or repaired`(
        damage: Damage
    ) throws {
        let log = try DamagedLog(on: InMemoryFileSystem(), commits: DamagedLog.small).released()
        try damage.apply(to: log)
        let files = try #require(log.files as? InMemoryFileSystem)
        let rehearsal = log.moved(to: files.snapshot())
        _ = try rehearsal.repair().repair()
        let expected = try positions(rehearsal)
        var failing = 0
        while true {
            let copy = files.snapshot()
            let counter = OperationCounter(failingAt: failing)
            copy.failing { counter.error($0, $1) }
            _ = try? log.moved(to: copy).repair().repair()
            copy.failing(nil)
            #expect(copy.openFileCount == 0)
            let repaired = log.moved(to: copy)
            _ = try repaired.repair().repair()
            try #require(try positions(repaired) == expected, "failed at \(failing)")
            try repaired.checkRepaired(nil, "failed at \(failing)")
            guard counter.hasFailed else { break }
            failing += 1
        }
        #expect(failing > 20)
    }

    @Test(.verifies("REP-3"))
    func `the rewrite journal of an interrupted recovery survives damage to its segment`() throws {
        let files = SimulatedFileSystem()
        let log = try DamagedLog(on: files, commits: DamagedLog.small, ending: .killed)
        var isShown = false
        for cut in 0..<12 {
            let machine = files.afterKill()
            machine.cutPower(at: cut)
            _ = try? Log(at: TestLog.path, environment: TestLog.environment(machine))
            let copy = log.moved(to: machine.afterKill())
            guard try copy.image()["rewrite"] != nil else { continue }
            // The last commit, which the journal has, is torn, and so is the first, which it does not have.
            let commits = try copy.commits(2)
            try copy.change(copy.path(2)) { bytes in
                for at in commits[2].offset..<commits[2].end { bytes[at] = 0x77 }
            }
            try copy.change(copy.path(0)) { $0[560] ^= 1 }
            let report = try copy.checkRepair("cut at \(cut)")
            #expect(report.lost == [Position(1)...Position(5)])
            isShown = true
        }
        #expect(isShown)
    }
}
