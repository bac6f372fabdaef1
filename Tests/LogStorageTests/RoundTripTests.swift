// Appended lines are found after closing, after a kill and over rolls, by position and by id.

import DaybookTestKit
import LogFormat
import LogStorage
import TestSupport
import Testing

@Suite struct RoundTripTests {
    /// One commit's lines: mostly small, now and then more than a block.
    private func paddings(_ choices: inout Choices) -> [Int] {
        switch choices.int(in: 0...20) {
        case 19: choices.array(1...(TestLog.isDebug ? 5 : 70)) { _ in 60_000 }
        case 18: choices.array(1...20) { $0.int(in: 0...8_000) }
        case 17: [choices.int(in: 50_000...70_000)]
        default: choices.array(1...8) { $0.int(in: 0...300) }
        }
    }

    private func check(_ test: TestLog, _ log: Log) throws {
        try #require(log.next == Position(UInt64(test.lines.count + 1)))
        for (index, line) in test.lines.enumerated() {
            let position = Position(UInt64(index + 1))
            try #require(try log.line(at: position) == line, "position \(position)")
            let found = try log.line(id: TestLog.id(position.rawValue))
            try #require(found?.position == position)
            try #require(found?.bytes == line)
        }
        try #require(try log.line(at: Position.zero) == nil)
        try #require(try log.line(at: log.next) == nil)
        try #require(try log.line(id: 12_345) == nil)
    }

    @Test(.verifies("LINE-3"))
    func `whatever is appended is read back, over reopening, kills and rolls`() throws {
        try Property.check("round trip", runs: TestLog.isDebug ? 20 : 100) { choices in
            var test = TestLog()
            var log = try test.open()
            let first = log.id
            for _ in 0..<choices.int(in: 0...25) {
                switch choices.int(in: 0...9) {
                case 9:
                    choices.note("close and open")
                    try log.close()
                    log = try test.open(create: false)
                    try #require(log.recovery == RecoveryReport())
                case 8:
                    choices.note("kill and open")
                    log = try reopenAfterKill(&test, log)
                case 7:
                    choices.note("roll")
                    try log.roll()
                default:
                    let paddings = paddings(&choices)
                    choices.note("append \(paddings)")
                    try test.append(to: log, paddings: paddings)
                }
            }
            try check(test, log)
            try #require(try TestLog.read(test.files) == test.lines)
            try log.close()
            try #require(try TestLog.read(test.files) == test.lines)
            try #require(log.id == first)
            try check(test, try test.open())
        }
    }

    /// Opens a copy of the disk, as after a kill.
    private func reopenAfterKill(_ test: inout TestLog, _ log: Log) throws -> Log {
        let lines = test.lines
        test = TestLog(files: test.files.snapshot())
        test.lines = lines
        let reopened = try test.open()
        try #require(reopened.recovery.tornTail == nil)
        return reopened
    }

    @Test(.verifies("FRM-3"))
    func `the largest commit fits, and a byte more is refused with nothing changed`() throws {
        var test = TestLog()
        let log = try test.open()
        var paddings = [Int](repeating: 60_000, count: 60)
        let used = paddings.indices.reduce(0) {
            $0 + TestLog.line(UInt64($1 + 1), padding: 60_000).count + 1
        }
        let bare = TestLog.line(61).count + 1
        paddings.append(WriterSizes.commitPlaintextBytesMax - used - bare)
        try test.append(to: log, paddings: paddings)
        #expect(test.lines.reduce(0) { $0 + $1.count + 1 } == WriterSizes.commitPlaintextBytesMax)
        let before = test.files.image
        let error = #expect(throws: LogError.self) {
            try log.append([UInt8](repeating: 10, count: WriterSizes.commitPlaintextBytesMax + 1))
        }
        #expect(error?.code == .tooLarge)
        #expect(test.files.image == before)
        try check(test, log)
        try log.close()
        #expect(try TestLog.read(test.files) == test.lines)
    }

    @Test(.verifies("BLK-2", "FRM-2", "FRM-3"), arguments: [61_439, 61_440, 61_441])
    func `commits around the size of a block come back`(bytes: Int) throws {
        var test = TestLog()
        let log = try test.open()
        for _ in 0..<4 {
            let bare = TestLog.line(log.next.rawValue).count + 1
            try test.append(to: log, paddings: [bytes - bare])
            #expect(test.lines.last?.count == bytes - 1)
        }
        try check(test, log)
        try log.close()
        try check(test, test.open())
    }

    @Test(.verifies("LINE-1"))
    func `a line of a mebibyte fits, a longer one is refused with nothing changed`() throws {
        var test = TestLog()
        let log = try test.open()
        let bare = TestLog.line(1).count
        let error = #expect(throws: LogError.self) {
            try test.append(to: log, paddings: [WriterSizes.lineBytesMax - bare + 1])
        }
        #expect(error?.code == .tooLarge)
        try test.append(to: log, paddings: [WriterSizes.lineBytesMax - bare])
        try log.close()
        #expect(try TestLog.read(test.files) == test.lines)
    }

    @Test(.enabled(if: !TestLog.isDebug)) func `segments roll by themselves at their size`() throws
    {
        var test = TestLog()
        let log = try test.open()
        let batch = [Int](repeating: 65_000, count: 62)
        for _ in 0..<12 { try test.append(to: log, paddings: batch) }
        #expect(TestLog.segments(test.files).count == 2)
        try log.close()
        let again = try test.open()
        for number in stride(from: 1, through: UInt64(test.lines.count), by: 61) {
            let line = try again.line(at: Position(number))
            #expect(line == test.lines[Int(number) - 1])
        }
    }

    @Test(.verifies("FRM-2")) func `reopening between appends costs no compression`() throws {
        func dataBytes(reopening: Bool) throws -> Int {
            var test = TestLog()
            var log = try test.open()
            for _ in 0..<200 {
                try test.append(to: log, paddings: [8])
                if reopening {
                    try log.close()
                    log = try test.open()
                }
            }
            try log.close()
            let path = try #require(TestLog.segments(test.files).first)
            return try #require(test.files[path]).count
        }
        let straight = try dataBytes(reopening: false)
        let reopened = try dataBytes(reopening: true)
        #expect(Double(reopened) < 1.03 * Double(straight))
    }

    @Test func `closing twice is harmless, and a closed log says so`() throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [0])
        try log.close()
        try log.close()
        #expect(throws: LogError.self) { try log.line(at: Position(1)) }
        let error = #expect(throws: LogError.self) { try test.append(to: log, paddings: [0]) }
        #expect(error?.code == .closed)
        #expect(test.files.openFileCount == 0)
    }
}
