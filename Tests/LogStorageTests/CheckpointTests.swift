// Opening with a checkpoint gives the same log as opening without one; a damaged checkpoint is ignored; a
// valid one proves which positions must exist.

import DaybookTestKit
import LogFormat
import LogStorage
import TestSupport
import Testing

private func store(_ log: Log, _ files: any FileSystem, at time: Int64) throws {
    try CheckpointSlots(TestLog.path, fileSystem: files).write(
        try log.snapshot().checkpoint(
            states: [
                StoredState(
                    name: "n", version: 3, position: Position(log.next.rawValue - 1), bytes: [1, 2])
            ], createdAt: time, seed: 5))
}

/// Checks all lookups of a log, by position and by id.
private func check(_ log: Log, _ lines: [[UInt8]]) throws {
    try #require(log.next.rawValue == UInt64(lines.count + 1))
    for (index, line) in lines.enumerated() {
        let position = Position(UInt64(index + 1))
        try #require(try log.line(at: position) == line)
        let found = try log.line(id: TestLog.id(position.rawValue))
        try #require(found?.position == position)
        try #require(found?.bytes == line)
    }
    try #require(try log.line(id: 12345) == nil)
    var read: [[UInt8]] = []
    let first = Position(UInt64(lines.count / 2 + 1))
    try log.forEachLine(from: first) { _, line in
        read.append(line.array)
        return true
    }
    try #require(read == Array(lines.dropFirst(lines.count / 2)))
}

@Suite struct CheckpointTests {
    @Test(.verifies("CHK-1", "CHK-4"))
    func `opening with checkpoints gives the same log as opening without`() throws {
        try Property.check("checkpoints", runs: TestLog.isDebug ? 60 : 2_000) { choices in
            var test = TestLog()
            var log = try test.open()
            var time: Int64 = 0
            for _ in 0..<choices.int(in: 1...25) {
                switch choices.int(in: 0...7) {
                case 4: try log.roll()
                case 5:
                    time += 1
                    try store(log, test.files, at: time)
                case 6:
                    try log.close()
                    log = try test.open()
                case 7:
                    // A kill: the log is opened without having been closed.
                    var copy = TestLog(files: test.files.snapshot())
                    copy.lines = test.lines
                    test = copy
                    log = try test.open()
                default:
                    let paddings = choices.array(1...4) { choices in
                        choices.int(in: 0...choices.element(of: [40, 3_000, 70_000]))
                    }
                    try test.append(to: log, paddings: paddings)
                }
                try check(log, test.lines)
            }
            try log.close()
            try check(try test.open(), test.lines)
            #expect(try TestLog.read(test.files) == test.lines)
            let summary = try LogVerifier(TestLog.path, fileSystem: test.files).verify { _, _ in
                nil
            }
            #expect(summary.findings == [])
        }
    }

    /// A log with a sealed segment, a live one, and one checkpoint at position 30.
    private static func sample() throws -> (TestLog, Log) {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: Array(repeating: 50, count: 10))
        try log.roll()
        try test.append(to: log, paddings: Array(repeating: 50, count: 20))
        try store(log, test.files, at: 1)
        return (test, log)
    }

    @Test(.verifies("CHK-2", "CHK-3"))
    func `every truncation and flipped bit of a checkpoint is detected, and the log opens without`()
        throws
    {
        let (test, log) = try Self.sample()
        try log.close()
        let path = TestLog.path + "/checkpoints/a"
        let whole = try #require(test.files.image[path])
        #expect(throws: Never.self) { try Checkpoint(whole.span.bytes) }
        for length in 0..<whole.count {
            let cut = Array(whole[..<length])
            #expect(throws: FormatError.self) { try Checkpoint(cut.span.bytes) }
        }
        for index in whole.indices {
            for bit in 0..<8 {
                var changed = whole
                changed[index] ^= 1 << UInt8(bit)
                #expect(throws: FormatError.self) { try Checkpoint(changed.span.bytes) }
            }
        }
        let head = try #require(Checkpoint.header(whole.span.bytes)?.headBytes)
        #expect(head < whole.count)
        let again = TestLog(files: test.files.snapshot())
        again.files[path] = Array(whole[..<(head - 1)])
        let opened = try again.open()
        #expect(opened.consumeCheckpoint() == nil)
        try check(opened, test.lines)
    }

    /// A sample whose checkpoint's id index was changed, opened from that checkpoint.
    private static func sample(
        withIDIndex change: (inout [UInt8], Int) -> Void
    ) throws -> (TestLog, Log) {
        let (test, log) = try sample()
        try log.close()
        var again = TestLog(files: test.files.snapshot())
        again.lines = test.lines
        let path = TestLog.path + "/checkpoints/a"
        var bytes = try #require(again.files[path])
        let head = try #require(Checkpoint.header(bytes.span.bytes)?.headBytes)
        change(&bytes, head)
        again.files[path] = bytes
        let opened = try again.open()
        #expect(opened.consumeCheckpoint()?.position == Position(30))
        return (again, opened)
    }

    @Test(.verifies("CHK-7"), arguments: [0, 1, 2])
    func `a log whose checkpoint lost its id index still knows every id`(damage: Int) throws {
        var (test, log) = try Self.sample { bytes, head in
            switch damage {
            case 0: bytes[head + 5] ^= 1
            case 1: bytes = Array(bytes[..<head])
            default: bytes += [0]
            }
        }
        try check(log, test.lines)
        try test.append(to: log, paddings: [1])
        try log.roll()
        try check(log, test.lines)
        try log.close()
        let summary = try LogVerifier(TestLog.path, fileSystem: test.files).verify { _, _ in nil }
        #expect(summary.findings == [])
    }

    @Test(.verifies("CHK-7"))
    func `sealing and a new checkpoint include the ids that opening left in the checkpoint`() throws
    {
        for damaged in [false, true] {
            for rolls in [false, true] {
                let (test, log) = try Self.sample { bytes, head in
                    if damaged { bytes[head] ^= 1 }
                }
                // No id is looked up before.
                if rolls { try log.roll() } else { try store(log, test.files, at: 2) }
                try log.close()
                let opened = try test.open()
                try check(opened, test.lines)
                try opened.close()
            }
        }
    }

    @Test(.verifies("CHK-7"), arguments: [false, true])
    func `ids that opening left in the checkpoint are found after many lookups`(
        damaged: Bool
    ) throws {
        var (test, log) = try Self.sample { bytes, head in
            if damaged { bytes[head] ^= 1 }
        }
        // Enough for a filter.
        for id in UInt128(1)...300 { try #require(try log.line(id: id) == nil) }
        try check(log, test.lines)
        try test.append(to: log, paddings: [1, 2])
        for id in UInt128(1)...300 { try #require(try log.line(id: id) == nil) }
        try check(log, test.lines)
        try log.roll()
        try check(log, test.lines)
        try log.close()
        try check(try test.open(), test.lines)
    }

    @Test(.verifies("CHK-7"))
    func `damage to lines whose ids must be read is corrupt, not an unknown id`()
        throws
    {
        let (test, log) = try Self.sample { bytes, head in bytes[head] ^= 1 }
        let path = try #require(TestLog.segments(test.files).last)
        test.files.flip(bit: (SegmentHeader.encodedBytes + 30) * 8, of: path)
        for _ in 0..<2 {
            let error = #expect(throws: LogError.self) { try log.line(id: 12345) }
            #expect(error?.code == .corrupt)
        }
        let error = #expect(throws: LogError.self) { try log.roll() }
        #expect(error?.code == .corrupt)
    }

    @Test(.verifies("CHK-3"))
    func `a checkpoint replaces the damaged slot, even if that was the newer one`() throws {
        var (test, log) = try Self.sample()
        try test.append(to: log, paddings: [1])
        try store(log, test.files, at: 2)
        test.files.flip(bit: 100 * 8, of: TestLog.path + "/checkpoints/b")
        try test.append(to: log, paddings: [1])
        try store(log, test.files, at: 3)
        let slots = CheckpointSlots(TestLog.path, fileSystem: test.files)
        #expect(slots.usable().map(\.position.rawValue) == [32, 30])
    }

    /// The sizes of all content up to the last byte of the first state: around one and two frames. In some, the
    /// boundary is within the fields of the second state.
    @Test(
        .verifies("CHK-2"),
        arguments: [4_194_250, 4_194_266, 4_194_303, 4_194_304, 4_194_305, 8_388_607, 8_388_608])
    func `the content is in frames of 4 MiB, wherever the states begin`(size: Int) throws {
        func state(_ name: String, _ count: Int) -> StoredState {
            StoredState(
                name: name, version: 1, position: Position(9),
                bytes: [1, 2] + [UInt8](repeating: 7, count: count - 4) + [3, 4])
        }
        // Before the first state's bytes there are 50 others: two numbers, a flag and the state's fields.
        let checkpoint = Checkpoint(
            logID: 5, position: Position(9), lastID: 7, createdAt: 3, sealed: [], live: nil,
            states: [state("one", size - 50), state("two", 1_000)])
        let bytes = try checkpoint.encoded()
        #expect(try Checkpoint(bytes.span.bytes) == checkpoint)
        // The sizes of the frames, as their headers declare them.
        var sizes: [Int] = []
        var offset = Checkpoint.headerBytes
        while offset < bytes.count - 8 {
            let header = try FrameHeader(bytes.span.bytes, at: offset)
            sizes.append(try #require(header.contentBytes))
            offset += header.encodedBytes
            while let block = try BlockHeader.read(bytes.span.bytes.integer(at: offset)) {
                offset += block.blockBytes
            }
            offset += FrameHeader.endMarkBytes
        }
        let total = bytes.span.bytes.integer(at: 64, as: UInt64.self)
        #expect(sizes.dropLast().allSatisfy { $0 == 4 * 1_048_576 })
        #expect(sizes.reduce(0, +) == Int(total))
        #expect(sizes.last ?? 0 > 0)
    }

    @Test(.verifies("CHK-3"))
    func `the two slots take turns, and the newer good one is used`() throws {
        var (test, log) = try Self.sample()
        try test.append(to: log, paddings: [1])
        try store(log, test.files, at: 2)
        try test.append(to: log, paddings: [1])
        try store(log, test.files, at: 3)
        try log.close()
        let slots = CheckpointSlots(TestLog.path, fileSystem: test.files)
        #expect(slots.usable().map(\.position.rawValue) == [32, 31])
        #expect(try test.open().consumeCheckpoint()?.position == Position(32))
        let again = TestLog(files: test.files.snapshot())
        again.files[TestLog.path + "/checkpoints/a"] = [1, 2, 3]
        #expect(try again.open().consumeCheckpoint()?.position == Position(31))
    }

    @Test(.verifies("CHK-5", "REC-5"))
    func `a log that lost its only segment is not created again while a checkpoint names a line`()
        throws
    {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [0, 0])
        try store(log, test.files, at: 1)
        try log.close()
        let files = test.files.snapshot()
        for path in TestLog.segments(files) { files[path] = nil }
        let error = #expect(throws: LogError.self) {
            try Log(at: TestLog.path, environment: TestLog.environment(files))
        }
        #expect(error?.code == .corrupt)
        #expect(error?.positions == Position(1)...Position(2))
        #expect(TestLog.segments(files).isEmpty)
    }

    @Test(.verifies("CHK-5"))
    func `a checkpoint after the end of the log proves that the end is missing`() throws {
        var (test, log) = try Self.sample()
        try test.append(to: log, paddings: [1])
        try log.close()
        let before = test.files.image
        log = try test.open()
        try test.append(to: log, paddings: [1])
        try store(log, test.files, at: 2)
        try log.close()
        // The segments are restored from an earlier copy, the checkpoints are not.
        let damaged = TestLog(files: test.files.snapshot())
        for (path, bytes) in before where path.hasSuffix(".lz4") { damaged.files[path] = bytes }
        let image = damaged.files.image
        #expect {
            try damaged.open()
        } throws: {
            ($0 as? LogError)?.code == .corrupt
                && ($0 as? LogError)?.positions == Position(32)...Position(32)
        }
        #expect(damaged.files.image == image)
    }

    @Test(.verifies("CHK-4"))
    func `a checkpoint of another history is not used`() throws {
        let (test, log) = try Self.sample()
        try log.close()
        // Another history of the same log: same id, same positions, other lines.
        let other = TestLog()
        let second = try other.open()
        for number in 1...40 as ClosedRange<UInt64> {
            var line: [UInt8] = []
            LinePrefix(own: UInt128(number), source: 7, at: Position(number)).append(to: &line)
            line += Array("x\",\"time\":\"2026-02-22T10:30:14.425Z\"}\n".utf8)
            try second.append(line)
            if number == 10 { try second.roll() }
        }
        try second.close()
        let mixed = other.files.snapshot()
        try mixed.createDirectory(TestLog.path + "/checkpoints")
        mixed[TestLog.path + "/checkpoints/a"] = test.files[TestLog.path + "/checkpoints/a"]
        let opened = try TestLog(files: mixed).open()
        #expect(opened.consumeCheckpoint() == nil)
        #expect(opened.next == Position(41))
        #expect(try opened.line(id: 25)?.position == Position(25))
    }

    @Test(.verifies("CHK-4"))
    func `damage before a position that a checkpoint names is no torn tail`() throws {
        let (test, log) = try Self.sample()
        _ = log
        // Killed, and the last block of the live segment is damaged.
        let damaged = test.files.snapshot()
        let path = try #require(TestLog.segments(test.files).last)
        let last = try #require(damaged[path]?.lastIndex { $0 != 0 })
        damaged.flip(bit: (last - 20) * 8, of: path)
        let without = damaged.snapshot()
        without[TestLog.path + "/checkpoints/a"] = nil
        let torn = try TestLog(files: without).open()
        #expect(torn.recovery.tornTail != nil)
        #expect {
            try TestLog(files: damaged).open()
        } throws: { ($0 as? LogError)?.code == .corrupt }
    }

    @Test func `a suspended log admits another writer and continues after its lines`() throws {
        var (test, log) = try Self.sample()
        #expect(throws: LogError.self) { try test.open() }
        try log.suspend()
        #expect {
            try log.append(TestLog.line(31) + [0x0A])
        } throws: { ($0 as? LogError)?.code == .suspended }
        let other = try test.open()
        #expect { try log.resume() } throws: { ($0 as? LogError)?.code == .locked }
        try test.append(to: other, paddings: [1])
        try other.roll()
        try other.close()
        _ = try log.resume()
        try test.append(to: log, paddings: [1])
        try check(log, test.lines)
        try log.close()
        try check(try test.open(), test.lines)
    }

    @Test func `a log whose folder was restored while it was suspended does not resume`() throws {
        let (test, log) = try Self.sample()
        let segment = try #require(TestLog.segments(test.files).last)
        let earlier = test.files.snapshot()
        try log.append(TestLog.line(log.next.rawValue) + [0x0A])
        try log.suspend()
        test.files[segment] = earlier[segment]
        #expect { try log.resume() } throws: { ($0 as? LogError)?.code == .corrupt }
    }
}
