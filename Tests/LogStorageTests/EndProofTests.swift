// A checkpoint proves that the end of a log is missing: readers, verification and repair report the same as a
// writer. Spec/format/checkpoint.md, CHK-5.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@testable import LogStorage

@Suite struct EndProofTests {
    /// Stores a checkpoint without states.
    private func storeCheckpoint(of log: Log, _ files: InMemoryFileSystem) throws {
        try CheckpointSlots(TestLog.path, fileSystem: files).write(
            try log.snapshot().checkpoint(states: [], createdAt: 1, seed: 5))
    }

    /// A log of 150 lines in one segment, a checkpoint that names the last, and their commits.
    private func sample() throws -> (test: TestLog, commits: [ScannedCommit], path: String) {
        var test = TestLog()
        let log = try test.open()
        for _ in 0..<30 { try test.append(to: log, paddings: [0, 40, 5, 80, 0]) }
        try storeCheckpoint(of: log, test.files)
        var released = TestLog(files: test.files.snapshot())
        released.lines = test.lines
        let path = try #require(TestLog.segments(released.files).first)
        var scanner = SegmentScanner(
            try released.files.open(path, .read), expecting: Position(1), allowsHoles: false)
        var commits: [ScannedCommit] = []
        while case .commit(let commit) = try scanner.next() { commits.append(commit) }
        return (released, commits, path)
    }

    /// `lock` names the end. In a folder to which an older copy of the segments was restored it does so as well;
    /// but such a copy does not end just where the segment that `lock` names begins.
    @Test(.verifies("CHK-9", "REP-2"), arguments: [false, true])
    func `a log that has lost its last segment and every checkpoint does not open without a word`(
        isZeros: Bool
    ) throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [0, 40])
        try log.roll()
        try test.append(to: log, paddings: [5])
        try log.close()
        let path = try #require(TestLog.segments(test.files).last)
        test.files[path] = isZeros ? [UInt8](repeating: 0, count: 4_096) : nil
        let salvaged = "/salvaged"
        try LogCopy(of: TestLog.path, to: salvaged, environment: test.environment()).run()
        let report = try LogRepair(salvaged, environment: test.environment()).repair()
        #expect(report.lost.first?.lowerBound == Position(3), "a salvage does not know the end")
        let copy = try Log(at: salvaged, environment: test.environment())
        #expect(copy.incarnation != log.incarnation)
        try expectMissingEnd(test.files, after: 2, through: 3, "\(isZeros)")
    }

    /// A copy that lacks what its `lock` names opens, since a writer may have been at work.
    @Test(.verifies("CHK-8", "CHK-9"))
    func `a copy reports the positions that only its lock file names`() throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [0, 40])
        try log.roll()
        try test.append(to: log, paddings: [5])
        try log.close()
        let copy = InMemoryFileSystem()
        try copy.createDirectory(TestLog.path)
        // The file `lock` must be another one than that of the log.
        copy[TestLog.path + "/reserve"] = []
        for (path, bytes) in test.files.image.sorted(by: { $0.key < $1.key }) { copy[path] = bytes }
        try copy.remove(try #require(TestLog.segments(copy).last))
        let missing = Position(3)...Position(3)
        let summary = try LogVerifier(TestLog.path, fileSystem: copy).verify { _, _ in nil }
        #expect(summary.findings == [])
        #expect(summary.missing == missing)
        let report = try LogRepair(
            TestLog.path, environment: TestLog.environment(copy)
        ).repair()
        #expect(report.actions == [])
        #expect(report.missing == missing)
        let opened = try Log(at: TestLog.path, environment: TestLog.environment(copy))
        #expect(opened.recovery.missing == missing)
        #expect(opened.next == Position(3))
    }

    /// Checks that opening, reading, verification and repair report the missing end.
    private func expectMissingEnd(
        _ files: InMemoryFileSystem, after last: UInt64, through named: UInt64 = 150, _ what: String
    ) throws {
        let missing = Position(last + 1)...Position(named)
        let opening = #expect(throws: LogError.self, "\(what)") {
            try Log(at: TestLog.path, environment: TestLog.environment(files.snapshot()))
        }
        #expect(opening?.code == .corrupt, "\(what)")
        #expect(opening?.positions == missing, "\(what)")
        var read: UInt64 = 0
        let reading = #expect(throws: LogError.self, "\(what)") {
            try LogReader(TestLog.path, fileSystem: files).forEachLine { prefix, _ in
                read = prefix.position.rawValue
                return true
            }
        }
        #expect(read == last, "\(what): a reader delivers what is intact first")
        #expect(reading == opening, "\(what): a reader says something else than a writer")
        let summary = try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }
        let finding = summary.findings.last
        #expect(finding?.code == "corrupt", "\(what)")
        #expect(finding?.positions == missing, "\(what)")
        #expect(finding?.detail == opening?.detail, "\(what)")
        #expect(finding?.offset == opening?.offset, "\(what)")
        #expect(summary.tornTail == nil, "\(what): synced bytes are called an unfinished write")
        let repair = LogRepair(TestLog.path, environment: TestLog.environment(files))
        try #require(try !repair.plan().actions.isEmpty, "\(what): repair calls the log sound")
        _ = try repair.repair()
        #expect(
            try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }.findings == [])
        let log = try Log(at: TestLog.path, environment: TestLog.environment(files))
        #expect(log.next > Position(named), "\(what): a position is given away twice")
    }

    @Test(.verifies("CHK-5", "REC-3", "REC-6", "REC-7"))
    func `a log that ends before its checkpoint is corrupt for readers as it is for writers`()
        throws
    {
        let (test, commits, path) = try sample()
        let bytes = try #require(test.files[path])
        // Truncated in the middle of a commit, and after one, with preallocated space as a writer leaves it.
        for size in stride(from: 4_096, to: commits[29].offset, by: 4_096) {
            let files = test.files.snapshot()
            files[path] = Array(bytes[..<size])
            let intact = commits.last { $0.end <= size }?.positions.upperBound ?? .zero
            try expectMissingEnd(files, after: intact.rawValue, "truncated to \(size)")
        }
        for number in [0, 7, 28] {
            let files = test.files.snapshot()
            var cut = Array(bytes[..<commits[number].end])
            cut += [UInt8](repeating: 0, count: 8_192 - cut.count % 4_096)
            files[path] = cut
            try expectMissingEnd(
                files, after: commits[number].positions.upperBound.rawValue, "zeros")
        }
    }

    @Test(.verifies("CHK-5", "REP-1", "REP-2"))
    func `an empty only segment is no new one while a checkpoint names a line`() throws {
        let (test, _, path) = try sample()
        for size in [0, 4_096, 65_536] {
            let files = test.files.snapshot()
            files[path] = [UInt8](repeating: 0, count: size)
            let id = try #require(
                CheckpointSlots(TestLog.path, fileSystem: files).usable().first { _ in true }?.logID
            )
            try expectMissingEnd(files, after: 0, "\(size) zeros")
            let log = try Log(
                at: TestLog.path, environment: TestLog.environment(files.snapshot()))
            #expect(log.id == id, "it goes on as another log")
        }
        // Without any segment there is nothing to read, but repair keeps the positions.
        let files = test.files.snapshot()
        files[path] = nil
        _ = try LogRepair(TestLog.path, environment: TestLog.environment(files)).repair()
        let log = try Log(at: TestLog.path, environment: TestLog.environment(files))
        #expect(log.next > Position(150))
    }

    @Test(.verifies("CHK-5", "REC-6"))
    func `a checkpoint that is written while the log is read is no proof against what was read`()
        throws
    {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [0, 0, 0])
        var read: [UInt64] = []
        try LogReader(TestLog.path, fileSystem: test.files).forEachLine { prefix, _ in
            read.append(prefix.position.rawValue)
            if read.count <= 40 {
                if read.count % 7 == 0 { try log.roll() }
                try test.append(to: log, paddings: [0])
                try storeCheckpoint(of: log, test.files)
            }
            return true
        }
        #expect(read.count >= 3)
        #expect(read == Array(1..<UInt64(read.count + 1)))
        try log.close()
        #expect(try TestLog.read(test.files) == test.lines)
    }

    @Test(.verifies("CHK-2", "CHK-5"))
    func `a checkpoint that names an impossible position is bad, and nothing traps`() throws {
        let (test, _, path) = try sample()
        var log: Log? = try Log(
            at: TestLog.path, environment: TestLog.environment(test.files.snapshot()))
        let genuine = try #require(log).snapshot().checkpoint(states: [], createdAt: 2, seed: 5)
        log = nil
        for position in [UInt64.max, UInt64.max - 1, FormatLimit.positionMax + 1] {
            let files = test.files.snapshot()
            var forged = genuine
            forged.position = Position(position)
            for slot in ["a", "b"] {
                files[TestLog.path + "/checkpoints/" + slot] = try forged.encoded()
            }
            let slots = CheckpointSlots(TestLog.path, fileSystem: files)
            #expect(Array(slots.usable()).isEmpty)
            for (_, content) in slots.contents() {
                guard case .bad = content else {
                    Issue.record("position \(position) is believed")
                    continue
                }
            }
            #expect(
                try LogRepair(
                    TestLog.path, environment: TestLog.environment(files)
                ).plan().actions.map(\.name) == ["checkpoints/a", "checkpoints/b"])
            #expect(try TestLog.read(files) == test.lines)
        }
        // The last position that there is: the log is complete and takes no further line.
        let files = test.files.snapshot()
        var forged = genuine
        forged.position = Position(FormatLimit.positionMax)
        files[TestLog.path + "/checkpoints/a"] = try forged.encoded()
        files[path] = nil
        _ = try LogRepair(TestLog.path, environment: TestLog.environment(files)).repair()
        let full = try Log(at: TestLog.path, environment: TestLog.environment(files))
        #expect(full.next.rawValue == FormatLimit.positionMax + 1)
        let error = #expect(throws: LogError.self) {
            try full.append(TestLog.line(full.next.rawValue) + [0x0A])
        }
        #expect(error?.code == .tooLarge)
        try full.close()
        #expect(
            try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }.findings == [])
    }
}
