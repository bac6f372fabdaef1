// One edge case each: the lines that a cursor delivers, waits for and refuses. Spec/format/following.md.

import DaybookTestKit
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@Suite struct CursorTests {
    private static let first = "/log/00000000000000000001.lz4"

    /// All positions that one poll delivers.
    private func poll(
        _ cursor: inout LogCursor, through limit: Position = Position(.max),
        linesMax: Int = .max
    ) throws -> [UInt64] {
        var positions: [UInt64] = []
        try cursor.poll(through: limit) { prefix, _ in
            positions.append(prefix.position.rawValue)
            return positions.count < linesMax
        }
        return positions
    }

    private func cursor(_ test: TestLog, after position: UInt64 = 0) -> LogCursor {
        LogCursor(TestLog.path, after: Position(position), fileSystem: test.files)
    }

    /// The ranges of the commits of a live first segment.
    private func commits(_ test: TestLog) throws -> [Range<Int>] {
        let file = try test.files.open(Self.first, .read)
        var scanner = SegmentScanner(file, expecting: Position(1), allowsHoles: false)
        var commits: [Range<Int>] = []
        while case .commit(let commit) = try scanner.next() {
            commits.append(commit.offset..<commit.end)
        }
        return commits
    }

    /// The number of reads.
    private final class Reads: Sendable { let count = Mutex(0) }

    /// A file system that replaces the first segment's bytes directly after the n-th read of `bytes` bytes
    /// of it.
    private func changing(
        _ files: InMemoryFileSystem, at number: Int, bytes: Int, to after: [UInt8]
    ) -> (CountingFileSystem, Reads) {
        let reads = Reads()
        let changing = CountingFileSystem(files) { path, count in
            guard path == Self.first, count == bytes else { return }
            let isNow = reads.count.withLock { count in
                count += 1
                return count == number
            }
            if isNow { files[path] = after }
        }
        return (changing, reads)
    }

    // MARK: Delivery

    @Test(.verifies("FOL-1"))
    func `a line is delivered once the body has returned, and not again`() throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [1, 2, 3])
        var cursor = cursor(test)
        struct Refusal: Error {}
        #expect(throws: Refusal.self) {
            try cursor.poll { prefix, _ in
                if prefix.position == Position(2) { throw Refusal() }
                return true
            }
        }
        #expect(cursor.position == Position(1))
        #expect(try poll(&cursor, linesMax: 1) == [2])
        #expect(try poll(&cursor, through: Position(2)) == [])
        try test.append(to: log, paddings: [4])
        #expect(try poll(&cursor, through: Position(3)) == [3])
        #expect(try poll(&cursor) == [4])
        #expect(try poll(&cursor) == [])
        #expect(try cursor.poll { _, _ in true })
        #expect(try cursor.poll(through: .zero) { _, _ in true })
    }

    @Test(.verifies("FOL-1"))
    func `a cursor ahead of the log waits until the log has passed it`() throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [1])
        var ahead = cursor(test, after: 3)
        var farAhead = cursor(test, after: .max)
        #expect(try poll(&ahead) == [])
        try test.append(to: log, paddings: [1, 1])
        try log.roll()
        #expect(try poll(&ahead) == [])
        try test.append(to: log, paddings: [1, 1])
        #expect(try poll(&ahead) == [4, 5])
        #expect(try poll(&farAhead) == [])
    }

    // MARK: Reading

    /// A log of three sealed segments and a live one, each of many frames, with ten lines each.
    private func fourSegments() throws -> (test: TestLog, log: Log) {
        var test = TestLog()
        let log = try test.open()
        for segment in 0..<4 {
            if segment > 0 { try log.roll() }
            for _ in 0..<10 { try test.append(to: log, paddings: [62_000]) }
        }
        return (test, log)
    }

    @Test(.verifies("FOL-4"), arguments: [0, 1, 10, 14, 20, 29, 30, 33, 39, 40] as [UInt64])
    func `a cursor that resumes reads from the frame of its position on`(_ after: UInt64) throws {
        let (test, log) = try fourSegments()
        let frameBytes = try commits(test).map(\.count).max() ?? 0
        let read = Mutex<[String: Int]>([:])
        let counting = CountingFileSystem(test.files) { path, bytes in
            read.withLock { $0[path, default: 0] += bytes }
        }
        var cursor = LogCursor(TestLog.path, after: Position(after), fileSystem: counting)
        #expect(try poll(&cursor) == Array(after + 1..<41))
        let base = after == 40 ? 31 : after / 10 * 10 + 1
        let paths = Set(read.withLock { $0.keys.map { $0 } })
        #expect(paths == Set(TestLog.segments(test.files).suffix(4 - Int(base) / 10)))
        // Polling again reads at most one frame and the bytes that may follow it.
        read.withLock { $0 = [:] }
        #expect(try poll(&cursor) == [])
        #expect(read.withLock { $0.values.reduce(0, +) } <= frameBytes + 256 * 1024)
        try log.close()
    }

    @Test(.verifies("FOL-4"))
    func `in a live segment the frame of a position is found whatever its frames are`() throws {
        try Property.check("finding frames", runs: TestLog.isDebug ? 20 : 300) { choices in
            var test = TestLog()
            let log = try test.open()
            for _ in 0..<choices.int(in: 1...12) {
                let kinds = [[50_000], [1, 1, 1], [70_000], [9], [0, 61_000]]
                try test.append(to: log, paddings: choices.element(of: kinds))
            }
            if choices.bool() { try log.close() }
            for after in 0...UInt64(test.lines.count) {
                var cursor = cursor(test, after: after)
                try #require(
                    try poll(&cursor) == Array((after + 1)..<(UInt64(test.lines.count) + 1)))
            }
        }
    }

    // MARK: Concurrent changes

    @Test(.verifies("FOL-3"))
    func `a cursor reads a segment that is compacted meanwhile without gap or repeat`() throws {
        for stop in stride(from: 1, through: 60, by: 7) {
            var test = TestLog()
            let log = try test.open()
            // Several frames, so that offsets differ between the old and the new file.
            for _ in 1...60 { try test.append(to: log, paddings: [9_000]) }
            try log.roll()
            try test.append(to: log, paddings: [1])
            try CompactionModel.compact(log) { $0 % 3 == 0 }
            var cursor = cursor(test)
            var seen = try poll(&cursor, linesMax: stop)
            try CompactionModel.compact(log) { $0 <= 25 }
            seen += try poll(&cursor)
            let all = (1...61).filter { $0 % 3 != 0 }.map(UInt64.init)
            #expect(seen == Array(all.prefix(stop)) + all.dropFirst(stop).filter { $0 > 25 })
            #expect(try poll(&cursor) == [])
        }
    }

    @Test(.verifies("FOL-3"))
    func `a cursor continues after a compacted last segment`() throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [1, 1, 1])
        try log.roll()
        var early = cursor(test)
        #expect(try poll(&early, linesMax: 1) == [1])
        try CompactionModel.compact(log) { _ in true }
        var late = cursor(test)
        #expect(try poll(&late) == [])
        #expect(late.position == Position(3))
        #expect(try poll(&early) == [])
        try test.append(to: log, paddings: [1])
        #expect(try poll(&early) == [4])
        #expect(try poll(&late) == [4])
    }

    // MARK: Waiting

    @Test(.verifies("FOL-2"))
    func `a cursor waits for a first segment without a header, also while it is created again`()
        throws
    {
        let test = TestLog()
        try test.files.createDirectory(TestLog.path)
        var cursor = cursor(test)
        let error = #expect(throws: LogError.self) { try poll(&cursor) }
        #expect(error?.code == .noSuchLog)
        test.files[Self.first] = [UInt8](repeating: 0, count: 4_096)
        #expect(try poll(&cursor) == [])
        test.files[Self.first] = nil
        #expect(try poll(&cursor) == [])
        var written = test
        let log = try written.open()
        #expect(try poll(&cursor) == [])
        try written.append(to: log, paddings: [1])
        #expect(try poll(&cursor) == [1])
    }

    @Test(.verifies("FOL-2"))
    func `a torn tail is not yet written, and what replaces it is delivered`() throws {
        var test = TestLog()
        var log: Log? = try test.open()
        try test.append(to: try #require(log), paddings: [1])
        try test.append(to: try #require(log), paddings: [2])
        try test.append(to: try #require(log), paddings: [300])
        log = nil
        let last = try #require(try commits(test).last)
        var cursor = cursor(test)
        test.files.flip(bit: last.upperBound * 8 - 3, of: Self.first)
        #expect(try poll(&cursor) == [1, 2])
        #expect(try poll(&cursor) == [])
        let again = try test.open()
        #expect(again.recovery.tornTail != nil)
        #expect(try poll(&cursor) == [])
        try again.append(TestLog.line(3, padding: 7) + [0x0A])
        var seen: [UInt8] = []
        try cursor.poll { _, line in
            seen = line.array
            return true
        }
        #expect(seen == TestLog.line(3, padding: 7))
    }

    @Test(.verifies("FOL-2"))
    func `a commit read in the middle of its write is read again before it is called damaged`()
        throws
    {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [1])
        try test.append(to: log, paddings: [400])
        let half = try #require(test.files[Self.first])
        let second = try #require(try commits(test).last)
        try test.append(to: log, paddings: [3])
        let whole = try #require(test.files[Self.first])
        // The file while the second commit is being written. Between the read of that commit and the search
        // for a proof, the commit is completed and a third one written, which would be a proof.
        let middle = (second.lowerBound + second.upperBound) / 2
        let files = test.files
        files[Self.first] =
            Array(half[..<middle]) + Array(repeating: 0xEE, count: 60)
            + half[(middle + 60)...]
        let (changing, scans) = changing(
            files, at: 2, bytes: half.count - SegmentHeader.encodedBytes, to: whole)
        var cursor = LogCursor(TestLog.path, fileSystem: changing)
        #expect(try poll(&cursor) == [1])
        #expect(scans.count.withLock { $0 } > 2)
        #expect(try poll(&cursor) == [2, 3])
    }

    @Test(.verifies("REC-6", "REC-7"))
    func `neither reader nor verifier is misled by a writer that commits during each read`()
        throws
    {
        let writer = Mutex((test: TestLog(), log: Log?.none))
        let files = writer.withLock { $0.test.files }
        try writer.withLock { state in
            let log = try state.test.open()
            try state.test.append(to: log, paddings: [1])
            state.log = log
        }
        let busy = CountingFileSystem(files) { _, _ in
            writer.withLock { state in
                guard let log = state.log, state.test.lines.count < 100 else { return }
                try? state.test.append(to: log, paddings: [30])
            }
        }
        var seen: [[UInt8]] = []
        let outcome = try LogReader(TestLog.path, fileSystem: busy).forEachLine { _, line in
            seen.append(line.array)
            return true
        }
        #expect(outcome.tornTail == nil)
        #expect(outcome.isOpenEnded)
        let summary = try LogVerifier(TestLog.path, fileSystem: busy).verify { _, _ in nil }
        #expect(summary.findings == [])
        #expect(summary.tornTail == nil)
        let lines = writer.withLock { $0.test.lines }
        #expect(!seen.isEmpty)
        #expect(lines.count < 100)
        #expect(seen == Array(lines.prefix(seen.count)))
    }

    @Test(.verifies("REC-6"), arguments: 1...3)
    func `a segment that is created between two reads is no foreign file`(look: Int) throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [1])
        let files = test.files
        let whole = try #require(files[Self.first])
        files[Self.first] = [UInt8](repeating: 0, count: whole.count)
        let (changing, reads) = changing(
            files, at: look, bytes: SegmentHeader.encodedBytes, to: whole)
        let outcome = try LogReader(TestLog.path, fileSystem: changing).forEachLine { _, _ in true }
        #expect(reads.count.withLock { $0 } >= 2)
        #expect(outcome.isOpenEnded)
        #expect(outcome.tornTail == nil)
    }

    @Test(.verifies("REC-6"), arguments: 1...12)
    func `a torn tail that is recovered and sealed between two reads is no truncated file`(
        look: Int
    ) throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [1])
        let files = test.files
        var torn = try #require(files[Self.first])
        try log.roll()
        let sealed = try #require(files[Self.first])
        let end = try #require(torn.lastIndex { $0 != 0 }) + 1
        for index in end..<end + 100 { torn[index] = 0xA5 }
        files[Self.first] = torn
        let (changing, _) = changing(
            files, at: look, bytes: torn.count - SegmentHeader.encodedBytes, to: sealed)
        #expect(try TestLog.read(changing) == test.lines)
    }

    // MARK: Errors

    @Test(.verifies("FOL-2"))
    func `damage with a later commit after it is corruption, lines before it come first`() throws {
        var test = TestLog()
        let log = try test.open()
        for _ in 1...4 { try test.append(to: log, paddings: [40]) }
        let bad = try commits(test)[1]
        test.files.flip(bit: (bad.lowerBound + 10) * 8, of: Self.first)
        var cursor = cursor(test)
        for _ in 1...2 {
            var seen: [UInt64] = []
            let error = #expect(throws: LogError.self) {
                try cursor.poll { prefix, _ in
                    seen.append(prefix.position.rawValue)
                    return true
                }
            }
            #expect(error?.code == .corrupt)
            #expect(error?.offset == bad.lowerBound)
            #expect(cursor.position == Position(1))
        }
    }

    @Test(.verifies("FOL-2"))
    func `a damaged end is corruption if a later segment exists`() throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [1])
        try test.append(to: log, paddings: [2])
        let live = try #require(test.files[Self.first])
        var cursor = cursor(test)
        #expect(try poll(&cursor, linesMax: 1) == [1])
        try log.roll()
        try test.append(to: log, paddings: [3])
        // The medium lost the footer's write.
        test.files[Self.first] = live
        // The second line is intact; the footer after it is missing.
        #expect(try poll(&cursor) == [2])
        let error = #expect(throws: LogError.self) { try poll(&cursor) }
        #expect(error?.code == .corrupt)
        #expect(error?.path == Self.first)
    }

    @Test(.verifies("FOL-2"))
    func `a missing segment and a segment of another log are corruption`() throws {
        let (test, log) = try fourSegments()
        try log.close()
        let paths = TestLog.segments(test.files)

        let missing = TestLog(files: test.files.snapshot())
        missing.files[paths[1]] = nil
        var one = cursor(missing)
        var seen: [UInt64] = []
        let gap = #expect(throws: LogError.self) {
            try one.poll { prefix, _ in
                seen.append(prefix.position.rawValue)
                return true
            }
        }
        #expect(gap?.code == .corrupt)
        #expect(seen == Array(1...10))
        var two = cursor(missing, after: 12)
        #expect(try #require(throws: LogError.self) { try poll(&two) }.code == .corrupt)
        missing.files[paths[0]] = nil
        var three = cursor(missing)
        #expect(try #require(throws: LogError.self) { try poll(&three) }.code == .corrupt)

        let foreign = TestLog(files: test.files.snapshot())
        let bytes = try #require(foreign.files[paths[2]])
        var header = try SegmentHeader(bytes.span.bytes)
        header.logID += 1
        foreign.files[paths[2]] = header.encoded() + bytes[SegmentHeader.encodedBytes...]
        var four = cursor(foreign, after: 15)
        #expect(try #require(throws: LogError.self) { try poll(&four) }.code == .corrupt)
        #expect(four.position == Position(20))
    }

    @Test(.verifies("FOL-2"))
    func `a cursor reports a log that was removed`() throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [1])
        var cursor = cursor(test)
        #expect(try poll(&cursor) == [1])
        test.files[Self.first] = nil
        let error = #expect(throws: LogError.self) { try poll(&cursor) }
        #expect(error?.code == .noSuchLog)
    }
}
