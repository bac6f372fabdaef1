// A process is killed on a full disk. Opening uses the reserve, then the space that the log itself can free, and a
// failed opening leaves nothing behind. Spec/format/segment.md, SEG-10; Spec/format/recovery.md, REC-12.

import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@Suite struct FullDiskTests {
    /// A log whose writer was killed, on a disk with `free` bytes of free space.
    private func killed(
        paddings: [[Int]], hasReserve: Bool, free: Int = 0, isTorn: Bool = false
    ) throws -> TestLog {
        var test = TestLog()
        let log = try test.open()
        if hasReserve { log.keepReserve() }
        for commit in paddings { try test.append(to: log, paddings: commit) }
        let files = test.files.snapshot()
        if isTorn {
            let segment = try #require(TestLog.segments(files).last)
            var bytes = try #require(files[segment])
            let end = try #require(bytes.lastIndex { $0 != 0 }) + 1
            bytes.replaceSubrange(end..<end + 100, with: [UInt8](repeating: 0xAB, count: 100))
            files[segment] = bytes
        }
        files.setQuota(files.usedBytes + free)
        var killed = TestLog(files: files)
        killed.lines = test.lines
        return killed
    }

    private func names(_ files: InMemoryFileSystem) throws -> Set<String> {
        Set(try files.list(TestLog.path))
    }

    /// Opens the log, and checks that it has its lines and no file of the recovery.
    private func check(_ test: TestLog) throws {
        let log = try test.open(create: false)
        #expect(try TestLog.read(test.files) == test.lines)
        #expect(try names(test.files).isDisjoint(with: ["rewrite", "rewrite.new"]))
        log.keepReserve()
        try log.close()
    }

    @Test(.verifies("REC-12", "SEG-10"), arguments: [[0], [30_000, 20_000]])
    func `after a kill on a full disk a writer opens the log with the space of the reserve`(
        last: [Int]
    ) throws {
        let test = try killed(paddings: [[5], last], hasReserve: true)
        try check(test)
        #expect(test.files["/log/reserve"]?.count == 65_536)
    }

    @Test(.verifies("REC-12", "REC-4"))
    func `after a kill on a full disk a torn tail is kept with the space of the reserve`() throws {
        let test = try killed(paddings: [[5], [7]], hasReserve: true, isTorn: true)
        let log = try test.open(create: false)
        let tail = try #require(log.recovery.tornTail)
        let path = try #require(tail.quarantinedAs)
        #expect(test.files[path]?.count == tail.byteCount)
        #expect(try TestLog.read(test.files) == test.lines)
    }

    @Test(.verifies("REC-12", "REC-9"))
    func `a last commit that is larger than the free space is written again in parts`() throws {
        try check(
            killed(paddings: [[5], [200_000, 90_000]], hasReserve: false, free: 8_192))
    }

    @Test(.verifies("REC-12"))
    func `without a reserve, opening uses the preallocated space; without any it changes nothing`()
        throws
    {
        var test = try killed(paddings: [[5], [7]], hasReserve: false)
        let before = test.files.usedBytes
        let log = try test.open(create: false)
        #expect(test.files.usedBytes < before)
        #expect(try TestLog.read(test.files) == test.lines)
        // The next kill finds neither.
        test = TestLog(files: test.files.snapshot())
        withExtendedLifetime(log) {}
        test.files.setQuota(test.files.usedBytes)
        let image = test.files.image
        for _ in 0..<3 {
            #expect {
                try test.open(create: false)
            } throws: { ($0 as? LogError)?.code == .diskFull }
            let isUnchanged = test.files.image == image
            #expect(isUnchanged)
        }
    }

    @Test(.verifies("REC-12"))
    func `a file of an interrupted compaction gives its space to opening`() throws {
        let test = try killed(paddings: [[5], [7]], hasReserve: false)
        test.files["/log/compaction.new"] = [UInt8](repeating: 7, count: 50_000)
        test.files.setQuota(test.files.usedBytes)
        try check(test)
        #expect(test.files["/log/compaction.new"] == nil)
    }

    @Test(.verifies("REC-12"), arguments: [false, true])
    func `whichever operation of opening finds no space, it leaves no file behind`(
        isTorn: Bool
    ) throws {
        let original = try killed(paddings: [[5], [7]], hasReserve: true, isTorn: isTorn)
        var number = 0
        while true {
            var test = TestLog(files: original.files.snapshot())
            test.lines = original.lines
            let counter = OperationCounter(failingAt: number, code: .noSpace)
            test.files.failing { counter.error($0, $1) }
            _ = try? test.open(create: false)
            test.files.failing(nil)
            guard counter.hasFailed else { break }
            #expect(test.files["/log/rewrite.new"] == nil, "operation \(number)")
            let kept = (try? test.files.list("/log/quarantine")) ?? ["none"]
            #expect(!kept.isEmpty, "operation \(number)")
            try check(test)
            number += 1
        }
        #expect(number > 10)
    }

    @Test(.verifies("REC-12", "REC-9"))
    func `a second kill at any operation of such an opening leaves a log that opens`() throws {
        let original = try killed(paddings: [[5], [30_000, 20_000]], hasReserve: true)
        var kills = 0
        for operation in 1... {
            var test = TestLog(files: original.files.snapshot())
            test.lines = original.lines
            test.files.setQuota(test.files.usedBytes)
            let isReached = Mutex(false)
            let watched = InterleavingFileSystem(
                test.files,
                cut: { number in
                    guard number == operation else { return nil }
                    isReached.withLock { $0 = true }
                    return InterleavingFileSystem.Cut(kills: true)
                }, look: {})
            // A write that finds no space is not interrupted, and opening goes on.
            _ = try? Log(at: TestLog.path, environment: TestLog.environment(watched))
            guard isReached.withLock({ $0 }) else { break }
            kills += 1
            try check(test)
        }
        #expect(kills > 10)
    }

    @Test(.verifies("SEG-10"))
    func `the reserve is used for a verdict right after a segment was sealed`() throws {
        var test = TestLog()
        let log = try test.open()
        log.keepReserve()
        try test.append(to: log, paddings: [5])
        try log.roll()
        test.files.setQuota(test.files.usedBytes)
        let line = TestLog.line(2)
        try log.append(CommitLines(line + [0x0A]), drawingOnReserve: true)
        #expect(try TestLog.read(test.files) == test.lines + [line])
        #expect(test.files["/log/reserve"] == nil)
        // An append that cannot take the reserve again leaves no empty file.
        test.files.setQuota(test.files.usedBytes)
        try test.append(to: log, paddings: [0])
        #expect(test.files["/log/reserve"] == nil)
    }
}
