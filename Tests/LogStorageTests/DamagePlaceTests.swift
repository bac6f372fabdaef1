// The location of damage: offset and positions of every finding, compared with the bytes that were damaged.
// Spec/format/recovery.md, REC-7 and REC-10.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@testable import LogStorage

@Suite struct DamagePlaceTests {
    private func findings(_ files: any FileSystem) throws -> [Finding] {
        try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }.findings
    }

    /// The positions that a reader delivers, and the error that ends it.
    private func read(_ files: any FileSystem) throws -> (positions: [Position], error: LogError?) {
        var positions: [Position] = []
        do {
            try LogReader(TestLog.path, fileSystem: files).forEachLine { prefix, _ in
                positions.append(prefix.position)
                return true
            }
            return (positions, nil)
        } catch let error as LogError { return (positions, error) }
    }

    /// The offset of a segment's footer.
    private func footerStart(_ log: DamagedLog, _ segment: Int) throws -> Int {
        try #require(
            try SegmentFooter.read(atEndOf: log.files.open(log.path(segment), .read))?.start)
    }

    @Test(.verifies("REC-7", "REC-10"))
    func `each of 300 flips in footers is reported with its location, and no line is hidden`()
        throws
    {
        let log = try DamagedLog(on: InMemoryFileSystem(), ending: .sealed)
        let files = try #require(log.files as? InMemoryFileSystem)
        var random = SeededRandom(seed: 18)
        for number in 0..<300 {
            let segment = number % 3
            let start = try footerStart(log, segment)
            let copy = files.snapshot()
            let bytes = try #require(copy[log.path(segment)])
            let bit = start * 8 + Int(random.next() % UInt64((bytes.count - start) * 8))
            copy.flip(bit: bit, of: log.path(segment))
            let what: Comment = "bit \(bit) of segment \(segment), whose footer begins at \(start)"
            let found = try findings(copy)
            try #require(found.count == 1, what)
            try #require(found[0].code == "corrupt", what)
            try #require(found[0].offset == start, what)
            let name = SegmentName.of(log.ranges[segment].lowerBound)
            try #require(found[0].segment == name, what)
            // A last segment that is damaged is read up to the damage.
            if segment < 2 {
                try #require(found[0].positions == log.ranges[segment], what)
                try #require(found[0].lost.isEmpty, what)
            }
            try #require(!found[0].detail.contains("logtool"), what)
            let (positions, error) = try read(copy)
            let last = log.ranges[segment].upperBound
            try #require(positions == Array(Position(1)...last), what)
            try #require(error?.code == .corrupt, what)
            try #require(error?.offset == start, what)
            let opening = #expect(throws: LogError.self, what) {
                try Log(at: TestLog.path, environment: TestLog.environment(copy))
            }
            try #require(opening?.offset == start, what)
        }
    }

    @Test(.verifies("REC-10", "CMP-24"))
    func `the lines of a compacted segment whose footer is damaged are read, holes and all`() throws
    {
        for isLast in [false, true] {
            let files = InMemoryFileSystem()
            var model = CompactionModel(files: files)
            let log = try model.open()
            try model.appendSealedSegment(to: log)
            if !isLast { try model.append(to: log, paddings: [1, 2]) }
            try model.compact(log) { $0 == 3 || $0 == 10 }
            try log.close()
            let copy = files.snapshot()
            let path = TestLog.path + "/" + SegmentName.of(Position(1))
            let start = try #require(
                try SegmentFooter.read(atEndOf: copy.open(path, .read))?.start)
            let size = try #require(copy[path]?.count)
            for at in [start + 1, start + 4, start + 40, start + 90, size - 20, size - 7, size - 1]
            {
                let damaged = copy.snapshot()
                damaged.flip(bit: at * 8 + 2, of: path)
                let found = try findings(damaged)
                try #require(found.map(\.offset) == [start], "\(at): \(found)")
                let (positions, error) = try read(damaged)
                try #require(error?.offset == start, "\(at): \(String(describing: error))")
                guard !isLast else { continue }
                try #require(found[0].positions == Position(1)...Position(12))
                let all: [UInt64] = [1, 2, 4, 5, 6, 7, 8, 9, 11, 12]
                try #require(positions.map(\.rawValue) == all, "\(at)")
            }
        }
    }

    @Test(.verifies("REC-7"))
    func `positions of a finding are those of the damaged frame that cannot be read`() throws {
        let log = try DamagedLog(on: InMemoryFileSystem())
        let files = try #require(log.files as? InMemoryFileSystem)
        for segment in 0..<2 {
            let commits = try log.commits(segment)
            let start = try footerStart(log, segment)
            let first = log.ranges[segment].lowerBound
            for bit in stride(from: SegmentHeader.encodedBytes * 8, to: start * 8, by: 331) {
                let copy = files.snapshot()
                copy.flip(bit: bit, of: log.path(segment))
                let found = try findings(copy)
                try #require(found.count == 1, "bit \(bit): \(found)")
                // Nothing is lost where an end mark is damaged.
                let hit = commits.first { $0.offset * 8 <= bit && bit < $0.end * 8 }
                var wanted: ClosedRange<Position>?
                if let hit {
                    // A frame with a damaged header loses all its lines.
                    let frame = commits.filter { $0.frameOffset == hit.frameOffset }
                    let isHeader = !hit.isBig && bit < (hit.frameOffset + 7) * 8
                    let from = isHeader ? frame[0] : hit
                    wanted =
                        from.positions.lowerBound...(frame.last ?? hit).positions.upperBound
                    // The end mark is part of a big commit, which is incomplete without it.
                }
                try #require(
                    found[0].positions == wanted, "bit \(bit) of \(first): \(found[0])")
                try #require(found[0].lost == (wanted.map { [$0] } ?? []), "bit \(bit)")
            }
        }
    }

    @Test(.verifies("REC-7"))
    func `a damaged header hides neither the lines of its segment nor other damage in it`() throws {
        for ending in DamagedLog.Ending.allCases {
            let log = try DamagedLog(on: InMemoryFileSystem(), ending: ending).released()
            let files = try #require(log.files as? InMemoryFileSystem)
            for segment in 0..<3 {
                let what: Comment = "\(ending), segment \(segment)"
                let copy = files.snapshot()
                copy.flip(bit: 40 * 8, of: log.path(segment))
                try #require(try findings(copy).map(\.offset) == [0], what)
                try #require(try findings(copy)[0].lost == [], what)

                // The second block of the first frame.
                let commits = try log.commits(segment)
                copy.flip(bit: (commits[1].offset + 30) * 8, of: log.path(segment))
                let summary = try LogVerifier(TestLog.path, fileSystem: copy)
                    .verify { _, _ in nil }
                let first = commits[1].positions.lowerBound
                try #require(summary.findings.map(\.offset) == [0, commits[1].offset], what)
                try #require(summary.findings[1].positions?.lowerBound == first, what)
                try #require(summary.findings[1].lost == [first...first.advanced(by: 2)], what)
                try #require(summary.findings[1].lostEndIsKnown, what)
                try #require(summary.events == log.lines.count - 3, what)
            }
        }
    }

    @Test(.verifies("REC-7"))
    func `damage is found in every place, however many there are`() throws {
        for ending in DamagedLog.Ending.allCases {
            let log = try DamagedLog(on: InMemoryFileSystem(), ending: ending).released()
            let files = try #require(log.files as? InMemoryFileSystem)
            for segment in 0..<3 {
                let what: Comment = "\(ending), segment \(segment)"
                let commits = try log.commits(segment)
                let copy = files.snapshot()
                // The second block of the first frame, and the first block of the big commit.
                copy.flip(bit: (commits[1].offset + 30) * 8, of: log.path(segment))
                copy.flip(bit: (commits[2].offset + 50) * 8, of: log.path(segment))
                let summary = try LogVerifier(TestLog.path, fileSystem: copy)
                    .verify { _, _ in nil }
                let lines = summary.events
                try #require(lines == log.lines.count - 5, what)
                try #require(summary.findings.first?.offset == commits[1].offset, what)
                let lost = summary.findings.flatMap(\.lost).reduce(0) {
                    $0 + $1.lowerBound.distance(to: $1.upperBound) + 1
                }
                try #require(lost == 5, what)
                try #require(summary.last == log.ranges[2].upperBound, what)
            }
        }
    }

    @Test(.verifies("REC-7"))
    func `an entry that cannot be read is a finding, and hides no other damage`() throws {
        let log = try DamagedLog(on: InMemoryFileSystem(), ending: .sealed).released()
        let files = try #require(log.files as? InMemoryFileSystem)
        let folder = SegmentName.of(Position(99))
        try files.createDirectory(DamagedLog.path(folder))
        try files.createDirectory(DamagedLog.path(LogDirectory.rewriteJournal))
        let (unreadable, offset) = (log.path(1), try log.commits(2)[1].offset)
        files.flip(bit: (offset + 30) * 8, of: log.path(2))
        files.failing { operation, path in
            guard operation == "read", path == unreadable else { return nil }
            return FileError(.io, operation: operation, path: path, reason: "a bad sector")
        }
        let summary = try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }
        #expect(
            summary.findings.map(\.segment) == [
                folder, LogDirectory.rewriteJournal, SegmentName.of(Position(10)),
                SegmentName.of(Position(19)),
            ])
        #expect(
            summary.findings.map(\.code) == ["unreadable", "unreadable", "unreadable", "corrupt"])
        #expect(summary.findings[2].detail.contains("a bad sector"))
        #expect(summary.findings[2].lost == [log.ranges[1]])
        #expect(summary.findings[3].offset == offset)
        #expect(summary.events == 9 + 6)
    }

    @Test(.verifies("REC-7"))
    func `the segment of another log is the one that differs from most`() throws {
        let log = try DamagedLog(on: InMemoryFileSystem()).released()
        try log.change(log.path(0)) { bytes in
            var header = try SegmentHeader(bytes.span.bytes)
            header.logID ^= 1
            bytes.replaceSubrange(0..<SegmentHeader.encodedBytes, with: header.encoded())
        }
        let found = try findings(log.files)
        #expect(found.map(\.segment) == [SegmentName.of(Position(1))])
        #expect(found.map(\.offset) == [32])
    }

    @Test(.verifies("REC-7", "CHK-5"))
    func `damage before the end that a checkpoint names is one finding, at its location`() throws {
        for ending in DamagedLog.Ending.allCases {
            let log = try DamagedLog(on: InMemoryFileSystem(), ending: ending).released()
            let open = try Log(at: TestLog.path, environment: TestLog.environment(log.files))
            try CheckpointSlots(TestLog.path, fileSystem: log.files).write(
                try open.snapshot().checkpoint(states: [], createdAt: 1, seed: 5))
            if ending == .closed { try open.close() }
            let commit = try log.commits(2)[1]
            try log.change(log.path(2)) { $0[commit.offset + 30] ^= 4 }
            let found = try findings(log.files)
            #expect(found.map(\.offset) == [commit.offset], "\(found)")
            #expect(found[0].positions?.lowerBound == commit.positions.lowerBound)
            #expect(!found[0].detail.contains("checkpoint"))
        }
    }

    @Test(.verifies("REC-7", "REC-10"))
    func `lost lines at the end of a segment are reported, and not the next segment`()
        throws
    {
        let log = try DamagedLog(on: InMemoryFileSystem())
        let files = try #require(log.files as? InMemoryFileSystem)
        let commits = try log.commits(0)
        let (path, next) = (log.path(0), log.ranges[1].lowerBound)
        for cut in [commits[2].offset + 40, commits[4].offset + 20, commits[0].offset + 9] {
            let copy = files.snapshot()
            copy[path] = copy[path].map { Array($0[..<cut]) }
            let found = try findings(copy)
            try #require(found.count == 1, "\(cut): \(found)")
            let lost = try #require(commits.first { $0.end > cut }).positions.lowerBound
            #expect(found[0].positions == lost...next.advanced(by: -1), "\(cut): \(found)")
            #expect(!found[0].detail.contains("intact"))
            let error = try read(copy).error
            #expect(error?.offset == found[0].offset)
            #expect(error?.detail == found[0].detail)
        }
        // Bytes after the footer.
        let copy = files.snapshot()
        let size = try #require(copy[path]?.count)
        copy[path]? += Array("after".utf8)
        let found = try findings(copy)
        #expect(found.map(\.offset) == [size])
        #expect(found[0].detail.contains("bytes follow the segment's footer"))
    }

    @Test(.verifies("FOL-2", "CMP-24"))
    func `a cursor reports damage of a compacted last segment whose footer is lost`() throws {
        let files = InMemoryFileSystem()
        var model = CompactionModel(files: files)
        let log = try model.open()
        try model.appendSealedSegment(to: log)
        try model.compact(log) { $0 == 3 || $0 == 10 }
        try log.close()
        let path = TestLog.path + "/" + SegmentName.of(Position(1))
        let start = try #require(try SegmentFooter.read(atEndOf: files.open(path, .read))?.start)
        files.flip(bit: (start + 40) * 8, of: path)
        var cursor = LogCursor(TestLog.path, fileSystem: files)
        let error = #expect(throws: LogError.self) {
            for _ in 0..<3 { try cursor.poll { _, _ in true } }
        }
        #expect(error?.code == .corrupt)
        #expect(error?.offset == start)
    }

    @Test(.verifies("REC-7"))
    func `the first byte after a footer or a clean-shutdown marker is reported`() throws {
        for ending in [DamagedLog.Ending.closed, .sealed] {
            let log = try DamagedLog(on: InMemoryFileSystem(), ending: ending).released()
            let size = try log.read(log.path(2)).count
            for zeros in [0, 5, 300_000] {
                let copy = log.moved(
                    to: try #require(log.files as? InMemoryFileSystem).snapshot())
                try copy.change(copy.path(2)) {
                    $0 += [UInt8](repeating: 0, count: zeros) + Array("behind".utf8)
                }
                let error = #expect(throws: LogError.self) {
                    try Log(
                        at: TestLog.path, account: DamagedLog.account,
                        environment: TestLog.environment(copy.files))
                }
                #expect(error?.offset == size + zeros)
                #expect(try findings(copy.files).first?.offset == size + zeros)
            }
        }
    }

    @Test(.verifies("ACC-1", "SEG-1", "REC-7"))
    func `a segment of another account or log is found by every reader`() throws {
        for segment in 0..<3 {
            for isAccount in [true, false] {
                let log = try DamagedLog(on: InMemoryFileSystem()).released()
                try log.change(log.path(segment)) { bytes in
                    var header = try SegmentHeader(bytes.span.bytes)
                    if isAccount { header.account = "eve" } else { header.logID ^= 1 }
                    bytes.replaceSubrange(0..<SegmentHeader.encodedBytes, with: header.encoded())
                    guard segment < 2 else { return }
                    // As if the segment had been sealed with this header: the digest matches.
                    let found = try #require(
                        try SegmentFooter.read(atEndOf: log.files.open(log.path(segment), .read)))
                    var footer = found.footer
                    footer.digest = XXH64.hash(bytes.span.bytes.extracting(0..<found.start))
                    bytes.replaceSubrange(found.start..., with: footer.encoded())
                }
                let offset = isAccount ? 64 : 32
                let opening = #expect(throws: LogError.self) {
                    try Log(at: TestLog.path, environment: TestLog.environment(log.files))
                }
                #expect(opening?.offset == offset)
                let error = try read(log.files).error
                #expect(error?.code == .corrupt)
                #expect(error?.offset == offset)
                let found = try findings(log.files)
                #expect(!found.isEmpty)
                #expect(found.allSatisfy { $0.offset == offset })
                let expected = isAccount ? "another account" : "another log"
                #expect(found.allSatisfy { $0.detail.contains(expected) })
            }
        }
    }
}
