// Every truncation and every flipped bit of small logs: detected with its location, harmless, or a torn tail
// that loses only the end. A closed or sealed segment is never truncated.

import DaybookTestKit
import LogFormat
import LogStorage
import TestSupport
import Testing

@Suite struct DamageTests {
    /// The result of opening and reading a damaged log.
    private enum Outcome {
        case same
        case noticed(LogError)
        case lost(kept: Int, RecoveryReport)
    }

    /// Opens a damaged log, reads it, and checks the guarantees that hold in every case.
    private func examine(
        _ files: InMemoryFileSystem, _ lines: [[UInt8]], _ what: String
    ) throws -> Outcome {
        let before = files.image
        let log: Log
        do throws(LogError) {
            log = try Log(at: TestLog.path, environment: TestLog.environment(files))
        } catch {
            try #require(!error.path.isEmpty)
            try #require(!error.detail.isEmpty)
            var after = files.image
            if before["/log/lock"] == nil { after["/log/lock"] = nil }
            try #require(after == before, "\(what): refused (\(error)) and yet changed")
            return .noticed(error)
        }
        do {
            let read = try TestLog.read(files)
            try #require(
                read.elementsEqual(lines.prefix(read.count), by: ==),
                "\(what): gives other lines")
            if read.count == lines.count { return .same }
            return .lost(kept: read.count, log.recovery)
        } catch let error as LogError {
            return .noticed(error)
        }
    }

    /// A log of small commits, with the plaintext in few frames.
    private func make(_ end: (inout TestLog, Log) throws -> Void) throws -> TestLog {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [0])
        try test.append(to: log, paddings: [10, 0, 3])
        try test.append(to: log, paddings: [300])
        try end(&test, log)
        // As after a kill: no file of the copy is open.
        var copy = TestLog(files: test.files.snapshot())
        copy.lines = test.lines
        return copy
    }

    /// All bits of a file's first bytes; in a debug build every eleventh, which still covers each bit of a
    /// byte and almost every byte.
    private func bits(_ bytes: Int) -> StrideTo<Int> {
        stride(from: 0, to: bytes * 8, by: TestLog.isDebug ? 11 : 1)
    }

    /// The number of bytes of a live file to flip: those before the zeros, and 40 of the zeros.
    private func used(_ bytes: [UInt8]) -> Int {
        min(bytes.count, (bytes.lastIndex { $0 != 0 } ?? 0) + 40)
    }

    /// The last commit of a log that was not closed may look torn; no other line may be lost.
    @Test(.verifies("REC-1", "REC-5"))
    func `a flipped bit in a log that was not closed costs at most its last commit`() throws {
        let test = try make { _, _ in }
        let path = try #require(TestLog.segments(test.files).first)
        let bytes = try #require(test.files[path])
        for bit in bits(used(bytes)) {
            let files = test.files.snapshot()
            files.flip(bit: bit, of: path)
            switch try examine(files, test.lines, "bit \(bit)") {
            case .same, .noticed: break
            case .lost(let kept, let report):
                #expect(kept == 4, "bit \(bit)")
                #expect(report.tornTail?.quarantinedAs != nil, "bit \(bit)")
            }
        }
    }

    @Test(.verifies("REC-5", "SEG-7"))
    func `a flipped bit in a log that was closed is noticed or harmless`() throws {
        let test = try make { _, log in try log.close() }
        let path = try #require(TestLog.segments(test.files).first)
        let bytes = try #require(test.files[path])
        let data = bytes.count - CleanShutdownMarker.encodedBytes
        for bit in bits(bytes.count) {
            let files = test.files.snapshot()
            files.flip(bit: bit, of: path)
            switch try examine(files, test.lines, "bit \(bit)") {
            case .same: #expect(bit >= data * 8, "bit \(bit) of data passed unnoticed")
            case .noticed(let error): #expect(error.path == path)
            case .lost(let kept, _): Issue.record("bit \(bit): only \(kept) lines left")
            }
        }
    }

    @Test(.verifies("SEG-5"))
    func `a flipped bit in or after a sealed segment is noticed or harmless`() throws {
        let test = try make { test, log in
            try log.roll()
            try test.append(to: log, paddings: [5, 5])
            try log.close()
        }
        let paths = TestLog.segments(test.files)
        #expect(paths.count == 2)
        for path in paths {
            let bytes = try #require(test.files[path])
            for bit in bits(bytes.count) {
                let files = test.files.snapshot()
                files.flip(bit: bit, of: path)
                switch try examine(files, test.lines, "bit \(bit) of \(path)") {
                case .same, .noticed: break
                case .lost(let kept, _): Issue.record("bit \(bit): only \(kept) lines left")
                }
            }
        }
    }

    @Test(.verifies("SEG-5"))
    func `a flipped bit in a sealed last segment is noticed or harmless`() throws {
        let test = try make { _, log in try log.roll() }
        let path = try #require(TestLog.segments(test.files).first)
        for bit in bits(try #require(test.files[path]).count) {
            let files = test.files.snapshot()
            files.flip(bit: bit, of: path)
            switch try examine(files, test.lines, "bit \(bit)") {
            case .same, .noticed: break
            case .lost(let kept, _): Issue.record("bit \(bit): only \(kept) lines left")
            }
        }
    }

    /// The end of each commit's data, and offsets near it.
    private static func cutsBetweenCommits(_ files: InMemoryFileSystem, _ path: String) -> [Int] {
        let name = String(path.split(separator: "/").last ?? "")
        guard let file = try? files.open(path, .read), let base = SegmentName.base(name)
        else { return [] }
        var scanner = SegmentScanner(file, expecting: base, allowsHoles: false)
        var cuts: [Int] = []
        while case .commit(let commit)? = try? scanner.next() {
            cuts += [commit.end - 1, commit.end, commit.end + 1, commit.end + 4]
        }
        return cuts
    }

    /// A truncated file is damage and no torn write, since a writer never leaves a file that ends before its
    /// trailer. Opening may take it for a torn tail, but must report that.
    @Test(.verifies("REC-5"), arguments: ["live", "closed", "sealed", "big", "second"])
    func `a truncation to any length is detected, harmless or reported`(kind: String) throws {
        let test = try make { test, log in
            switch kind {
            case "closed": try log.close()
            case "sealed": try log.roll()
            case "big":
                try test.append(to: log, paddings: [40_000, 40_000])
                try log.close()
            case "second":
                try log.roll()
                try test.append(to: log, paddings: [5, 5])
            default: break
            }
        }
        let path = try #require(TestLog.segments(test.files).last)
        let bytes = try #require(test.files[path])
        let lengths =
            Array(stride(from: 0, to: min(bytes.count, 1_400), by: TestLog.isDebug ? 7 : 1))
            + stride(from: 1_400, to: max(1_401, bytes.count - 50), by: 4_999)
            + (max(1_400, bytes.count - 50)..<max(1_400, bytes.count))
            + Self.cutsBetweenCommits(test.files, path)
        for length in lengths where length < bytes.count {
            let files = test.files.snapshot()
            files[path] = Array(bytes[..<length])
            switch try examine(files, test.lines, "cut to \(length)") {
            case .same, .noticed: break
            case .lost(_, let report):
                #expect(
                    report.tornTail != nil || report.removedUnfinishedSegment,
                    "cut to \(length) lost lines in silence")
            }
        }
    }

    @Test(.verifies("SEG-1"))
    func `a missing, doubled, swapped or foreign segment is noticed`() throws {
        let test = try make { test, log in
            for _ in 0..<2 {
                try log.roll()
                try test.append(to: log, paddings: [5, 5])
            }
            try log.close()
        }
        let paths = TestLog.segments(test.files)
        #expect(paths.count == 3)
        let other = try make { _, log in try log.roll() }
        let foreign = try #require(other.files["/log/00000000000000000001.lz4"])
        var spoilt: [(String, InMemoryFileSystem)] = []
        for path in paths.dropLast() {
            let files = test.files.snapshot()
            files[path] = nil
            spoilt.append(("without \(path)", files))
        }
        let doubled = test.files.snapshot()
        doubled["/log/00000000000000000099.lz4"] = doubled[paths[2]]
        spoilt.append(("doubled", doubled))
        let swapped = test.files.snapshot()
        swapped[paths[0]] = test.files[paths[1]]
        swapped[paths[1]] = test.files[paths[0]]
        spoilt.append(("swapped", swapped))
        let mixed = test.files.snapshot()
        var header = try SegmentHeader(foreign.span.bytes)
        header.logID ^= 1
        mixed[paths[0]]?.replaceSubrange(0..<512, with: header.encoded())
        spoilt.append(("of another log", mixed))
        for (what, files) in spoilt {
            guard case .noticed(let error) = try examine(files, test.lines, what) else {
                Issue.record("\(what) passed")
                continue
            }
            #expect(error.code == .corrupt)
        }
    }

    @Test(.verifies("REC-3"))
    func `a removed block is detected, also where the stock tool does not`() throws {
        for end in ["live", "closed", "sealed"] {
            let test = try make { _, log in
                if end == "closed" { try log.close() }
                if end == "sealed" { try log.roll() }
            }
            let path = try #require(TestLog.segments(test.files).first)
            let file = try test.files.open(path, .read)
            var scanner = SegmentScanner(file, expecting: Position(1), allowsHoles: false)
            var commits: [ScannedCommit] = []
            while case .commit(let commit) = try scanner.next() { commits.append(commit) }
            #expect(commits.count == 3)
            for commit in commits {
                let files = test.files.snapshot()
                // The first block shares its commit with the frame header, which stays.
                let start = commit.beginsFrame ? commit.offset + 7 : commit.offset
                files[path]?.removeSubrange(start..<commit.end)
                switch try examine(files, test.lines, "\(end), without \(start)") {
                case .noticed: break
                case .same: Issue.record("\(end): the block at \(start) was not missed")
                case .lost(let kept, let report):
                    // Nothing proves that the last block of a log that was not closed was synced.
                    let isLast = commit.positions.upperBound == Position(5)
                    #expect(
                        end == "live" && isLast && kept == 4 || report.tornTail != nil,
                        "\(end), without \(start): \(kept) lines kept")
                }
            }
        }
    }

    @Test func `a lookup in a damaged frame fails instead of finding nothing`() throws {
        let test = try make { _, log in try log.roll() }
        let path = try #require(TestLog.segments(test.files).first)
        let log = try test.open()
        var file = try #require(test.files[path])
        let file2 = try test.files.open(path, .read)
        let footer = try #require(try SegmentFooter.read(atEndOf: file2))
        file[footer.start - 20] ^= 1
        test.files[path] = file
        let byID = #expect(throws: LogError.self) { try log.line(id: TestLog.id(5)) }
        #expect(byID?.code == .corrupt)
        let byPosition = #expect(throws: LogError.self) { try log.line(at: Position(5)) }
        #expect(byPosition?.code == .corrupt)
    }
}
