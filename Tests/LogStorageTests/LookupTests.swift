// Ids are found in a log of many segments: before and after filters are made for their ids, in segments that
// compaction replaced, and in blocks before damage. Spec/format/segment.md, SEG-6.

import DaybookTestKit
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@Suite(.verifies("SEG-6")) struct LookupTests {
    @Test
    func `ids are found in many segments, with filters and without, over compaction and reopening`()
        throws
    {
        try Property.check("lookups", runs: TestLog.isDebug ? 20 : 100) { choices in
            var model = CompactionModel()
            var log = try model.open()
            for _ in 0..<choices.int(in: 0...40) {
                switch choices.int(in: 0...9) {
                case 9:
                    choices.note("close and open")
                    try log.close()
                    log = try model.open()
                case 8:
                    let divisor = UInt64(choices.int(in: 2...9))
                    choices.note("compact, without every \(divisor)th line")
                    try model.compact(log) { $0 % divisor == 0 }
                case 6...7:
                    // Enough for filters, which the next segments join.
                    choices.note("look up 300 ids that are not there")
                    for id in UInt128(1)...300 { try #require(try log.line(id: id) == nil) }
                default:
                    let paddings = choices.array(1...4) { $0.int(in: 0...300) }
                    choices.note("append \(paddings) and roll")
                    try model.append(to: log, paddings: paddings)
                    try log.roll()
                }
            }
            try model.check(log)
        }
    }

    @Test func `all ids of 150 segments are found, twice`() throws {
        var model = CompactionModel()
        let log = try model.open()
        for _ in 0..<150 {
            try model.append(to: log, paddings: [0, 3])
            try log.roll()
        }
        try model.check(log)
        // More than twice as many segments as a filter has.
        try model.append(to: log, paddings: [0])
        try log.roll()
        try model.check(log)
    }

    @Test func `the segments of a log have one seed, also after reopening and compaction`() throws {
        var model = CompactionModel()
        var log = try model.open()
        for number in 0..<6 {
            try model.append(to: log, paddings: [0, 0, 0])
            try log.roll()
            if number == 2 { try model.compact(log) { $0 % 2 == 0 } }
            guard number == 3 else { continue }
            try model.append(to: log, paddings: [0])
            try log.close()
            log = try model.open()
        }
        let seeds = try log.sealedSegments().map { try IDIndex($0.footer.idIndex).hashSeed }
        #expect(seeds.count == 6)
        #expect(Set(seeds).count == 1)
    }

    @Test(.verifies("REC-10"))
    func `a line before damage in its frame is found, one in the damaged block is not missed`()
        throws
    {
        var test = TestLog()
        // Three commits in one frame.
        let log = try test.open()
        for _ in 0..<3 { try test.append(to: log, paddings: [300]) }
        try log.roll()
        let path = try #require(TestLog.segments(test.files).first)
        var scanner = SegmentScanner(
            try test.files.open(path, .read), expecting: Position(1), allowsHoles: false)
        var commits: [ScannedCommit] = []
        while case .commit(let commit) = try scanner.next() { commits.append(commit) }
        try #require(commits.count == 3)
        try #require(commits.allSatisfy { $0.frameOffset == SegmentHeader.encodedBytes })
        test.files[path]?[commits[1].end - 20] ^= 1
        for _ in 0..<3 { #expect(try log.line(id: TestLog.id(1))?.bytes == test.lines[0]) }
        for position: UInt64 in [2, 3] {
            let error = #expect(throws: LogError.self) { try log.line(id: TestLog.id(position)) }
            #expect(error?.code == .corrupt)
            #expect(error?.path == path)
            #expect(error?.offset == commits[1].offset)
        }
    }

    @Test(.verifies("REC-10"))
    func `a frame that ends before its lines is corrupt, not without the id`() throws {
        var model = CompactionModel()
        let files = try #require(model.files as? InMemoryFileSystem)
        let log = try model.open()
        // A big commit of several blocks, then a running frame.
        try model.append(to: log, paddings: [60_000, 60_000, 60_000])
        try model.append(to: log, paddings: [10])
        try log.roll()
        let path = try #require(TestLog.segments(files).first)
        let frames = try #require(try log.sealedSegments().first).footer.frames
        try #require(frames.count == 2)
        let good = try #require(files[path])
        // An end mark in place of the first block's header.
        for (frame, headerBytes) in [
            (frames[0], FrameHeader.bigCommitBytes), (frames[1], FrameHeader.runningBytes),
        ] {
            var bytes = good
            let start = frame.offset + headerBytes
            bytes.replaceSubrange(start..<start + 4, with: [0, 0, 0, 0])
            files[path] = bytes
            for _ in 0..<2 {
                let error = #expect(throws: LogError.self) {
                    try log.line(id: TestLog.id(frame.first.rawValue))
                }
                #expect(error?.code == .corrupt)
            }
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `an append does not wait for the reading of a frame that is complete`() throws {
        let pending = Mutex<(log: Log, lines: [UInt8])?>(nil)
        let files = PausingFileSystem(InMemoryFileSystem()) {
            // With the log's lock, this would never return.
            guard let (log, lines) = pending.withLock({ $0.take() }) else { return }
            #expect(throws: Never.self) { try log.append(lines) }
        }
        let log = try Log(at: TestLog.path, environment: TestLog.environment(files))
        let lines = (1...3).map { TestLog.line($0, padding: 70_000) }
        for line in lines { try log.append(line + [0x0A]) }
        pending.withLock { $0 = (log, TestLog.line(4) + [0x0A]) }
        #expect(try log.line(at: Position(1)) == lines[0])
        #expect(pending.withLock { $0 == nil })
        #expect(try log.line(at: Position(4)) == TestLog.line(4))
    }

    @Test func `neighbouring lookups in a frame read it once`() throws {
        let reads = Mutex(0)
        let files = CountingFileSystem(InMemoryFileSystem()) { _, _ in reads.withLock { $0 += 1 } }
        var model = CompactionModel(files: files)
        let log = try model.open()
        try model.append(to: log, paddings: Array(repeating: 300, count: 50))
        try log.roll()
        for position: UInt64 in 1...3 { _ = try log.line(id: TestLog.id(position)) }
        let before = reads.withLock { $0 }
        for position: UInt64 in 4...50 {
            #expect(try log.line(id: TestLog.id(position))?.bytes == model.lines[position])
        }
        #expect(reads.withLock { $0 } == before)
    }
}
