// Opening after a kill, a failed operation or a full disk.

import DaybookTestKit
import LogFormat
import LogStorage
import TestSupport
import Testing

@Suite struct RecoveryTests {
    private static let segment = "/log/00000000000000000001.lz4"

    /// A log of three commits, as after a kill.
    private func killed(_ commits: [[Int]] = [[0], [10, 3], [200]]) throws -> TestLog {
        var test = TestLog()
        let log = try test.open()
        for commit in commits { try test.append(to: log, paddings: commit) }
        var copy = TestLog(files: test.files.snapshot())
        copy.lines = test.lines
        return copy
    }

    /// The last commit of the only segment.
    private func lastCommit(_ files: InMemoryFileSystem) throws -> ScannedCommit {
        let file = try files.open(Self.segment, .read)
        var scanner = SegmentScanner(file, expecting: Position(1), allowsHoles: false)
        var last: ScannedCommit?
        while case .commit(let commit) = try scanner.next() { last = commit }
        return try #require(last)
    }

    @Test(.verifies("REC-4"))
    func `a torn tail goes to quarantine, is reported, and takes its commit only`() throws {
        let test = try killed()
        let last = try lastCommit(test.files)
        let torn = test.files.snapshot()
        torn.flip(bit: (last.end - 10) * 8, of: Self.segment)
        let log = try Log(at: TestLog.path, environment: TestLog.environment(torn))
        let tail = try #require(log.recovery.tornTail)
        #expect(log.recovery.wasUnclean)
        #expect(tail.segment == Self.segment)
        #expect(tail.offset == last.offset)
        let saved = try #require(tail.quarantinedAs.flatMap { torn[$0] })
        #expect(tail.quarantinedAs?.hasPrefix("/log/quarantine/") == true)
        #expect(
            saved.prefix(last.end - last.offset - 10).elementsEqual(
                try #require(test.files[Self.segment])[last.offset..<last.end - 10]))
        #expect(log.next == Position(4))
        #expect(try TestLog.read(torn) == Array(test.lines.dropLast()))
    }

    @Test(.verifies("REC-3", "REC-4"))
    func `a commit of which only a later sector was written is quarantined`() throws {
        let test = try killed()
        let files = test.files.snapshot()
        let file = try files.open(Self.segment, .readWrite)
        let bytes = try file.read(at: 0, count: try file.size())
        // The trailer is intact; the commit would have overwritten it.
        let end = try #require(bytes.lastIndex { $0 != 0 }) + 1
        let sector = (end / 512 + 1) * 512
        try file.write([UInt8](repeating: 0xA5, count: 100), at: sector)
        let log = try Log(at: TestLog.path, environment: TestLog.environment(files))
        let tail = try #require(log.recovery.tornTail)
        let saved = try #require(tail.quarantinedAs.flatMap { files[$0] })
        #expect(saved.suffix(100).allSatisfy { $0 == 0xA5 })
        #expect(saved.count == tail.byteCount)
        #expect(try TestLog.read(files) == test.lines)
        #expect(try file.read(at: sector, count: 100).allSatisfy { $0 == 0 })
    }

    @Test(.verifies("REC-3"))
    func `torn bytes in a file that ends before the trailer's space are a truncated file`() throws {
        // A commit whose end mark and trailer reach past a multiple of 4,096.
        var padding = 6_000
        var test = try killed([[padding]])
        for _ in 0..<50 {
            let missing = 4_088 - (try lastCommit(test.files)).end
            if -2...2 ~= missing { break }
            padding += missing
            test = try killed([[max(0, padding)]])
        }
        let end = try lastCommit(test.files).end
        try #require(4_086...4_090 ~= end)
        let whole = try #require(test.files[Self.segment])
        test.files[Self.segment] =
            Array(whole[..<end]) + [UInt8](repeating: 0x20, count: 4_096 - end)
        let error = #expect(throws: LogError.self) {
            _ = try Log(at: TestLog.path, environment: TestLog.environment(test.files))
        }
        #expect(error?.code == .corrupt)
        #expect(error?.offset == 4_096)
    }

    @Test(.verifies("REC-4")) func `opening twice leaves what opening once left`() throws {
        try Property.check("recover twice", runs: 30) { choices in
            let commits = choices.array(0...4) { $0.array(1...3) { $0.int(in: 0...40_000) } }
            let files = try killed(commits).files
            let size = files[Self.segment]?.count ?? 0
            if choices.bool() {
                files.flip(bit: choices.int(in: 0...size * 8 - 1), of: Self.segment)
            }
            guard (try? Log(at: TestLog.path, environment: TestLog.environment(files))) != nil
            else { return }
            let once = files.image
            let again = files.snapshot()
            let log = try Log(at: TestLog.path, environment: TestLog.environment(again))
            try #require(log.recovery.tornTail == nil)
            try #require(again.image == once)
        }
    }

    @Test(.verifies("FRM-2", "REC-4"))
    func `appending continues after a torn commit that began a frame`() throws {
        // A frame accepts no further block from 128 KiB on, so the next commit begins another one, as every
        // big commit does.
        for torn in [[100], [40_000, 40_000]] {
            var test = try killed([[59_000], [20_000], [300]])
            var log = try test.open()
            if torn.count == 1 {
                try test.append(to: log, paddings: [59_000])
            }
            let kept = test.lines
            try test.append(to: log, paddings: torn)
            let files = test.files.snapshot()
            let last = try lastCommit(files)
            #expect(last.beginsFrame)
            // Inside the last block, so that the blocks before it in the frame are intact.
            files.flip(bit: (last.end - 12) * 8, of: Self.segment)
            test = TestLog(files: files)
            test.lines = kept
            log = try test.open()
            #expect(log.recovery.tornTail?.offset == last.frameOffset - 4)
            for padding in [100, 30_000, 59_000, 59_000, 59_000, 10] {
                try test.append(to: log, paddings: [padding])
            }
            try log.close()
            #expect(try TestLog.read(test.files) == test.lines)
        }
    }

    @Test(.verifies("REC-3"))
    func `a clean-shutdown marker proves a sync even if its checksum ends with zero`() throws {
        var test = TestLog()
        var log: Log? = try test.open()
        // The marker of position 241 ends with a zero byte.
        for _ in 1...241 { try test.append(to: try #require(log), paddings: [100]) }
        try log?.close()
        log = nil
        let bytes = try #require(test.files[Self.segment])
        try #require(bytes.last == 0)
        // The file after a kill that prevented the truncation of the preallocated space.
        for room in [0, 4_096] {
            let files = test.files.snapshot()
            let size = (bytes.count + room + 4_095) / 4_096 * 4_096
            files[Self.segment] =
                bytes + [UInt8](repeating: 0, count: room > 0 ? size - bytes.count : 0)
            let last = try lastCommit(files)
            files.flip(bit: (last.end - 12) * 8, of: Self.segment)
            let error = #expect(throws: LogError.self) {
                try Log(at: TestLog.path, environment: TestLog.environment(files))
            }
            #expect(error?.code == .corrupt, "\(room)")
            #expect(error?.offset == last.offset, "\(room)")
        }
    }

    @Test(.verifies("REC-1", "REC-3"))
    func `a torn big commit is never taken for damage, whatever sectors arrived`() throws {
        // The padding shifts the commit through all offsets within a sector.
        for shift in 0..<64 {
            var test = try killed([[shift * 8]])
            let log = try test.open()
            let old = try #require(test.files.snapshot()[Self.segment])
            let kept = test.lines
            try test.append(to: log, paddings: [30_000, 30_000, 30_000])
            let new = try #require(test.files.snapshot()[Self.segment])
            let begin = try lastCommit(test.files.snapshot()).offset
            for sector in [512, 4_096] {
                let first = begin / sector
                // The first sector stays old, or the second, or all but the first.
                for missing in [first...first, first + 1...first + 1, first + 1...1_000] {
                    let files = test.files.snapshot()
                    var bytes = new
                    for at in missing {
                        let range = at * sector..<min(bytes.count, (at + 1) * sector)
                        guard !range.isEmpty else { break }
                        let from = old.count >= range.upperBound
                        for index in range { bytes[index] = from ? old[index] : 0 }
                    }
                    files[Self.segment] = bytes
                    let opened = try Log(at: TestLog.path, environment: TestLog.environment(files))
                    #expect(opened.next == Position(UInt64(kept.count + 1)))
                }
            }
        }
    }

    @Test(.verifies("REC-3"))
    func `a big commit of which only the frame header arrived is a torn tail`() throws {
        // The header's checksum byte can be zero; then the last nonzero byte is before it.
        let bare = TestLog.line(2).count + 1
        let size = try #require(
            (61_500..<62_500).first { size in
                var header: [UInt8] = []
                FrameHeader(contentBytes: size).append(to: &header)
                return header.last == 0
            })
        var test = try killed([[0]])
        let log = try test.open()
        try test.append(to: log, paddings: [size - bare])
        let files = test.files.snapshot()
        let last = try lastCommit(files)
        var bytes = try #require(files[Self.segment])
        for index in last.offset + 15..<bytes.count { bytes[index] = 0 }
        files[Self.segment] = bytes
        let opened = try Log(at: TestLog.path, environment: TestLog.environment(files))
        #expect(opened.next == Position(2))
        #expect(opened.recovery.tornTail != nil)
    }

    @Test(.verifies("REC-3"))
    func `a big commit with a wrong end mark is torn, or damaged if more follows`() throws {
        let test = try killed([[0], [70_000]])
        let mark = try lastCommit(test.files).end - FrameHeader.endMarkBytes
        let torn = test.files.snapshot()
        torn.flip(bit: mark * 8, of: Self.segment)
        let opened = try Log(at: TestLog.path, environment: TestLog.environment(torn))
        #expect(opened.recovery.tornTail != nil)
        #expect(opened.next == Position(2))
        let followed = try killed([[0], [70_000], [1], [1]])
        followed.files.flip(bit: mark * 8, of: Self.segment)
        #expect { try followed.open() } throws: { ($0 as? LogError)?.code == .corrupt }
    }

    @Test(.verifies("REC-3"), arguments: [1, 2])
    func `a log without one of its middle segments is not opened`(missing: Int) throws {
        var test = TestLog()
        let log = try test.open()
        for _ in 0..<3 {
            try test.append(to: log, paddings: [0, 0])
            try log.roll()
        }
        try test.append(to: log, paddings: [0])
        let files = test.files.snapshot()
        // Before another sealed one, and before the live one.
        files[TestLog.segments(files)[missing]] = nil
        #expect {
            try TestLog(files: files).open()
        } throws: { ($0 as? LogError)?.code == .corrupt }
    }

    @Test(.verifies("REC-3")) func `a log with a segment of another log is not opened`() throws {
        func files(_ random: UInt128) throws -> InMemoryFileSystem {
            let files = InMemoryFileSystem()
            let environment = LogEnvironment(
                fileSystem: files, now: { 1_771_756_214_425 }, random: { random })
            let log = try Log(at: TestLog.path, environment: environment)
            for position in 1...3 as ClosedRange<UInt64> {
                try log.append(TestLog.line(position) + [0x0A])
                if position < 3 { try log.roll() }
            }
            return files.snapshot()
        }
        let mine = try files(5)
        let other = try files(6)
        for segment in TestLog.segments(mine) {
            let mixed = mine.snapshot()
            mixed[segment] = other[segment]
            #expect {
                try TestLog(files: mixed).open()
            } throws: { ($0 as? LogError)?.code == .corrupt }
        }
    }

    // MARK: Disk full and failures

    @Test(.verifies("SEG-4"))
    func `the last free space of a disk is used, even if it is less than a growth step`() throws {
        var test = TestLog()
        let log = try test.open()
        let room = try #require(test.files[Self.segment]).count
        test.files.setQuota(test.files.usedBytes + 8_192)
        #expect {
            while true { try test.append(to: log, paddings: [5_000]) }
        } throws: { ($0 as? LogError)?.code == .diskFull }
        #expect(try #require(test.files[Self.segment]).count > room)
        #expect(try TestLog.read(test.files) == test.lines)
    }

    @Test(.verifies("REC-8", "SEG-4"))
    func `a full disk fails the append, changes nothing, and work goes on later`() throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [0])
        let sync = test.files.usedBytes
        test.files.setQuota(sync)
        let before = test.files.image
        for _ in 0..<2 {
            let error = #expect(throws: LogError.self) {
                try test.append(to: log, paddings: [40_000, 40_000])
            }
            #expect(error?.code == .diskFull)
            #expect(test.files.image == before)
        }
        #expect(try log.line(at: Position(1)) == test.lines[0])
        // A commit that fits the preallocated space succeeds.
        try test.append(to: log, paddings: [5])
        test.files.setQuota(nil)
        try test.append(to: log, paddings: [40_000, 40_000])
        try log.close()
        #expect(try TestLog.read(test.files) == test.lines)
    }

    @Test(.verifies("REC-8", "SEG-4"))
    func `a full disk while sealing or beginning a segment leaves a sound log`() throws {
        for allowance in stride(from: 0, to: 70_000, by: 4_999) {
            var test = TestLog()
            let log = try test.open()
            try test.append(to: log, paddings: [0, 0])
            test.files.setQuota(test.files.usedBytes)
            _ = try? log.roll()
            test.files.setQuota(test.files.usedBytes + allowance)
            do {
                try test.append(to: log, paddings: [50])
            } catch let error as LogError {
                #expect(error.code == .diskFull)
            }
            test.files.setQuota(nil)
            try test.append(to: log, paddings: [50])
            try log.close()
            #expect(try TestLog.read(test.files) == test.lines)
        }
    }

    @Test(.verifies("REC-8"), arguments: ["write", "sync", "truncate"])
    func `a failed operation poisons the log, and opening it again recovers`(
        operation: String
    ) throws {
        for code in [FileError.Code.io, .noSpace] {
            var test = TestLog()
            let log = try test.open()
            try test.append(to: log, paddings: [0])
            let kept = test.lines
            test.files.failing { what, path in
                what == operation && path.hasSuffix(".lz4")
                    ? FileError(code, operation: what, path: path, reason: "as told") : nil
            }
            let error = #expect(throws: LogError.self) {
                if operation == "truncate" {
                    try log.roll()
                } else {
                    try test.append(to: log, paddings: [7])
                }
            }
            #expect(error?.code == .indeterminate, "\(code)")
            test.files.failing(nil)
            let next = #expect(throws: LogError.self) { try test.append(to: log, paddings: [7]) }
            #expect(next?.code == .indeterminate)
            try? log.close()
            let again = try test.open()
            let read = try TestLog.read(test.files)
            #expect(Array(read.prefix(kept.count)) == kept)
            #expect(read.count <= kept.count + 1)
            test.lines = read
            try test.append(to: again, paddings: [9])
            try again.close()
            #expect(try TestLog.read(test.files) == test.lines)
        }
    }

    @Test(.verifies("REC-8"))
    func `every operation of a session may fail once without losing what was acknowledged`()
        throws
    {
        for failing in 0..<80 {
            var test = TestLog()
            let counter = OperationCounter(failingAt: failing)
            test.files.failing { counter.error($0, $1) }
            var acknowledged: [[UInt8]] = []
            do {
                let log = try test.open()
                for paddings in [[0], [70_000], [5, 5]] {
                    try test.append(to: log, paddings: paddings)
                    acknowledged = test.lines
                }
                try log.roll()
                try test.append(to: log, paddings: [1])
                acknowledged = test.lines
                try log.close()
            } catch is LogError {}
            let image = TestLog(files: test.files.snapshot())
            let log = try image.open()
            let read = (1..<log.next.rawValue).compactMap { try? log.line(at: Position($0)) }
            #expect(read.starts(with: acknowledged), "operation \(failing)")
            #expect(log.recovery.tornTail == nil)
        }
    }

    // MARK: Refusals

    @Test func `a refused opening changes nothing`() throws {
        var test = TestLog()
        let log = try test.open(account: "a")
        try test.append(to: log, paddings: [0])
        let last = try lastCommit(test.files)
        let files = test.files.snapshot()
        files.flip(bit: (last.end - 10) * 8, of: Self.segment)
        let before = files.image
        let error = #expect(throws: LogError.self) {
            try Log(at: TestLog.path, account: "b", environment: TestLog.environment(files))
        }
        #expect(error?.code == .wrongAccount)
        #expect(files.image == before)
    }

    @Test(.verifies("SEG-1", "SEG-2"))
    func `a newer version, an unknown feature, and what is no log are named`() throws {
        func code(_ change: (InMemoryFileSystem) throws -> Void) throws -> LogError.Code? {
            let files = try killed().files
            try change(files)
            let before = files.image
            var found: LogError.Code?
            do throws(LogError) {
                _ = try Log(
                    at: TestLog.path, create: false, environment: TestLog.environment(files))
            } catch { found = error.code }
            // An opening stores in the lock file the end that it found after the kill.
            #expect(found == nil || files.image == before)
            return found
        }
        func forge(_ files: InMemoryFileSystem, _ offset: Int) throws {
            var bytes = try #require(files[Self.segment])
            bytes[offset] = 2
            let sum = XXH32.hash(bytes.span.bytes.extracting(0..<508))
            var tail: [UInt8] = []
            tail.append(littleEndian: sum)
            bytes.replaceSubrange(508..<512, with: tail)
            files[Self.segment] = bytes
        }
        #expect(try code { _ in } == nil)
        #expect(try code { try forge($0, 16) } == .newerVersion)
        #expect(try code { try forge($0, 20) } == .unknownFeature)
        #expect(try code { try forge($0, 24) } == nil)
        let empty = InMemoryFileSystem()
        func open(_ path: String) throws(LogError) {
            _ = try Log(at: path, create: false, environment: TestLog.environment(empty))
        }
        #expect(#expect(throws: LogError.self) { try open("/log") }?.code == .noSuchLog)
        try empty.createDirectory("/log")
        #expect(#expect(throws: LogError.self) { try open("/log") }?.code == .noSuchLog)
        empty["/log/photo.jpg"] = [1, 2, 3]
        #expect(#expect(throws: LogError.self) { try open("/log") }?.code == .notALog)
        #expect(#expect(throws: LogError.self) { try open("/log/photo.jpg") }?.code == .notALog)
        #expect(empty.image == ["/log/photo.jpg": [1, 2, 3]])
    }

    @Test(.verifies("LINE-4", "REC-1"))
    func `a second writer is refused until the first has gone`() throws {
        let test = TestLog()
        let log = try test.open()
        let error = #expect(throws: LogError.self) { try test.open() }
        #expect(error?.code == .locked)
        try log.close()
        _ = try test.open()
    }

    @Test(.verifies("LINE-8"))
    func `a copied folder gets an incarnation of its own, a reopened one keeps it`() throws {
        let test = TestLog()
        let log = try test.open()
        try log.close()
        let again = try test.open()
        #expect(again.incarnation == log.incarnation)
        try again.close()
        test.files.copyFolder("/log", to: "/copy")
        let environment = LogEnvironment(fileSystem: test.files, random: { 99 })
        let copy = try Log(at: "/copy", environment: environment)
        #expect(copy.incarnation != log.incarnation)
        #expect(copy.id == log.id)
        try copy.close()
        #expect(try Log(at: "/copy", environment: environment).incarnation == copy.incarnation)
    }
}
