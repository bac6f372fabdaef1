// Logs of writers with other sizes: segments with smaller and larger blocks and frames are read, appended to
// and compacted. Spec/format/block-and-frame.md, BLK-2 and FRM-2.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@testable import LogStorage

@Suite struct WriterSizesTests {
    private static func environment(
        _ files: any FileSystem, _ sizes: WriterSizes
    ) -> LogEnvironment {
        var environment = TestLog.environment(files)
        environment.sizes = sizes
        return environment
    }

    private static func sizes(
        block: Int, frame: Int, segment: Int = WriterSizes().segmentBytes
    ) -> WriterSizes {
        var sizes = WriterSizes()
        (sizes.blockPlaintextBytes, sizes.framePlaintextBytes) = (block, frame)
        sizes.segmentBytes = segment
        return sizes
    }

    /// Sizes of earlier and later versions, and today's.
    private static let all = [
        sizes(block: 200, frame: 1), sizes(block: 1_024, frame: 2_048, segment: 20_000),
        sizes(block: 30 * 1_024, frame: 64 * 1_024), WriterSizes(),
        sizes(block: 64 * 1_024, frame: 128 * 1_024),
        sizes(block: 64 * 1_024, frame: 190 * 1_024, segment: 300_000),
    ]

    @Test(.verifies("BLK-2", "FRM-2"))
    func `sizes whose files a reader would refuse are not readable`() {
        var (large, many) = (WriterSizes(), WriterSizes())
        large.segmentBytes = 20 * 1024 * 1024
        many.segmentEvents += 1
        let refused = [
            Self.sizes(block: 64 * 1_024 + 1, frame: 1),
            Self.sizes(block: 1, frame: 256 * 1_024 + 1),
            large, many,
        ]
        for sizes in refused { #expect(!sizes.areReadable) }
        for sizes in Self.all { #expect(sizes.areReadable) }
    }

    @Test(.verifies("BLK-1", "BLK-2", "FRM-2"))
    func `writers with any sizes append to one log, and every line is read`() throws {
        try Property.check("sizes change", runs: TestLog.isDebug ? 60 : 1_000) { choices in
            var files = InMemoryFileSystem()
            var lines: [[UInt8]] = []
            for _ in 0..<choices.int(in: 2...5) {
                let sizes = choices.element(of: Self.all)
                let log = try Log(at: TestLog.path, environment: Self.environment(files, sizes))
                for _ in 0..<choices.int(in: 0...6) {
                    let paddings = (0..<choices.int(in: 1...4)).map { _ in
                        choices.int(in: 0...(choices.bool(oneIn: 4) ? 62_000 : 900))
                    }
                    let made = paddings.enumerated().map {
                        TestLog.line(log.next.rawValue + UInt64($0), padding: $1)
                    }
                    try log.append(made.flatMap { $0 + [UInt8(ascii: "\n")] })
                    lines += made
                }
                if choices.bool() { try log.roll() }
                if choices.bool() { try log.close() } else { files = files.snapshot() }
            }
            var read: [[UInt8]] = []
            try LogReader(TestLog.path, fileSystem: files).forEachLine { _, line in
                read.append(line.array)
                return true
            }
            try #require(read == lines)
            let found = try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }
            try #require(found.findings == [])
            try #require(found.events == lines.count)
        }
    }

    @Test(.verifies("BLK-2", "CMP-21"), arguments: all)
    func `segments with other blocks are compacted`(sizes: WriterSizes) throws {
        let files = InMemoryFileSystem()
        let log = try Log(at: TestLog.path, environment: Self.environment(files, sizes))
        for _ in 0..<40 {
            try log.append(TestLog.line(log.next.rawValue, padding: 700) + [UInt8(ascii: "\n")])
        }
        try log.append(TestLog.line(log.next.rawValue, padding: 61_000) + [UInt8(ascii: "\n")])
        try log.roll()
        try log.close()
        var environment = Self.environment(files, sizes)
        environment.now = { 1_771_756_214_425 }
        let open = try Log(at: TestLog.path, environment: environment)
        try CompactionModel.compact(open) { $0 % 3 == 0 }
        try open.close()
        var read: [UInt64] = []
        try LogReader(TestLog.path, fileSystem: files).forEachLine { prefix, _ in
            read.append(prefix.position.rawValue)
            return true
        }
        #expect(read == (1...41).filter { $0 % 3 != 0 })
        let summary = try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }
        #expect(summary.findings == [])
    }
}
