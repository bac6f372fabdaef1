// One fault has one location: readers, verification and opening report the same offset and positions, and a
// reader delivers every line before it. Each case is a fault for which they once differed.
// Spec/format/recovery.md, REC-7 and REC-10.

import DaybookTestKit
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import LogStorage

@Suite struct SamePlaceTests {
    /// The result of reading, verifying and opening one log.
    private struct Verdicts {
        var findings: [Finding] = []
        /// The number of lines that verification counts.
        var counted = 0
        var delivered: [Position] = []
        var reading: LogError?
        var opening: LogError?

        init(_ files: InMemoryFileSystem) throws {
            let summary = try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }
            findings = summary.findings
            counted = summary.events
            do {
                try LogReader(TestLog.path, fileSystem: files).forEachLine { prefix, _ in
                    delivered.append(prefix.position)
                    return true
                }
            } catch let error as LogError { reading = error }
            do throws(LogError) {
                try Log(
                    at: TestLog.path, create: false,
                    environment: TestLog.environment(files.snapshot())
                ).close()
            } catch { opening = error }
        }
    }

    /// Checks that all of them report one location.
    ///
    /// - Returns: the positions that a reader delivers.
    @discardableResult
    private func check(
        _ files: InMemoryFileSystem, _ offset: Int?, _ positions: ClosedRange<UInt64>?,
        _ what: Comment = "", at location: SourceLocation = #_sourceLocation
    ) throws -> [UInt64] {
        let verdicts = try Verdicts(files)
        let lost = positions.map { Position($0.lowerBound)...Position($0.upperBound) }
        #expect(verdicts.findings.count == 1, what, sourceLocation: location)
        #expect(verdicts.findings.first?.offset == offset, what, sourceLocation: location)
        #expect(verdicts.findings.first?.positions == lost, what, sourceLocation: location)
        #expect(verdicts.reading?.offset == offset, what, sourceLocation: location)
        #expect(verdicts.reading?.positions == lost, what, sourceLocation: location)
        #expect(verdicts.opening?.offset == offset, what, sourceLocation: location)
        #expect(
            verdicts.opening?.positions?.lowerBound == lost?.lowerBound, what,
            sourceLocation: location)
        return verdicts.delivered.map(\.rawValue)
    }

    /// The segments of a vector, oldest first, and a file system that holds them.
    private func vector(
        _ name: String
    ) throws -> (files: InMemoryFileSystem, paths: [String]) {
        let folder = VectorTests.Vector.folder.appending(path: name)
        let files = InMemoryFileSystem()
        try files.createDirectory(TestLog.path)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { SegmentName.base($0) != nil }.sorted()
        for name in names {
            let bytes = try Data(contentsOf: folder.appending(path: name))
            files[TestLog.path + "/" + name] = [UInt8](bytes)
        }
        return (files, names.map { TestLog.path + "/" + $0 })
    }

    /// Changes a segment's footer and keeps its checksums valid.
    private func changeFooter(
        of path: String, _ files: InMemoryFileSystem, _ change: (inout SegmentFooter) -> Void
    ) throws -> Int {
        let found = try SegmentFooter.read(atEndOf: files.open(path, .read))
        var (footer, start) = try #require(found)
        change(&footer)
        files[path]?.replaceSubrange(start..., with: footer.encoded())
        return start
    }

    @Test(.verifies("REC-7", "REC-10"))
    func `a removed frame is reported even if the footer cannot be read`() throws {
        let (files, paths) = try vector("missing-frame")
        let size = try #require(files[paths[0]]?.count)
        for at in [size - 20, size - 1] {
            let damaged = files.snapshot()
            damaged.flip(bit: at * 8, of: paths[0])
            let delivered = try check(damaged, 828, 2...4, "byte \(at)")
            #expect(delivered == [1], "byte \(at)")
        }
    }

    @Test(.verifies("REC-7", "REC-10"))
    func `the lines of a compacted last segment are read, whatever its end is`() throws {
        let files = InMemoryFileSystem()
        var model = CompactionModel(files: files)
        let log = try model.open()
        try model.appendSealedSegment(to: log)
        try model.compact(log) { $0 == 3 || $0 == 10 }
        try log.close()
        let path = TestLog.path + "/" + SegmentName.of(Position(1))
        let start = try #require(try SegmentFooter.read(atEndOf: files.open(path, .read))?.start)
        let size = try #require(files[path]?.count)
        let lines: [UInt64] = [1, 2, 4, 5, 6, 7, 8, 9, 11, 12]

        let damaged = files.snapshot()
        damaged.flip(bit: (start + 40) * 8, of: path)
        #expect(try check(damaged, start, 1...12) == lines)
        #expect(try Verdicts(damaged).counted == lines.count)

        for end in [[UInt8](repeating: 0, count: 300), Array("after".utf8)] {
            let followed = files.snapshot()
            followed[path]? += end
            #expect(try check(followed, size, 1...12) == lines)
        }
    }

    @Test(.verifies("REC-7"))
    func `damage in a big commit of a compacted last segment is reported at its block`() throws {
        let files = InMemoryFileSystem()
        var model = CompactionModel(files: files)
        let log = try model.open()
        for paddings in [[0, 3, 0, 9], [70_000], [5, 5]] {
            try model.append(to: log, paddings: paddings)
        }
        try log.roll()
        try model.compact(log) { $0 == 2 }
        try log.close()
        let path = TestLog.path + "/" + SegmentName.of(Position(1))
        var scanner = SegmentScanner(
            try files.open(path, .read), expecting: Position(1), allowsHoles: true)
        var found: ScannedCommit?
        while case .commit(let commit) = try scanner.next() { if commit.isBig { found = commit } }
        let big = try #require(found)
        let first = big.offset + FrameHeader.bigCommitBytes
        let bytes = try #require(files[path])
        let word: UInt32 = bytes.span.bytes.integer(at: first)
        let header = try #require(try BlockHeader.read(word))
        for (block, at) in [(first, first + 20), (first + header.blockBytes, big.end - 100)] {
            let damaged = files.snapshot()
            damaged.flip(bit: at * 8, of: path)
            #expect(try check(damaged, block, 5...5) == [1, 3, 4])
            #expect(try Verdicts(damaged).counted == 5)
        }
    }

    @Test(.verifies("REC-7", "CMP-25"), arguments: [true, false])
    func `a line that compaction has removed is not lost to damage beside it`(
        isLast: Bool
    ) throws {
        let files = InMemoryFileSystem()
        var model = CompactionModel(files: files)
        let log = try model.open()
        try model.appendSealedSegment(to: log)
        if !isLast { try model.append(to: log, paddings: [0]) }
        try model.compact(log) { $0 == 3 || $0 == 10 }
        try log.close()
        let path = TestLog.path + "/" + SegmentName.of(Position(1))
        let segment = try SealedSegment(SegmentName.of(Position(1)), in: TestLog.path, files)
        let lists = try #require(segment.footer.compaction).removedIDBytes
        let lost = [Position(8)...Position(9), Position(11)...Position(12)]
        files.flip(bit: (segment.footerAt - lists - 50) * 8, of: path)
        #expect(try Verdicts(files).findings.map(\.lost) == [lost])
    }

    @Test(.verifies("REC-7"))
    func `damage in a sealed last segment is reported at one location`() throws {
        let (files, paths) = try vector("sealed")
        files.flip(bit: 2_360 * 8, of: paths[0])
        #expect(try check(files, 2_349, 81...81).count == 80)

        let (others, named) = try vector("missing-block")
        others[named[0]]? += Array("after".utf8)
        #expect(try check(others, 4_809, nil).count == 160)
    }

    @Test(.verifies("SEG-6", "REC-7", "REC-10"))
    func `an id index that is malformed hides no line`() throws {
        for segment in 0...2 {
            let log = try DamagedLog(on: InMemoryFileSystem(), ending: .sealed).released()
            let files = try #require(log.files as? InMemoryFileSystem)
            let start = try changeFooter(of: log.path(segment), files) { $0.idIndex[8] = 32 }
            let delivered = try check(files, start, nil, "segment \(segment)")
            #expect(delivered.last == log.ranges[segment].upperBound.rawValue)
            let verdicts = try Verdicts(files)
            #expect(verdicts.counted == log.lines.count)
            #expect(verdicts.findings.map(\.code) == ["corrupt"])
        }
    }

    @Test(.verifies("REC-7"))
    func `a last list of removed ids with a damaged size is reported at one location`() throws {
        let (files, paths) = try vector("compacted-last")
        let path = try #require(paths.last)
        for bit in [0, 1, 4, 9, 12, 18, 25] {
            let damaged = files.snapshot()
            // The list is the first thing in the segment.
            damaged.flip(bit: (SegmentHeader.encodedBytes + 4) * 8 + bit, of: path)
            let place = try Verdicts(damaged).findings.first
            let positions = place?.positions
            try check(
                damaged, place?.offset,
                positions.map { $0.lowerBound.rawValue...$0.upperBound.rawValue }, "bit \(bit)")
        }
    }

    @Test(.verifies("REC-7", "REC-10"))
    func `an incomplete big commit is reported as a whole`() throws {
        let (files, paths) = try vector("big-commit")
        let whole = files.snapshot()
        files[paths[0]] = files[paths[0]].map { Array($0[..<1_531]) }
        #expect(try check(files, 821, 2...6) == [1])
        #expect(try Verdicts(files).counted == 1 + 3)

        // A frame follows it, and no footer gives its offset.
        let size = try #require(whole[paths[0]]?.count)
        whole.flip(bit: 1_500 * 8, of: paths[0])
        whole.flip(bit: (size - 1) * 8, of: paths[0])
        let delivered = try check(whole, 1_482, 2...4)
        #expect(delivered == [1])
    }

    @Test(.verifies("REC-7", "REC-10"))
    func `a footer with a wrong frame list is reported after all lines were delivered`() throws {
        for (segment, entry) in [(0, 0), (0, 1), (0, 2), (1, 1), (2, 0), (2, 2)] {
            for isPosition in [false, true] where entry > 0 || !isPosition {
                let log = try DamagedLog(on: InMemoryFileSystem(), ending: .sealed).released()
                let files = try #require(log.files as? InMemoryFileSystem)
                let start = try changeFooter(of: log.path(segment), files) {
                    if isPosition {
                        $0.frames[entry].first = $0.frames[entry].first.advanced(by: -1)
                    } else {
                        $0.frames[entry].offset += 1
                    }
                }
                let what: Comment = "segment \(segment), entry \(entry)"
                let verdicts = try Verdicts(files)
                let last = log.ranges[segment].upperBound
                #expect(verdicts.findings.count <= 2, what)
                #expect(verdicts.delivered == Array(Position(1)...last), what)
                #expect(verdicts.reading?.offset == start, what)
                #expect(verdicts.findings.allSatisfy { $0.offset == start }, what)
                #expect(
                    verdicts.findings.map(\.code).contains(segment == 2 ? "corrupt" : "footer"),
                    what)
                // A reader that begins in the middle of the segment reads the later frames only.
                for first in [last.advanced(by: -2), last.advanced(by: -5)] {
                    var delivered: [Position] = []
                    _ = try? LogReader(TestLog.path, fileSystem: files).forEachLine(from: first) {
                        delivered.append($0.position)
                        _ = $1
                        return true
                    }
                    #expect(delivered.starts(with: first...last), what)
                }
            }
        }
    }
}
