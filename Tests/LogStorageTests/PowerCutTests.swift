// The power fails anywhere: in an append, a roll, a close, and in the recovery from an earlier failure.
// Acknowledged lines exist, commits are complete, and the log accepts appends.

import DaybookTestKit
import LogFormat
import LogStorage
import TestSupport
import Testing

/// A step of a workload.
private enum Step: CustomStringConvertible {
    case append([Int])
    case roll
    case reopen
    case checkpoint

    var description: String {
        switch self {
        case .append(let paddings): "append \(paddings)"
        case .roll: "roll"
        case .reopen: "reopen"
        case .checkpoint: "checkpoint"
        }
    }
}

/// A log on a machine whose power can be cut.
private struct Machine {
    var files = SimulatedFileSystem()
    /// Lines of appends that returned.
    var acknowledged = 0
    /// Lines of an append that did not return.
    var inFlight = 0

    func open() throws -> Log {
        try Log(at: TestLog.path, environment: TestLog.environment(files))
    }

    /// Runs steps until the power fails.
    mutating func run(_ steps: [Step]) {
        guard var log = try? open() else { return }
        for step in steps {
            do {
                switch step {
                case .append(let paddings):
                    inFlight = paddings.count
                    let first = UInt64(acknowledged + 1)
                    var lines: [UInt8] = []
                    for (index, padding) in paddings.enumerated() {
                        lines += TestLog.line(first + UInt64(index), padding: padding) + [0x0A]
                    }
                    try log.append(lines)
                    acknowledged += inFlight
                    inFlight = 0
                case .roll: try log.roll()
                case .reopen:
                    try log.close()
                    log = try open()
                case .checkpoint:
                    try CheckpointSlots(TestLog.path, fileSystem: files).write(
                        try log.snapshot().checkpoint(
                            states: [], createdAt: Int64(acknowledged), seed: 9))
                }
            } catch { return }
        }
        try? log.close()
    }

    /// The lines that a reader finds.
    func lines() throws -> [[UInt8]] {
        var lines: [[UInt8]] = []
        try LogReader(TestLog.path, fileSystem: files).forEachLine { _, line in
            lines.append(line.array)
            return true
        }
        return lines
    }

    /// Checks that all acknowledged lines are read, and either all or none of the append in flight.
    func check(_ lines: [[UInt8]]) throws {
        try #require(
            lines.count == acknowledged || lines.count == acknowledged + inFlight,
            "\(lines.count) lines, \(acknowledged) acknowledged, \(inFlight) under way")
        for (index, line) in lines.enumerated() where index < acknowledged {
            try #require(line.starts(with: TestLog.line(UInt64(index + 1)).prefix(200)))
        }
    }
}

@Suite struct PowerCutTests {
    private static func steps(_ choices: inout Choices, checkpoints: Bool = false) -> [Step] {
        choices.array(1...6) { choices in
            // Stored seeds were found without checkpoints.
            switch choices.int(in: 0...(checkpoints ? 12 : 9)) {
            case 8: .roll
            case 9: .reopen
            case 10...: .checkpoint
            default:
                .append(
                    choices.array(1...3) { choices in
                        choices.int(
                            in: 0...choices.element(of: [40, 700, 5_000, 30_000, 70_000, 200_000]))
                    })
            }
        }
    }

    /// Runs a workload with the power cut somewhere, recovers, and checks what is there.
    private static func survivePowerCuts(
        _ choices: inout Choices, checkpoints: Bool = false
    ) throws {
        let steps = Self.steps(&choices, checkpoints: checkpoints)
        choices.note("\(steps)")
        var rehearsal = Machine()
        rehearsal.run(steps)
        try #require(rehearsal.inFlight == 0)

        var machine = Machine()
        let cut = choices.int(in: 0...rehearsal.files.operations)
        machine.files.cutPower(at: cut)
        machine.run(steps)
        choices.note("cut at operation \(cut), after \(machine.files.trace.suffix(3))")
        // The recovery may be interrupted as well, and the recovery from that.
        for depth in 1...3 {
            machine.files =
                choices.bool(oneIn: 4)
                ? machine.files.afterKill() : machine.files.afterPowerCut(&choices)
            guard depth < 3, choices.bool() else { break }
            let again = choices.int(in: 0...12)
            machine.files.cutPower(at: again)
            choices.note("recovery \(depth) cut at operation \(again)")
            if let log = try? machine.open() { try? log.close() }
        }
        // A log whose creation was interrupted may not exist.
        if machine.acknowledged > 0 { try machine.check(try machine.lines()) }
        let log = try machine.open()
        let lines = try machine.lines()
        try machine.check(lines)
        let next = log.next
        try #require(next.rawValue == UInt64(lines.count + 1))
        try log.append(TestLog.line(next.rawValue, padding: 300) + [0x0A])
        try log.close()
        let summary = try LogVerifier(TestLog.path, fileSystem: machine.files).verify { _, _ in
            nil
        }
        try #require(summary.findings == [])
        try #require(summary.events == lines.count + 1)
        try #require(summary.wasClosed)
        try #require(summary.tornTail == nil)
    }

    @Test(
        "failures of earlier versions at power cuts do not recur",
        arguments: [
            // An acknowledged commit was rewritten in place without a copy.
            0x6303_B7B9_6B5D_0B2A,
            // A copy was trusted that a killed process had left in the page cache.
            0xE5A3_5863_CB51_8EC7,
        ] as [UInt64])
    func regressions(seed: UInt64) throws {
        var choices = Choices(seed: seed)
        try Self.survivePowerCuts(&choices)
    }

    @Test(.verifies("REC-1", "REC-2", "REC-4", "REC-9"))
    func `acknowledged lines survive power cuts anywhere, recovery included`() throws {
        try Property.check(
            "acknowledged lines survive power cuts", runs: TestLog.isDebug ? 400 : 20_000
        ) { try Self.survivePowerCuts(&$0) }
    }

    @Test(.verifies("CHK-3", "CHK-4"))
    func `a power cut during a checkpoint loses no acknowledged line`() throws {
        try Property.check("power cuts and checkpoints", runs: TestLog.isDebug ? 400 : 20_000) {
            try Self.survivePowerCuts(&$0, checkpoints: true)
        }
    }

    @Test(.verifies("REC-4"))
    func `a quarantined tail survives another power cut`() throws {
        var kept = 0
        try Property.check("quarantine", runs: 300) { choices in
            var machine = Machine()
            let steps = [Step.append([40]), .append([5_000])]
            var rehearsal = Machine()
            rehearsal.run(steps)
            machine.files.cutPower(at: choices.int(in: 0...rehearsal.files.operations))
            machine.run(steps)
            machine.files = machine.files.afterPowerCut(&choices)
            guard let tail = try machine.open().recovery.tornTail else { return }
            machine.files = machine.files.afterPowerCut(&choices)
            let path = try #require(tail.quarantinedAs)
            let bytes = try machine.files.open(path, .read).read(at: 0, count: 1_000_000)
            try #require(bytes.count == tail.byteCount)
            try #require(bytes.contains { $0 != 0 })
            kept += 1
        }
        #expect(kept > 0)
    }

    @Test(.verifies("CHK-3"))
    func `a written checkpoint survives a power cut`() throws {
        try Property.check("written checkpoints", runs: 100) { choices in
            var machine = Machine()
            machine.run([.append([40]), .checkpoint, .append([40]), .checkpoint])
            machine.files = machine.files.afterPowerCut(&choices)
            let found = CheckpointSlots(TestLog.path, fileSystem: machine.files).usable()
            try #require(found.map(\.position) == [Position(2), Position(1)])
        }
    }

    @Test(.verifies("REC-4", "REC-8"))
    func `the lines that a log returns after a failed sync survive a power cut`() throws {
        try Property.check("failed sync", runs: TestLog.isDebug ? 300 : 10_000) { choices in
            let steps = Self.steps(&choices)
            choices.note("\(steps)")
            var rehearsal = Machine()
            rehearsal.run(steps)
            var machine = Machine()
            let failing = choices.int(in: 0...rehearsal.files.operations)
            machine.files.failSync(from: failing)
            machine.run(steps)
            choices.note("sync fails from operation \(failing): \(machine.files.trace.suffix(3))")
            // The process ends; the page cache stays and looks clean.
            machine.files = machine.files.afterKill()
            let log = try machine.open()
            let shown = try machine.lines()
            try machine.check(shown)
            let next = log.next.rawValue
            try log.append(TestLog.line(next, padding: 300) + [0x0A])
            // No orderly close: the power fails now.
            machine.files = machine.files.afterPowerCut(&choices)
            let survived = try machine.lines()
            try #require(survived.count == shown.count + 1)
            try #require(Array(survived.dropLast()) == shown)
            try machine.open().close()
            try #require(try machine.lines() == survived)
        }
    }
}
