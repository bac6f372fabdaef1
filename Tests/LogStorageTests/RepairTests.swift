// Every kind of damage: detected, reported without changing anything, repaired with all intact lines, and
// appended to again.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@testable import LogStorage

@Suite struct RepairTests {
    private typealias Damage = (DamagedLog) throws -> Void

    /// Damages a log, checks that the damage is detected, and repairs it.
    private func repair(
        _ what: String, ending: DamagedLog.Ending = .closed, losing lost: [ClosedRange<UInt64>]?,
        _ damage: Damage
    ) throws -> (log: DamagedLog, report: RepairReport) {
        let log = try DamagedLog(on: InMemoryFileSystem(), ending: ending)
        return try repair(what, log.released(), losing: lost, damage)
    }

    @discardableResult
    private func repair(
        _ what: String, _ log: DamagedLog, losing lost: [ClosedRange<UInt64>]?, _ damage: Damage
    ) throws -> (log: DamagedLog, report: RepairReport) {
        try damage(log)
        try #require(try log.isDamaged(), "\(what): not noticed")
        let report = try log.checkRepair(what)
        try #require(!report.actions.isEmpty, "\(what): nothing was done")
        if let lost {
            let named = lost.map { Position($0.lowerBound)...Position($0.upperBound) }
            #expect(report.lost == named, "\(what): other positions are lost")
        }
        return (log, report)
    }

    @Test(.verifies("REP-1")) func `nothing is done to a sound log, however it ended`() throws {
        for ending in DamagedLog.Ending.allCases {
            let log = try DamagedLog(on: InMemoryFileSystem(), ending: ending).released()
            let before = try log.image()
            #expect(try log.repair().plan().actions == [])
            #expect(try log.repair().repair().actions == [])
            #expect(try log.image() == before)
        }
    }

    @Test(.verifies("REP-7"))
    func `a repair names lines of a second writer that have the positions of others`() throws {
        func commit(_ ids: ClosedRange<UInt64>, salt: UInt64) -> [UInt8] {
            ids.flatMap { position in
                var line: [UInt8] = []
                LinePrefix(own: UInt128(position + salt), source: 7, at: Position(position))
                    .append(to: &line)
                return line + Array("x\",\"time\":\"2026-02-22T10:30:14.425Z\",\"data\":{}}\n".utf8)
            }
        }
        let files = InMemoryFileSystem()
        let segment = TestLog.path + "/" + SegmentName.of(Position(1))
        var environment = TestLog.environment(files)
        // Each commit is a frame of its own.
        environment.sizes.blockPlaintextBytes = 1
        var end = 0
        var rival: [UInt8] = []
        do {
            let log = try Log(at: TestLog.path, environment: environment)
            try log.append(commit(1...1, salt: 0))
            let start = log.liveBytes
            let twin = files.snapshot()
            environment.fileSystem = twin
            let second = try Log(at: TestLog.path, environment: environment)
            try second.append(commit(2...3, salt: 100))
            try second.append(commit(4...5, salt: 100))
            rival = Array(try #require(twin[segment])[start..<second.liveBytes])
            try log.append(commit(2...3, salt: 0))
            end = log.liveBytes
        }
        files[segment]?.replaceSubrange(end..<end + rival.count, with: rival)
        let repair = LogRepair(TestLog.path, environment: TestLog.environment(files))
        let action = try #require(try repair.repair().actions.first)
        #expect(action.reason.contains("from byte \(end) on it has lines of a second writer"))
        #expect(action.secondWriter == [Position(2)...Position(3)])
        let kept = try TestLog.read(files).map { try LinePrefix($0.span.bytes).id }
        #expect(kept == [1, 2, 3, 104, 105])
        try Log(at: TestLog.path, environment: TestLog.environment(files)).close()
    }

    // MARK: Blocks and frames

    @Test(.verifies("REP-2"), arguments: DamagedLog.Ending.allCases)
    func `a flipped bit costs the rest of its frame at most`(ending: DamagedLog.Ending) throws {
        for segment in [0, 2] {
            let first = UInt64(segment * 9)
            let isLive = segment == 2 && ending == .killed
            // The second block of the first frame; the first and the second of the big commit.
            for (offset, lost) in [
                (0, first + 1...first + 4), (1, first + 2...first + 4), (2, first + 5...first + 6),
            ] {
                _ = try repair("block \(offset) of \(segment)", ending: ending, losing: [lost]) {
                    let commit = try $0.commits(segment)[offset]
                    try $0.change($0.path(segment)) { $0[commit.offset + 30] ^= 4 }
                }
            }
            _ = try repair(
                "second block of a big commit", ending: ending, losing: [first + 6...first + 6]
            ) {
                let commit = try $0.commits(segment)[2]
                try $0.change($0.path(segment)) { $0[commit.end - 100] ^= 4 }
            }
            guard !isLive else { continue }
            _ = try repair("last block", ending: ending, losing: [first + 9...first + 9]) {
                let commit = try $0.commits(segment)[4]
                try $0.change($0.path(segment)) { $0[commit.end - 5] ^= 4 }
            }
        }
    }

    @Test(.verifies("REP-2"))
    func `a damaged frame header, end mark or content size costs no line`() throws {
        for segment in [0, 2] {
            for (what, number, offset) in [
                ("magic", 0, 0), ("flags", 0, 4), ("header checksum", 3, 6), ("big magic", 2, 1),
                ("content size", 2, 7), ("big header checksum", 2, 14),
            ] {
                _ = try repair("\(what) in segment \(segment)", losing: []) {
                    let commit = try $0.commits(segment)[number]
                    try $0.change($0.path(segment)) { $0[commit.offset + offset] ^= 0x10 }
                }
            }
            for number in [1, 2, 4] {
                _ = try repair("end mark \(number) in segment \(segment)", losing: []) {
                    let commit = try $0.commits(segment)[number]
                    let at = commit.isBig ? commit.end - 4 : commit.end
                    try $0.change($0.path(segment)) { $0[at] ^= 0x10 }
                }
            }
        }
    }

    @Test(.verifies("REP-2"))
    func
        `a block or a frame that was taken out is a hole, and what follows is not decoded wrongly`()
        throws
    {
        for segment in [0, 2] {
            let first = UInt64(segment * 9)
            _ = try repair("without a block", losing: [first + 2...first + 4]) {
                let commit = try $0.commits(segment)[1]
                try $0.change($0.path(segment)) {
                    $0.removeSubrange(commit.offset..<commit.end)
                }
            }
            _ = try repair("without a first block", losing: nil) {
                let commit = try $0.commits(segment)[0]
                try $0.change($0.path(segment)) {
                    $0.removeSubrange(commit.offset + 7..<commit.end)
                }
            }
            _ = try repair("without a frame", losing: [first + 5...first + 6]) {
                let commit = try $0.commits(segment)[2]
                try $0.change($0.path(segment)) {
                    $0.removeSubrange(commit.offset..<commit.end)
                }
            }
            _ = try repair("frames in another order", losing: []) {
                let commits = try $0.commits(segment)
                try $0.change($0.path(segment)) {
                    let big = Array($0[commits[2].offset..<commits[2].end])
                    $0.removeSubrange(commits[2].offset..<commits[2].end)
                    $0.insert(contentsOf: big, at: commits[0].offset)
                }
            }
            _ = try repair("a frame twice", losing: []) {
                let commits = try $0.commits(segment)
                try $0.change($0.path(segment)) {
                    let big = Array($0[commits[2].offset..<commits[2].end])
                    $0.insert(contentsOf: big, at: commits[2].offset)
                }
            }
        }
    }

    // MARK: Header, footer, clean-shutdown marker

    @Test(.verifies("REP-2"))
    func `a damaged header costs no line, and its log and account are known from the others`()
        throws
    {
        for segment in 0..<3 {
            _ = try repair("a flipped bit in header \(segment)", losing: []) {
                try $0.change($0.path(segment)) { $0[70] ^= 1 }
            }
            _ = try repair("header \(segment) wiped out", losing: []) {
                try $0.change($0.path(segment)) {
                    $0.replaceSubrange(0..<512, with: repeatElement(0, count: 512))
                }
            }
        }
        // A single flipped bit in each header is found and reverted, although no header is intact.
        let before = try DamagedLog(on: InMemoryFileSystem())
        let id = try before.header(0).logID
        let (log, _) = try repair("a bit in each header", before, losing: []) { log in
            for segment in 0..<3 { try log.change(log.path(segment)) { $0[32 + segment] ^= 1 } }
        }
        #expect(try log.header(2).logID == id)
        _ = try repair("no header left", losing: []) { log in
            for segment in 0..<3 {
                try log.change(log.path(segment)) {
                    $0.replaceSubrange(0..<512, with: repeatElement(0xAA, count: 512))
                }
            }
        }
    }

    @Test(.verifies("REP-2")) func `a footer is rebuilt from the lines`() throws {
        for segment in 0..<2 {
            for back in [1, 30, 90] {
                _ = try repair("footer \(segment), \(back) from its end", losing: []) {
                    try $0.change($0.path(segment)) { $0[$0.count - back] ^= 1 }
                }
            }
            _ = try repair("bytes behind footer \(segment)", losing: []) {
                try $0.change($0.path(segment)) { $0 += [1, 2, 3] }
            }
        }
        _ = try repair("the footer of a sealed end", ending: .sealed, losing: []) {
            try $0.change($0.path(2)) { $0[$0.count - 30] ^= 1 }
        }
        _ = try repair("bytes behind a sealed end", ending: .sealed, losing: []) {
            try $0.change($0.path(2)) { $0 += Array("behind".utf8) }
        }
        _ = try repair("a footer that is right but tells of other lines", losing: []) { log in
            let file = try log.files.open(log.path(0), .read)
            let found = try #require(try SegmentFooter.read(atEndOf: file))
            var footer = found.footer
            footer.eventCount += 1
            try log.change(log.path(0)) {
                $0.replaceSubrange(found.start..., with: footer.encoded())
            }
        }
    }

    @Test(.verifies("REP-2"))
    func `a wrong clean-shutdown marker, and bytes after one, are repaired`()
        throws
    {
        _ = try repair("a marker that names an earlier position", losing: []) {
            try $0.change($0.path(2)) {
                $0.replaceSubrange(
                    ($0.count - 20)..., with: CleanShutdownMarker(last: Position(3)).encoded())
            }
        }
        _ = try repair("a marker that names a later position", losing: [28...30]) {
            try $0.change($0.path(2)) {
                $0.replaceSubrange(
                    ($0.count - 20)..., with: CleanShutdownMarker(last: Position(30)).encoded())
            }
        }
        _ = try repair("bytes after a marker", losing: []) {
            try $0.change($0.path(2)) { $0 += Array("behind".utf8) }
        }
        _ = try repair("a commit after a marker", losing: []) { log in
            let commits = try log.commits(2)
            try log.change(log.path(2)) { bytes in
                // A misdirected write: the marker is before the last frame.
                let last = Array(bytes[commits[3].offset..<commits[4].end + 4])
                bytes.removeSubrange(commits[3].offset...)
                bytes += CleanShutdownMarker(last: Position(24)).encoded() + last
            }
        }
    }

    // MARK: Files

    @Test(.verifies("REP-2")) func `a missing segment becomes an empty one`() throws {
        let (log, report) = try repair("without the second", losing: [10...18]) {
            try $0.remove($0.path(1))
        }
        #expect(report.actions.map(\.verb) == [.create])
        let segment = try SealedSegment(
            SegmentName.of(Position(10)), in: TestLog.path, log.files)
        #expect(segment.footer.eventCount == 0)
        #expect(segment.footer.isCompacted)
        #expect(segment.footer.coveredThrough == Position(18))
        _ = try repair("without the first", losing: [1...9]) { try $0.remove($0.path(0)) }
        _ = try repair("without both", losing: [1...18]) {
            try $0.remove($0.path(0))
            try $0.remove($0.path(1))
        }
    }

    @Test(.verifies("REP-2", "REP-3"))
    func `a foreign, duplicated, swapped or renamed file is repaired`() throws {
        let other = InMemoryFileSystem()
        let foreignLog = try Log(at: TestLog.path, environment: LogEnvironment(fileSystem: other))
        try foreignLog.append(TestLog.line(1) + [UInt8(ascii: "\n")])
        try foreignLog.roll()
        let foreign = try #require(other["/log/00000000000000000001.lz4"])
        let stray = DamagedLog.path(SegmentName.of(Position(99)))

        for (segment, lost) in [(0, 1...9), (1, 10...18)] as [(Int, ClosedRange<UInt64>)] {
            _ = try repair("a foreign file instead of \(segment)", losing: [lost]) {
                try $0.write(foreign, to: $0.path(segment))
            }
        }
        _ = try repair("a foreign file instead of the last", losing: nil) {
            try $0.write(foreign, to: $0.path(2))
        }
        let besides = try repair("a foreign file besides", losing: []) {
            try $0.write(foreign, to: stray)
        }
        #expect(besides.report.actions.map(\.verb) == [.quarantine])
        #expect(try besides.log.image()["quarantine/00000000000000000099.lz4.damaged"] == foreign)

        for segment in 0..<3 {
            let doubled = try repair("segment \(segment) doubled", losing: []) {
                try $0.write(try $0.read($0.path(segment)), to: stray)
            }
            #expect(doubled.report.actions.map(\.verb) == [.quarantine])
        }
        _ = try repair("a damaged segment with a good copy", losing: []) {
            try $0.write(try $0.read($0.path(1)), to: stray)
            let commit = try $0.commits(1)[0]
            try $0.change($0.path(1)) { $0[commit.offset + 40] ^= 1 }
        }
        for (one, two) in [(0, 1), (1, 2), (0, 2)] {
            _ = try repair("\(one) and \(two) swapped", losing: []) {
                let bytes = try $0.read($0.path(one))
                try $0.write(try $0.read($0.path(two)), to: $0.path(one))
                try $0.write(bytes, to: $0.path(two))
            }
        }
        _ = try repair("the last one renamed", losing: []) {
            try $0.write(try $0.read($0.path(2)), to: stray)
            try $0.remove($0.path(2))
        }
        _ = try repair("one written over by its neighbour", losing: [10...18]) {
            try $0.write(try $0.read($0.path(0)), to: $0.path(1))
        }
    }

    @Test(.verifies("REP-2"))
    func `the positions of a file that was overwritten by another's copy are not reused`()
        throws
    {
        let log = try DamagedLog(on: InMemoryFileSystem()).released()
        try log.write(try log.read(log.path(1)), to: log.path(2))
        let report = try log.repair().repair()
        let lost = try #require(report.lost.first)
        #expect(lost.lowerBound == Position(19))
        #expect(report.lost.count == 1)
        let again = try Log(at: TestLog.path, environment: TestLog.environment(log.files))
        #expect(again.next > Position(27), "an acknowledged position is given to another event")
    }

    @Test(.verifies("REP-2"))
    func `a whole copy elsewhere is better than a truncated file in its place`() throws {
        let log = try DamagedLog(on: InMemoryFileSystem()).released()
        let whole = try log.read(log.path(1))
        let commit = try log.commits(1)[2]
        try log.write(whole, to: log.path(2))
        // As a killed writer leaves it: complete commits, and preallocated space.
        let kept = Array(whole[..<commit.offset])
        let size = (kept.count / 4_096 + 2) * 4_096
        try log.write(
            kept + [UInt8](repeating: 0, count: size - kept.count), to: log.path(1))
        let report = try log.repair().repair()
        #expect(!report.lost.contains { $0.lowerBound < Position(19) }, "\(report.lost)")
    }

    @Test(.verifies("REP-2"))
    func `a forged footer that covers the next segments costs none of their lines`() throws {
        for covered in [Position(10), Position(4_294_967_296)] {
            let log = try DamagedLog(on: InMemoryFileSystem()).released()
            let found = try #require(
                try SegmentFooter.read(atEndOf: log.files.open(log.path(0), .read)))
            var footer = found.footer
            footer.coveredThrough = covered
            try log.change(log.path(0)) {
                $0.replaceSubrange(found.start..., with: footer.encoded())
            }
            #expect(try log.repair().repair().lost == [], "\(covered)")
        }
    }

    @Test(.verifies("REC-9"))
    func `a rewrite journal for bytes after the segment's end is of another file and ignored`()
        throws
    {
        let log = try DamagedLog(on: InMemoryFileSystem(), ending: .killed).released()
        let size = try log.read(log.path(2)).count
        for offset in [size - 10, size, 30_000_000] {
            var bytes = Array("DAYBOOKR".utf8)
            bytes.append(littleEndian: log.ranges[2].lowerBound.rawValue)
            bytes.append(littleEndian: UInt64(offset))
            bytes.append(littleEndian: UInt64(50))
            bytes += [UInt8](repeating: 7, count: 50)
            bytes.append(littleEndian: XXH64.hash(bytes.span.bytes))
            let copy = log.moved(to: try #require(log.files as? InMemoryFileSystem).snapshot())
            try copy.write(bytes, to: DamagedLog.path("rewrite"))
            #expect(try !copy.isDamaged(), "\(offset)")
            #expect(try copy.repair().plan().actions == [])
            let open = try Log(
                at: TestLog.path, account: DamagedLog.account,
                environment: TestLog.environment(copy.files))
            #expect(open.next == Position(28))
            #expect(try copy.read(copy.path(2)).count == size)
        }
    }

    @Test(.verifies("REP-1", "CHK-6"))
    func `a damaged checkpoint is quarantined, and the good one stays`() throws {
        let log = try DamagedLog(on: InMemoryFileSystem()).released()
        for _ in 0..<2 { try storeCheckpoint(log) }
        try log.change(DamagedLog.path("checkpoints/a")) { $0.append(1) }
        let good = try log.read(DamagedLog.path("checkpoints/b"))
        let report = try log.repair().repair()
        #expect(report.actions.map(\.name) == ["checkpoints/a"])
        #expect(
            report.actions[0].quarantinedAs == DamagedLog.path("quarantine/checkpoints-a.damaged"))
        #expect(try log.repair().plan().actions == [])
        #expect(try log.image()["checkpoints/a"] == nil)
        // A damaged rewrite journal is no reason to touch checkpoints.
        try log.write([1, 2, 3], to: DamagedLog.path("rewrite"))
        #expect(try log.repair().repair().actions.map(\.name) == ["rewrite"])
        #expect(try log.read(DamagedLog.path("checkpoints/b")) == good)
    }

    @Test(.verifies("REP-2"))
    func `an older live copy in place of a sealed segment is completed by a hole`()
        throws
    {
        let files = InMemoryFileSystem()
        let log = try DamagedLog(on: files, segments: 1, ending: .killed)
        let older = try log.read(log.path(0))
        let whole = try DamagedLog(on: InMemoryFileSystem(), commits: log.longer, segments: 2)
        try whole.write(older, to: whole.path(0))
        try #require(try whole.isDamaged())
        let report = try whole.checkRepair("an older copy")
        #expect(report.lost.count == 1)
    }

    @Test(.verifies("REP-2")) func `an unreadable file is quarantined`() throws {
        let noise = [UInt8](repeating: 0x5A, count: 3_000)
        _ = try repair("noise instead of the second", losing: [10...18]) {
            try $0.write(noise, to: $0.path(1))
        }
        let (_, report) = try repair("noise instead of the last", losing: nil) {
            try $0.write(noise, to: $0.path(2))
        }
        // The number of its positions is not known, so none that it can have had is reused.
        #expect(report.lost.first?.lowerBound == Position(19))
        #expect(report.lost.first?.upperBound ?? .zero > Position(1_000_000))
        _ = try repair("noise and nothing else", losing: nil) {
            for segment in 0..<3 { try $0.write(noise, to: $0.path(segment)) }
        }
        _ = try repair("an empty file instead of the first", losing: [1...9]) {
            try $0.write([], to: $0.path(0))
        }
        // Zeros in place of the last segment look like a segment whose creation was interrupted.
    }

    @Test(.verifies("REP-3"))
    func `checkpoints are quarantined with the segments that they depend on`() throws {
        let log = try DamagedLog(on: InMemoryFileSystem())
        try log.files.createDirectory(DamagedLog.path("checkpoints"))
        try log.write([1, 2, 3], to: DamagedLog.path("checkpoints/a"))
        #expect(try log.repair().plan().actions.map(\.name) == ["checkpoints/a"])
        _ = try repair("a block", log, losing: [1...4]) {
            let commit = try $0.commits(0)[0]
            try $0.change($0.path(0)) { $0[commit.offset + 30] ^= 4 }
        }
        let image = try log.image()
        #expect(image["checkpoints/a"] == nil)
        #expect(image["quarantine/checkpoints-a.damaged"] == [1, 2, 3])
    }

    @Test(.verifies("REP-1", "REP-3"))
    func `a folder that is no log is not repaired, whatever its files are called`() throws {
        for name in ["notes.repair", "1.lz4.repair", "00000000000000000001.lz4.x.repair"] {
            let files = InMemoryFileSystem()
            try files.createDirectory(TestLog.path)
            files[DamagedLog.path(name)] = [1]
            files[DamagedLog.path("notes")] = [2]
            let repair = LogRepair(TestLog.path, environment: TestLog.environment(files))
            for act in [repair.plan, repair.repair] {
                let error = #expect(throws: LogError.self) { try act() }
                #expect(error?.code == .notALog, "\(name)")
            }
            #expect(files[DamagedLog.path(name)] == [1])
            #expect(files[DamagedLog.path("notes")] == [2])
        }
        // In a log, a file of another name is not touched either.
        let log = try DamagedLog(on: InMemoryFileSystem()).released()
        try log.write([1], to: DamagedLog.path("notes.repair"))
        try log.change(log.path(0)) { $0[try log.commits(0)[0].offset + 30] ^= 4 }
        #expect(try log.repair().repair().lost == [Position(1)...Position(4)])
        #expect(try log.read(DamagedLog.path("notes.repair")) == [1])
    }

    @Test(.verifies("REP-1"), arguments: ["rewrite.new", "compaction.new"])
    func `a folder in the place of a file that a writer removes is moved away`(
        name: String
    ) throws {
        let log = try DamagedLog(on: InMemoryFileSystem())
        #expect(try log.repair().plan().actions == [])
        try log.files.createDirectory(DamagedLog.path(name))
        let found = try LogVerifier(TestLog.path, fileSystem: log.files).verify { _, _ in nil }
        #expect(found.findings.map(\.segment) == [name])
        #expect(found.events == log.lines.count)
        #expect(try log.repair().plan().actions.map(\.name) == [name])
        #expect(try log.repair().repair().lost == [])
        #expect(try log.repair().plan().actions == [])
        #expect(try log.files.list(DamagedLog.path("quarantine")).contains { $0.hasPrefix(name) })
        let summary = try LogVerifier(TestLog.path, fileSystem: log.files).verify { _, _ in nil }
        #expect(summary.findings == [])
    }

    @Test(.verifies("REP-1"), arguments: ["quarantine", "checkpoints"])
    func `a file in the place of a folder is moved away`(name: String) throws {
        let log = try DamagedLog(on: InMemoryFileSystem())
        let path = DamagedLog.path(name)
        try log.write([1, 2, 3], to: path)
        let found = try LogVerifier(TestLog.path, fileSystem: log.files).verify { _, _ in nil }
        #expect(found.findings.map(\.segment) == [name])
        #expect(try log.repair().plan().actions.map(\.name) == [name])
        let report = try log.repair().repair()
        let moved = try #require(report.actions.first?.quarantinedAs)
        #expect(try log.read(moved) == [1, 2, 3])
        #expect(try log.repair().plan().actions == [])
        #expect(report.lost == [])
        let summary = try LogVerifier(TestLog.path, fileSystem: log.files).verify { _, _ in nil }
        #expect(summary.findings == [])
    }

    @Test(.verifies("REP-2"))
    func `a folder that is named as a segment far ahead proves no position`() throws {
        let log = try DamagedLog(on: InMemoryFileSystem(), ending: .sealed)
        let name = SegmentName.of(Position(18_446_744_069_414_584_319))
        try log.files.createDirectory(DamagedLog.path(name))
        let report = try log.repair().repair()
        #expect(report.actions.map(\.name) == [name])
        #expect(report.lost == [])
        #expect(try log.files.list(TestLog.path).count { $0.hasSuffix(".lz4") } == 3)
        // What a later segment had is not known.
        #expect(report.actions.map(\.endIsKnown) == [false])
    }

    /// The last segment of the log has become a folder. In a copy the lock file is another one than it names.
    private func withFolderAsLast(
        on files: any FileSystem, copied: Bool, checkpoint: Bool
    ) throws -> DamagedLog {
        var log = try DamagedLog(on: files)
        if checkpoint { try storeCheckpoint(log) }
        if copied {
            let copy = InMemoryFileSystem()
            for folder in ["", "/checkpoints"] { try copy.createDirectory(TestLog.path + folder) }
            copy[DamagedLog.path("reserve")] = []
            for (name, bytes) in try log.image().sorted(by: { $0.key < $1.key }) {
                copy[DamagedLog.path(name)] = bytes
            }
            log = log.moved(to: copy)
        }
        try log.remove(log.path(2))
        try log.files.createDirectory(log.path(2))
        try log.files.syncDirectory(TestLog.path)
        return log
    }

    @Test(.verifies("REP-2", "CHK-8"), arguments: [false, true], [false, true])
    func `the positions of a last segment that has become a folder are not given again`(
        copied: Bool, checkpoint: Bool
    ) throws {
        let log = try withFolderAsLast(
            on: InMemoryFileSystem(), copied: copied, checkpoint: checkpoint)
        #expect(CopiedFolder.isCopy(TestLog.path, log.files) == copied)
        let report = try log.repair().repair()
        #expect(report.lost.first?.lowerBound == Position(19))
        #expect(report.actions.contains { $0.verb == .create && !$0.endIsKnown })
        try log.checkRepaired(report, "copied: \(copied), checkpoint: \(checkpoint)")
    }

    @Test(.verifies("REP-3", "REP-5"))
    func `a folder in place of a segment is moved when the segment for its positions is durable`()
        throws
    {
        var kills = 0
        for operation in 1... {
            let log = try withFolderAsLast(
                on: InMemoryFileSystem(), copied: true, checkpoint: false)
            let files = try #require(log.files as? InMemoryFileSystem)
            let watched = InterleavingFileSystem(
                files,
                cut: { $0 == operation ? InterleavingFileSystem.Cut(kills: true) : nil }, look: {})
            if (try? log.moved(to: watched).repair().repair()) != nil { break }
            kills += 1
            _ = try log.repair().repair()
            try log.checkRepaired(nil, "operation \(operation)")
        }
        #expect(kills > 5)
    }

    @Test(.verifies("REP-3", "CMP-30"))
    func `a state that cannot be computed from lines survives a repair`() throws {
        for ending in DamagedLog.Ending.allCases {
            let log = try DamagedLog(on: InMemoryFileSystem(), ending: ending).released()
            let slots = CheckpointSlots(TestLog.path, fileSystem: log.files)
            let open = try Log(at: TestLog.path, environment: TestLog.environment(log.files))
            let states = ["needs", "view"].map {
                StoredState(name: $0, version: 1, position: Position(20), bytes: Array($0.utf8))
            }
            try slots.write(try open.snapshot().checkpoint(states: states, createdAt: 1, seed: 5))
            try open.close()
            try log.change(log.path(0)) { $0[try log.commits(0)[0].offset + 30] ^= 4 }
            _ = try LogRepair(
                TestLog.path, keptStates: ["needs"], environment: TestLog.environment(log.files)
            ).repair()
            #expect(slots.usable().flatMap(\.states).map(\.name) == ["needs"])
            let again = try Log(at: TestLog.path, environment: TestLog.environment(log.files))
            let kept = again.consumeCheckpoint()?.states.first
            #expect(kept?.bytes == Array("needs".utf8))
            #expect(kept?.position == .zero)
        }
    }

    // MARK: Checkpoints and compaction

    /// Stores a checkpoint of the whole log.
    private func storeCheckpoint(_ log: DamagedLog) throws {
        let open = try Log(at: TestLog.path, environment: TestLog.environment(log.files))
        try CheckpointSlots(TestLog.path, fileSystem: log.files).write(
            try open.snapshot().checkpoint(states: [], createdAt: 1, seed: 5))
    }

    @Test(.verifies("REP-2", "CHK-5"), arguments: DamagedLog.Ending.allCases)
    func `an end that is missing without a trace is detected by a checkpoint`(
        ending: DamagedLog.Ending
    ) throws {
        let log = try DamagedLog(on: InMemoryFileSystem(), ending: ending).released()
        try storeCheckpoint(log)
        let stored = try log.released()
        let (cut, report) = try repair("the last commits are zeros", log, losing: nil) { log in
            let commits = try log.commits(2)
            try log.change(log.path(2)) { bytes in
                for at in commits[2].end..<bytes.count { bytes[at] = 0 }
                bytes += [UInt8](repeating: 0, count: 4_096 - bytes.count % 4_096)
            }
        }
        #expect(report.lost.first?.lowerBound == Position(25))
        #expect(try cut.image()["checkpoints/a"] == nil)
        _ = try repair("without the last segment", stored, losing: nil) {
            try $0.remove($0.path(2))
        }
    }

    /// A log of two segments, the first compacted twice, and its model.
    private func compacted() throws -> (CompactionModel, InMemoryFileSystem) {
        let files = InMemoryFileSystem()
        var model = CompactionModel(files: files)
        let log = try model.open()
        try model.appendSealedSegment(to: log)
        try model.append(to: log, paddings: [1, 2])
        try model.compact(log) { $0 == 3 }
        try model.compact(log) { $0 == 10 }
        try log.close()
        return (model, files.snapshot())
    }

    /// Damages the compacted segment and repairs it.
    private func repairCompacted(
        _ what: String, _ damage: (inout [UInt8], SealedSegment) throws -> Void
    ) throws -> (log: Log, report: RepairReport, lines: Set<UInt64>, before: SealedSegment) {
        let (model, files) = try compacted()
        let name = SegmentName.of(Position(1))
        let before = try SealedSegment(name, in: TestLog.path, files)
        var bytes = try #require(files[DamagedLog.path(name)])
        try damage(&bytes, before)
        let copy = files.snapshot()
        copy[DamagedLog.path(name)] = bytes
        let verifier = LogVerifier(TestLog.path, fileSystem: copy)
        try #require(try !verifier.verify { _, _ in nil }.findings.isEmpty, "\(what): not noticed")
        let report = try LogRepair(TestLog.path, environment: TestLog.environment(copy)).repair()
        try #require(try verifier.verify { _, _ in nil }.findings == [], "\(what)")
        var found: Set<UInt64> = []
        try LogReader(TestLog.path, fileSystem: copy).forEachLine { prefix, line in
            try #require(model.lines[prefix.position.rawValue] == line.array)
            found.insert(prefix.position.rawValue)
            return true
        }
        let log = try Log(at: TestLog.path, environment: TestLog.environment(copy))
        #expect(log.next.rawValue == model.next)
        return (log, report, found, before)
    }

    @Test(.verifies("REP-2", "CMP-25"))
    func `holes of compaction are no loss, and removed ids are kept`() throws {
        let all: Set<UInt64> = Set(1...14).subtracting([3, 10])
        let footer = try repairCompacted("footer") { bytes, _ in bytes[bytes.count - 3] ^= 1 }
        #expect(footer.report.lost == [])
        #expect(footer.lines == all)
        #expect(try footer.log.removed(id: TestLog.id(3))?.position == Position(3))
        #expect(try footer.log.removed(id: TestLog.id(10))?.position == Position(10))
        // The position of the compaction was in the footer only.
        #expect(try footer.log.compactedThrough() == Position(14))

        let block = try repairCompacted("block") { bytes, segment in
            let lists = try #require(segment.footer.compaction).removedIDBytes
            bytes[segment.footerAt - lists - 50] ^= 1
        }
        // A whole list says that compaction, and not the damage, has removed line 10.
        #expect(block.report.lost == [Position(8)...Position(9), Position(11)...Position(12)])
        #expect(block.lines == all.subtracting(8...12))
        #expect(try block.log.removed(id: TestLog.id(3)) != nil)
        #expect(
            try block.log.compactedThrough() == block.before.footer.compaction?.through)

        let list = try repairCompacted("a list of removed ids") { bytes, segment in
            bytes[segment.footerAt - 3] ^= 1
        }
        #expect(list.report.lost == [])
        #expect(list.lines == all)
        #expect(try list.log.removed(id: TestLog.id(3)) != nil)
        #expect(try list.log.removed(id: TestLog.id(10)) == nil)

        let header = try repairCompacted("header and footer") { bytes, _ in
            bytes.replaceSubrange(0..<512, with: repeatElement(1, count: 512))
            bytes[bytes.count - 3] ^= 1
        }
        #expect(header.report.lost == [])
        #expect(header.lines == all)
        #expect(try header.log.removed(id: TestLog.id(3)) != nil)
    }

    // MARK: Everything

    /// Damages and repairs copies of a small log, one for each way.
    private func sweep(
        _ ending: DamagedLog.Ending, _ ways: (_ bytes: Int, _ used: Int) -> [Int],
        _ damage: (inout [UInt8], Int) -> Void
    ) throws {
        let log = try DamagedLog(
            on: InMemoryFileSystem(), commits: DamagedLog.small, ending: ending)
        let files = try #require(log.files as? InMemoryFileSystem)
        for segment in 0..<3 {
            let count = try log.read(log.path(segment)).count
            let used = try log.read(log.path(segment)).lastIndex { $0 != 0 } ?? 0
            for way in ways(count, used) {
                let copy = log.moved(to: files.snapshot())
                try copy.change(copy.path(segment)) { damage(&$0, way) }
                let what = "segment \(segment), \(way)"
                let isDamaged = try copy.isDamaged()
                try #require(
                    try !copy.repair().plan().actions.isEmpty == isDamaged,
                    "\(what): repair and verification disagree")
                if isDamaged { try copy.checkRepair(what) }
            }
        }
    }

    @Test(.verifies("REP-1", "REP-2"), arguments: DamagedLog.Ending.allCases)
    func `any flipped bit is repaired or harmless`(ending: DamagedLog.Ending) throws {
        try sweep(ending) { _, used in
            Array(stride(from: 0, to: (used + 30) * 8, by: TestLog.isDebug ? 397 : 11))
        } _: { bytes, bit in
            if bit / 8 < bytes.count { bytes[bit / 8] ^= 1 << UInt8(bit % 8) }
        }
    }

    @Test(.verifies("REP-1", "REP-2"), arguments: DamagedLog.Ending.allCases)
    func `a file truncated anywhere is repaired or taken for a torn tail`(
        ending: DamagedLog.Ending
    ) throws {
        try sweep(ending) { count, used in
            Array(stride(from: 0, to: used, by: TestLog.isDebug ? 97 : 7))
                + [count - 1, count - 8, count - 20, used, used + 1].filter { $0 < count }
        } _: { bytes, length in
            bytes.removeSubrange(length...)
        }
    }

    @Test(.verifies("REP-1", "REP-2"), arguments: DamagedLog.Ending.allCases)
    func `a sector of zeros anywhere is repaired or harmless`(
        ending: DamagedLog.Ending
    ) throws {
        try sweep(ending) { _, used in
            Array(stride(from: 0, to: used, by: 512))
        } _: { bytes, start in
            let range = start..<min(start + 512, bytes.count)
            bytes.replaceSubrange(range, with: repeatElement(0, count: range.count))
        }
    }
}

extension DamagedLog {
    /// The same log as after a kill, with no file open.
    func released() throws -> DamagedLog {
        let files = try #require(self.files as? InMemoryFileSystem)
        return moved(to: files.snapshot())
    }

    func header(_ segment: Int) throws -> SegmentHeader {
        let bytes = try read(path(segment))
        return try SegmentHeader(bytes.span.bytes)
    }

    /// The commits of `manyFrames`, and one more.
    var longer: [[Int]] { Self.manyFrames + [[1, 2, 3]] }
}
