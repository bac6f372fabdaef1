// A folder that was copied file by file while a writer worked opens as far as its segments join, and says what it
// lacks. In the original the same files are damage. Spec/format/checkpoint.md, CHK-8.

import DaybookTestKit
import LogFormat
import LogStorage
import TestSupport
import Testing

/// The files of a log after each of six steps, and copies of it.
private struct Steps {
    static let names = [
        "lock", "checkpoints/a", "checkpoints/b", SegmentName.of(Position(1)),
        SegmentName.of(Position(3)), SegmentName.of(Position(5)),
    ]
    static let copy = "/copy"

    let files: InMemoryFileSystem
    let incarnation: UInt128
    private var images: [[String: [UInt8]]] = []

    init() throws {
        var test = TestLog()
        files = test.files
        let log = try test.open()
        incarnation = log.incarnation
        func store(at time: Int64) throws {
            try CheckpointSlots(TestLog.path, fileSystem: test.files).write(
                try log.snapshot().checkpoint(
                    states: [Self.needs(log.next)], createdAt: time, seed: 5))
        }
        for step in 1...6 {
            if step == 3 || step == 5 { try log.roll() }
            try test.append(to: log, paddings: [40])
            if [1, 3, 4, 6].contains(step) { try store(at: Int64(step)) }
            images.append(files.image)
        }
    }

    /// A state that no line holds.
    private static func needs(_ position: Position) -> StoredState {
        StoredState(
            name: StoredState.viewNeedsName, version: 1,
            position: Position(position.rawValue - 1), bytes: [7])
    }

    /// What a copy has, if its files were copied in an order, with one step of the writer after each.
    struct Expected {
        var last: UInt64 = 0
        var joins = true
        /// The last position that a checkpoint names, and the last before *next* of `lock`.
        var named: UInt64 = 0
        var marked: UInt64 = 0
        var missing: ClosedRange<Position>? {
            max(named, marked) > last
                ? Position(last + 1)...Position(max(named, marked)) : nil
        }
    }

    /// Makes the folder of a copy.
    func copy(in order: [Int]) throws -> (files: InMemoryFileSystem, expected: Expected) {
        let files = self.files.snapshot()
        try files.createDirectory(Self.copy)
        try files.createDirectory(Self.copy + "/checkpoints")
        var expected = Expected()
        var copiedAt: [Int: Int] = [:]
        for (time, number) in order.enumerated() {
            guard let bytes = images[time][TestLog.path + "/" + Self.names[number]] else {
                continue
            }
            files[Self.copy + "/" + Self.names[number]] = bytes
            copiedAt[number] = time + 1
            // The writer stores *next* when it creates a segment: in steps 3 and 5.
            if number == 0 { expected.marked = UInt64(time / 2 * 2) }
            // The steps at which the slots get their checkpoints; the position is the step.
            let stored = number == 1 ? [1, 4] : number == 2 ? [3, 6] : []
            expected.named = max(
                expected.named, stored.last { $0 <= time + 1 }.map { UInt64($0) } ?? 0)
        }
        // Segments 3, 4 and 5 have the positions 1 and 2, 3 and 4, 5 and 6; the next step seals them.
        for (number, base) in [(3, 1), (4, 3), (5, 5)] {
            guard let step = copiedAt[number] else { continue }
            expected.joins = expected.joins && expected.last == UInt64(base - 1)
            if expected.last > 0, let before = copiedAt[number - 1], before < base {
                expected.joins = false
            }
            expected.last = UInt64(min(step, base + 1))
        }
        return (files, expected)
    }

    static func forEachOrder(_ body: ([Int]) throws -> Void) throws {
        func extend(_ order: [Int]) throws {
            if order.count == names.count { return try body(order) }
            for next in names.indices where !order.contains(next) { try extend(order + [next]) }
        }
        try extend([])
    }
}

@Suite struct CopiedFolderTests {
    @Test(.verifies("CHK-8"))
    func `a copy in any order of its files opens as far as its segments join`() throws {
        let steps = try Steps()
        var (opened, lacking, refused) = (0, 0, 0)
        try Steps.forEachOrder { order in
            let (files, expected) = try steps.copy(in: order)
            guard expected.joins else {
                refused += 1
                let error = #expect(throws: LogError.self, "\(order)") {
                    try Log(at: Steps.copy, environment: TestLog.environment(files))
                }
                #expect(error?.code == .corrupt, "\(order)")
                return
            }
            let summary = try LogVerifier(Steps.copy, fileSystem: files).verify { _, _ in nil }
            #expect(summary.findings == [], "\(order)")
            #expect(summary.missing == expected.missing, "\(order)")
            let lines = try TestLog.read(files, at: Steps.copy)
            #expect(lines == (1...expected.last).map { TestLog.line($0, padding: 40) }, "\(order)")

            var log = try Log(at: Steps.copy, environment: Self.environment(files))
            #expect(log.recovery.missing == expected.missing, "\(order)")
            #expect(log.next.rawValue == expected.last + 1, "\(order)")
            #expect(log.incarnation != steps.incarnation)
            opened += 1
            guard expected.missing != nil else { return }
            lacking += 1
            #expect(log.recovery.description.contains("lacks position"))
            let kept = (try? files.list(Steps.copy + "/quarantine")) ?? []
            let isAhead = expected.named > expected.last
            #expect(kept.contains { $0.hasSuffix(".ahead") } == isAhead, "\(kept)")
            try log.append(TestLog.line(expected.last + 1, padding: 3) + [0x0A])
            try log.close()
            log = try Log(at: Steps.copy, environment: Self.environment(files))
            #expect(log.recovery == RecoveryReport(), "\(order)")
            #expect(log.next.rawValue == expected.last + 2)
        }
        #expect(opened + refused == 720)
        #expect(lacking > 50)
        #expect(refused > 50)
    }

    private static func environment(_ files: any FileSystem) -> LogEnvironment {
        let random = SeededSource(seed: 99)
        return LogEnvironment(fileSystem: files, now: { 9 }, random: { random.next() })
    }

    /// The newest segments are copied first, before they exist, and the checkpoints last, so that they name
    /// positions that the copy lacks.
    private static let checkpointsLast = [5, 4, 3, 0, 1, 2]

    @Test(.verifies("CHK-8", "CHK-5"))
    func `the same files are damage in the original, and in a copy that a writer has opened`()
        throws
    {
        let steps = try Steps()
        let (files, expected) = try steps.copy(in: Self.checkpointsLast)
        #expect(expected.missing != nil)
        let names = Steps.names.filter { $0 != "lock" }
        let original = files.snapshot()
        for name in names {
            original[TestLog.path + "/" + name] = files[Steps.copy + "/" + name]
        }
        let error = #expect(throws: LogError.self) {
            try Log(at: TestLog.path, environment: TestLog.environment(original))
        }
        #expect(error?.code == .corrupt)

        let opened = files.snapshot()
        try Log(at: Steps.copy, environment: Self.environment(opened)).close()
        for name in names { opened[Steps.copy + "/" + name] = files[Steps.copy + "/" + name] }
        let again = #expect(throws: LogError.self) {
            try Log(at: Steps.copy, environment: Self.environment(opened))
        }
        #expect(again?.code == .corrupt)
    }

    @Test(.verifies("CHK-8"))
    func `a copy whose first opening is killed at any operation opens afterwards`() throws {
        let steps = try Steps()
        let (files, expected) = try steps.copy(in: Self.checkpointsLast)
        var kills = 0
        for operation in 1... {
            let copy = files.snapshot()
            let watched = InterleavingFileSystem(
                copy,
                cut: { $0 == operation ? InterleavingFileSystem.Cut(kills: true) : nil }, look: {})
            if (try? Log(at: Steps.copy, environment: Self.environment(watched))) != nil { break }
            kills += 1
            let log = try Log(at: Steps.copy, environment: Self.environment(copy))
            try #require(log.next.rawValue == expected.last + 1, "operation \(operation)")
            try #require(log.incarnation != steps.incarnation, "operation \(operation)")
            try #require(log.consumeCheckpoint()?.states.map(\.bytes) == [[7]], "\(operation)")
        }
        #expect(kills > 5)
    }

    @Test(.verifies("CHK-8", "CMP-30", "BAK-1"))
    func `a copy whose checkpoints are all ahead keeps the states that no line holds`() throws {
        let (files, expected) = try Steps().copy(in: Self.checkpointsLast)
        _ = try LogBackup(of: Steps.copy, to: "/backup", environment: Self.environment(files)).run()
        for path in [Steps.copy, "/backup"] {
            for _ in 1...2 {
                let log = try Log(at: path, environment: Self.environment(files))
                let checkpoint = try #require(log.consumeCheckpoint(), "\(path)")
                #expect(checkpoint.position == .zero)
                #expect(checkpoint.states.map(\.name) == ["daybook.view-needs"])
                #expect(log.next.rawValue == expected.last + 1)
                try log.close()
            }
            let summary = try LogVerifier(path, fileSystem: files).verify { _, _ in nil }
            #expect(summary.findings == [])
        }
        let kept = try files.list(Steps.copy + "/quarantine").sorted()
        #expect(kept == ["checkpoints-a.ahead", "checkpoints-b.ahead"])
    }

    @Test(.verifies("CHK-8", "REP-2"))
    func `repair of a copy skips no positions after its end`() throws {
        let steps = try Steps()
        try Steps.forEachOrder { order in
            let (files, expected) = try steps.copy(in: order)
            guard !expected.joins || expected.missing != nil else { return }
            let environment = Self.environment(files)
            let report = try LogRepair(Steps.copy, environment: environment).repair()
            #expect(report.actions.isEmpty == expected.joins, "\(order)")
            let log = try Log(at: Steps.copy, environment: environment)
            #expect(log.next.rawValue <= 7, "\(order)")
            #expect(log.incarnation != steps.incarnation)
        }
    }
}
