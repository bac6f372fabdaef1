// The power fails, or the process is killed, at any operation of a compaction and of the recovery after it,
// while appends and rolls continue. Each segment is then the old one or the new one.

import DaybookTestKit
import LogFormat
import LogStorage
import TestSupport
import Testing

@Suite struct CompactionPowerCutTests {
    /// A log on a machine whose power can be cut, and the lines that a compaction removes.
    private struct Machine {
        var files = SimulatedFileSystem()
        var acknowledged: UInt64 = 0
        var underWay: UInt64 = 0
        let oneIn: UInt64

        func open() throws -> Log {
            try Log(at: TestLog.path, environment: TestLog.environment(files))
        }

        func goes(_ position: UInt64) -> Bool { position % oneIn == 0 }

        mutating func append(_ log: Log, paddings: [Int]) throws {
            underWay = UInt64(paddings.count)
            var lines: [UInt8] = []
            for (index, padding) in paddings.enumerated() {
                lines += TestLog.line(acknowledged + 1 + UInt64(index), padding: padding) + [0x0A]
            }
            try log.append(lines)
            acknowledged += underWay
            underWay = 0
        }

        /// Fills segments, then compacts them; appends and rolls between commits.
        mutating func run(_ script: Script) {
            do {
                let log = try open()
                for paddings in script.before {
                    try append(log, paddings: paddings)
                    if paddings.count > 2 { try log.roll() }
                }
                try log.roll()
                var machine = self
                defer { self = machine }
                for _ in 0..<2 {
                    var pause = 0
                    try CompactionModel.compact(
                        log,
                        isCancelled: {
                            pause += 1
                            guard script.pauses.contains(pause) else { return false }
                            do {
                                try machine.append(log, paddings: [pause % 50])
                                try log.roll()
                            } catch { return true }
                            return false
                        }
                    ) { [oneIn] in $0 % oneIn == 0 }
                }
                try log.close()
            } catch {}
        }

        /// Checks that every acknowledged line exists, and that each segment is the old or the new one.
        func check(_ log: Log) throws {
            let last = log.next.rawValue - 1
            try #require(last == acknowledged || last == acknowledged + underWay)
            for segment in try log.sealedSegments() {
                let range = segment.header.base.rawValue...segment.footer.coveredThrough.rawValue
                let isNew = segment.footer.isCompacted
                for position in range {
                    let isGone = isNew && goes(position)
                    let line = try log.line(id: TestLog.id(position))
                    try #require((line == nil) == isGone, "position \(position)")
                    let remembered = try log.removed(id: TestLog.id(position))
                    try #require((remembered != nil) == isGone)
                    if isGone { try #require(remembered?.position.rawValue == position) }
                }
            }
            try #require(
                try files.list(TestLog.path).allSatisfy { $0 != "compaction.new" },
                "a file was left behind")
        }
    }

    private static let file = TestLog.path + "/compaction.new"

    private struct Script {
        var before: [[Int]]
        var pauses: Set<Int>
    }

    private static func survive(_ choices: inout Choices) throws {
        let script = Script(
            before: choices.array(1...5) { choices in
                choices.array(1...4) { $0.int(in: 0...$0.element(of: [40, 700, 30_000, 70_000])) }
            },
            pauses: Set(choices.array(0...2) { $0.int(in: 1...15) }))
        let oneIn = choices.next(below: 4) + 1
        choices.note("\(script), one in \(oneIn) goes")
        var rehearsal = Machine(oneIn: oneIn)
        rehearsal.run(script)
        let trace = rehearsal.files.trace
        try #require(rehearsal.underWay == 0)

        var machine = Machine(oneIn: oneIn)
        guard let first = trace.firstIndex(of: "create \(file)") else { return }
        let cut = choices.int(in: first...trace.count)
        machine.files.cutPower(at: cut)
        machine.run(script)
        choices.note("cut at operation \(cut), after \(machine.files.trace.suffix(4))")
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
        // Readers first, which recover nothing.
        let read = try TestLog.read(machine.files)
        let log = try machine.open()
        try machine.check(log)
        try #require(try TestLog.read(machine.files) == read)
        // The log accepts further work, and the interrupted compaction is repeated.
        try log.append(TestLog.line(log.next.rawValue) + [0x0A])
        try log.roll()
        try CompactionModel.compact(log) { $0 % oneIn == 0 }
        machine.acknowledged = log.next.rawValue - 1
        machine.underWay = 0
        try machine.check(log)
        try log.close()
        let summary = try LogVerifier(TestLog.path, fileSystem: machine.files).verify { _, _ in
            nil
        }
        try #require(summary.findings == [])
        let last = machine.acknowledged
        try #require(UInt64(summary.events) == last - last / oneIn)
    }

    @Test(.verifies("CMP-23", "CMP-24", "REC-1"))
    func `a power cut or a kill anywhere in a compaction leaves each segment old or new`() throws {
        try Property.check(
            "compaction survives power cuts", runs: TestLog.isDebug ? 300 : 10_000
        ) { try Self.survive(&$0) }
    }

    @Test(.verifies("CMP-24"))
    func `a new segment is synced before it gets its name, and the folder after that`() throws {
        var machine = Machine(oneIn: 2)
        machine.run(Script(before: [[0, 0, 0]], pauses: []))
        let trace = machine.files.trace.drop { $0 != "create \(Self.file)" }
            .filter { !$0.hasSuffix("/\(LogDirectory.lock)") }
        #expect(
            trace.map { $0.replacing(#/[0-9]+@[0-9]+ /#, with: "") } == [
                "create \(Self.file)", "write \(Self.file)", "write \(Self.file)",
                "sync \(Self.file)", "rename \(Self.file)", "sync folder \(TestLog.path)",
            ])
    }
}
