// The order in which a writer writes and syncs, and the content of a commit and of the lock file.

import DaybookTestKit
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@Suite struct WriteOrderTests {
    private static let segment = "/log/00000000000000000001.lz4"

    /// The operations of a file system, in order, except those that only read.
    private final class Record: Sendable {
        private let operations = Mutex<[String]>([])

        init(_ files: InMemoryFileSystem) {
            files.failing { [self] operation, path in
                if ["write", "grow", "truncate", "sync", "remove"].contains(operation) {
                    operations.withLock { $0.append("\(operation) \(path)") }
                }
                return nil
            }
        }

        /// Returns the operations since the last call.
        func removeAll() -> [String] {
            operations.withLock { operations in
                defer { operations = [] }
                return operations
            }
        }
    }

    /// Fails if a segment is written to while an earlier write to it is unsynced.
    private func expectSyncedWrites(_ operations: [String], _ what: Comment) {
        var unsynced: Set<Substring> = []
        for operation in operations {
            let parts = operation.split(separator: " ")
            guard parts[1].hasSuffix(".lz4") else { continue }
            if parts[0] == "write" {
                #expect(unsynced.insert(parts[1]).inserted, what)
            } else if parts[0] == "sync" {
                unsynced.remove(parts[1])
            }
        }
        #expect(unsynced.isEmpty, what)
    }

    @Test(.verifies("REC-2"))
    func `nothing is written to a segment while an earlier write is unsynced`() throws {
        var test = TestLog()
        let record = Record(test.files)
        var log = try test.open()
        expectSyncedWrites(record.removeAll(), "creating")
        for paddings in [[0], [70_000], [5, 5], [300_000], [1]] {
            try test.append(to: log, paddings: paddings)
            expectSyncedWrites(record.removeAll(), "appending \(paddings)")
        }
        try log.roll()
        expectSyncedWrites(record.removeAll(), "sealing")
        try test.append(to: log, paddings: [2])
        try log.close()
        expectSyncedWrites(record.removeAll(), "closing")
        log = try test.open()
        try test.append(to: log, paddings: [3])
        expectSyncedWrites(record.removeAll(), "opening and going on")

        let killed = test.files.snapshot()
        let path = try #require(TestLog.segments(killed).last)
        let end = try #require(killed[path]?.lastIndex { $0 != 0 })
        // The last nonzero byte is in the trailer's size; the commit's checksum is before it.
        killed.flip(bit: (end - 12) * 8, of: path)
        let recovering = Record(killed)
        let recovered = try Log(at: TestLog.path, environment: TestLog.environment(killed))
        #expect(recovered.recovery.tornTail != nil)
        expectSyncedWrites(recovering.removeAll(), "recovering")
    }

    @Test(.verifies("SEG-3")) func `a commit is one write, then one sync`() throws {
        var test = TestLog()
        let log = try test.open()
        let record = Record(test.files)
        // Begins a frame, then continues it; all within the preallocated space of a new segment.
        for paddings in [[0], [5, 5], [0]] {
            try test.append(to: log, paddings: paddings)
            #expect(record.removeAll() == ["write \(Self.segment)", "sync \(Self.segment)"])
        }
    }

    @Test(.verifies("REC-1", "SEG-4"))
    func `a new segment and new preallocated space are synced before a commit is written there`()
        throws
    {
        var test = TestLog()
        let record = Record(test.files)
        let log = try test.open()
        let created = record.removeAll()
        #expect(
            created.suffix(9) == [
                "grow \(Self.segment)", "sync \(Self.segment)", "write \(Self.segment)",
                "sync \(Self.segment)", "sync /log", "write /log/lock", "truncate /log/lock",
                "sync /log/lock", "sync /log",
            ])
        try test.append(to: log, paddings: [200_000])
        #expect(
            record.removeAll() == [
                "write \(Self.segment)", "grow \(Self.segment)", "sync \(Self.segment)",
                "write \(Self.segment)", "sync \(Self.segment)",
            ])
    }

    @Test(.verifies("SEG-4"))
    func `space for the trailer is kept, however little a commit leaves`() throws {
        var random = SeededRandom(seed: 9)
        let digits = (0..<61_000).map { _ in UInt8.random(in: 0x20...0x7E, using: &random) }
        let first = TestLog.line(1, padding: 5_000) + [0x0A]
        // The second commit is stored uncompressed, and ends a few bytes before the end of the file.
        for left in 0...24 {
            let files = InMemoryFileSystem()
            let log = try TestLog(files: files).open()
            try log.append(first)
            let bytes = try #require(files[Self.segment])
            let end = try #require(bytes.lastIndex { $0 != 0 }) - SkippableFrame.prefixBytes
            let line = TestLog.line(2)
            let count = bytes.count - left - end - line.count - BlockHeader.overheadBytes - 10
            try log.append(line + digits.prefix(count) + [0x0A])
            try log.close()
            #expect(try TestLog.read(files).count == 2)
        }
    }

    @Test(.verifies("REC-4", "REC-9"))
    func `the last commit is rewritten after a copy is durable, which is removed afterwards`()
        throws
    {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [0])
        let killed = test.files.snapshot()
        let record = Record(killed)
        _ = try Log(at: TestLog.path, environment: TestLog.environment(killed))
        let operations = record.removeAll().drop { $0 != "write /log/rewrite.new" }
        #expect(
            operations.prefix(9) == [
                "write /log/rewrite.new", "sync /log/rewrite.new", "sync /log", "sync /log",
                "write \(Self.segment)", "sync \(Self.segment)", "remove /log/rewrite",
                "remove /log/rewrite.new", "sync /log",
            ])
    }

    @Test(.verifies("REC-9"))
    func `a complete rewrite journal is applied, any other is removed`() throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [0])
        let before = try #require(test.files[Self.segment]?.lastIndex { $0 != 0 })
        try test.append(to: log, paddings: [100])
        let files = test.files.snapshot()
        // The second commit's write begins at the end mark of the first, within this range.
        let range = before - 40..<before + 60
        let bytes = try #require(files[Self.segment]?[range])
        var copy = Array("DAYBOOKR".utf8)
        copy.append(littleEndian: UInt64(1))
        copy.append(littleEndian: UInt64(range.lowerBound))
        copy.append(littleEndian: UInt64(bytes.count))
        copy += bytes
        var digest = XXH64()
        digest.update(copy.span.bytes)
        copy.append(littleEndian: digest.value())
        for at in before + 10..<before + 60 { files[Self.segment]?[at] = 0xA5 }

        let whole = files.snapshot()
        whole["/log/rewrite"] = copy
        #expect(try TestLog.read(whole) == test.lines)
        #expect(whole["/log/rewrite"] == copy)
        let opened = try Log(at: TestLog.path, environment: TestLog.environment(whole))
        #expect(opened.recovery.tornTail == nil)
        #expect(whole["/log/rewrite"] == nil)
        #expect(try TestLog.read(whole) == test.lines)

        let torn = files.snapshot()
        torn["/log/rewrite"] = copy.dropLast()
        #expect(try TestLog.read(torn) == [test.lines[0]])
        let reopened = try Log(at: TestLog.path, environment: TestLog.environment(torn))
        #expect(reopened.recovery.tornTail != nil)
        #expect(torn["/log/rewrite"] == nil)
        #expect(try TestLog.read(torn) == [test.lines[0]])
    }

    @Test(.verifies("FRM-4"))
    func `a commit with a partial or an empty line is damage`() throws {
        func files(_ plaintext: [UInt8]) throws -> InMemoryFileSystem {
            var bytes = SegmentHeader(logID: 1, account: nil, base: Position(1), createdAt: 0)
                .encoded()
            FrameHeader(contentBytes: nil).append(to: &bytes)
            var compressor = BlockCompressor()
            compressor.append(block: plaintext.span.bytes, to: &bytes)
            bytes += [0, 0, 0, 0] + CleanShutdownMarker(last: Position(2)).encoded()
            let files = InMemoryFileSystem()
            try files.createDirectory(TestLog.path)
            files[Self.segment] = bytes
            return files
        }
        let first = TestLog.line(1)
        let second = TestLog.line(2)
        let sound = try files(first + [10] + second + [10])
        #expect(try TestLog.read(sound) == [first, second])
        for broken in [
            first + [10] + second, first + [10, 10] + second + [10],
            [10] + first + [10] + second + [10], first + [10] + second + [10, 10],
        ] {
            let files = try files(broken)
            let read = #expect(throws: LogError.self) { try TestLog.read(files) }
            #expect(read?.code == .corrupt)
            let opened = #expect(throws: LogError.self) {
                try Log(at: TestLog.path, environment: TestLog.environment(files))
            }
            #expect(opened?.code == .corrupt)
        }
    }

    @Test(.verifies("LINE-4", "LINE-8"))
    func `the lock file names itself and the end of the log, else the incarnation is new`()
        throws
    {
        let test = TestLog()
        let log = try test.open()
        try log.close()
        let marker = try #require(test.files["/log/lock"])
        var expected: [UInt8] = []
        LineText.append(uuid: log.incarnation, to: &expected)
        expected.append(UInt8(ascii: " "))
        LineText.append(number: try #require(try test.files.identity("/log/lock")), to: &expected)
        expected.append(UInt8(ascii: " "))
        LineText.append(uuid: log.id, to: &expected)
        expected += Array(" 00000000000000000001 ".utf8)
        LineText.append(number: try #require(try test.files.identity(Self.segment)), to: &expected)
        expected += Array(" 00000000000000000001 closed\n".utf8)
        #expect(marker == expected)
        #expect(marker.count == 165)
        #expect(marker[14] == UInt8(ascii: "4"))

        let text = String(decoding: marker, as: UTF8.self)
        for other in [
            "", String(text.dropLast()), text + "\n", text.uppercased(),
            text.replacing(" 0", with: " 1"), text.replacing(" ", with: "\t"),
        ] {
            let files = test.files.snapshot()
            files["/log/lock"] = Array(other.utf8)
            let record = Record(files)
            let environment = LogEnvironment(fileSystem: files, random: { 99 })
            let new = try Log(at: TestLog.path, environment: environment)
            #expect(new.incarnation != log.incarnation, "\(other)")
            let lock = record.removeAll().filter { $0.hasSuffix("/lock") || $0.hasSuffix("/log") }
            #expect(lock.suffix(2) == ["sync /log/lock", "sync /log"])
            try new.close()
            let again = try Log(at: TestLog.path, environment: environment)
            #expect(again.incarnation == new.incarnation)
        }
    }
}
