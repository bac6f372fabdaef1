// Reads the files of a log with the stock lz4 tool, on the real file system: at every commit point, while the
// writer runs, after closing, after sealing. Also tests behaviour that only a real file system shows.

import DaybookTestKit
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import LogStorage

@Suite struct StockToolTests {
    private func run(_ command: String) throws -> (status: Int32, output: [UInt8]) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", command]
        process.standardError = FileHandle.nullDevice
        let output = Pipe.betweenStarts()
        process.standardOutput = output
        try process.runAlone()
        let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, Array(bytes))
    }

    /// Checks that the tool accepts every segment, and that together they print every line.
    private func check(_ log: String, _ lines: [[UInt8]]) throws {
        let tested = try run("for f in \(log)/*.lz4; do lz4 -t -q $f || exit 1; done")
        try #require(tested.status == 0)
        let printed = try run("cat \(log)/*.lz4 | lz4 -dc")
        try #require(printed.status == 0)
        try #require(printed.output == lines.flatMap { $0 + [10] })
    }

    /// Full blocks and frames, lines larger than a block, holes.
    @Test(.verifies("SEG-5"))
    func `the stock tool and the verifier read a rewritten segment`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.log
        let files = POSIXFileSystem()
        try files.createDirectory(path)
        let header = SegmentHeader(logID: 1, account: nil, base: Position(1), createdAt: 0)
        var writer = SegmentRewriter(
            try files.open(path + "/00000000000000000001.lz4", .createNew),
            header: header.encoded(), base: header.base, seed: 3)
        var lines: [[UInt8]] = []
        var position: UInt64 = 1
        for padding in [0, 20_000, 45_000, 10, 59_000, 59_000, 70_000, 5, 150_000, 59_000, 1] {
            let line = TestLog.line(position, padding: padding)
            try writer.append(try LinePrefix(line.span.bytes), line.span.bytes)
            lines.append(line)
            position += position % 3 == 0 ? 5 : 1
        }
        try writer.endLines()
        _ = try writer.finish(
            coveredThrough: Position(position + 9), compactedThrough: .zero)
        try check(path, lines)
        let verifier = LogVerifier(path)
        #expect(try verifier.verify { _, _ in nil }.findings == [])
        let log = try Log(at: path, create: false)
        #expect(log.next == Position(position + 10))
        for line in lines {
            let prefix = try LinePrefix(line.span.bytes)
            #expect(try log.line(id: prefix.id)?.bytes == line)
            #expect(try log.line(at: prefix.position) == line)
        }
    }

    @Test(.verifies("FRM-1", "SEG-1", "SEG-3"))
    func `the stock tool reads every segment at every commit point`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.log
        let environment = TestLog.environment(POSIXFileSystem())
        var test = TestLog()
        var log = try Log(at: path, environment: environment)
        try check(path, [])
        // Small, a full block, noise enough to be stored raw, big; the frame ends in between.
        let batches = [
            [0], [3, 0, 9], [30_000], [61_100], [61_300], [60_000, 60_000], [2], [59_000],
            [59_000], [59_000], [1], [200_000],
        ]
        for (number, paddings) in batches.enumerated() {
            try test.append(to: log, paddings: paddings)
            try check(path, test.lines)
            switch number % 4 {
            case 1:
                try log.close()
                try check(path, test.lines)
                log = try Log(at: path, environment: environment)
                try check(path, test.lines)
            case 3:
                try log.roll()
                try check(path, test.lines)
            default: break
            }
        }
        try log.close()
        try check(path, test.lines)
        #expect(try TestLog.read(POSIXFileSystem(), at: path) == test.lines)
    }

    @Test(.verifies("CMP-22", "SEG-1", "SEG-8"))
    func `the stock tool reads compacted segments, also those without a line`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        var model = CompactionModel(files: POSIXFileSystem())
        let log = try Log(at: folder.log, environment: model.environment())
        for paddings in [[0, 9, 3], [70_000, 5], [40_000, 30_000, 20_000, 61_400, 1]] {
            try model.append(to: log, paddings: paddings)
            try log.roll()
        }
        try model.append(to: log, paddings: [7])
        // Some, then all of a segment, then all of every sealed one.
        for removal in [{ $0 % 2 == 0 }, { $0 < 4 }, { _ in true }] as [(UInt64) -> Bool] {
            try model.compact(log, removing: removal)
            let left = model.lines.sorted { $0.key < $1.key }.map(\.value)
            try check(folder.log, left)
        }
        try log.close()
        #expect(model.lines.count == 1)
    }

    @Test(.verifies("SEG-1")) func `files are for their owner only`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.log
        let log = try Log(at: path, environment: TestLog.environment(POSIXFileSystem()))
        var test = TestLog()
        try test.append(to: log, paddings: [0, 0])
        try log.roll()
        try CompactionModel.compact(log) { $0 == 1 }
        try log.close()
        let permissions = { (path: String) throws -> Int? in
            let found = try FileManager.default.attributesOfItem(atPath: path)
            return (found[.posixPermissions] as? NSNumber)?.intValue
        }
        #expect(try permissions(path) == 0o700)
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            #expect(try permissions(path + "/" + name) == 0o600, "\(name)")
        }
    }

    @Test(.verifies("SEG-1")) func `a segment that is a symbolic link is refused`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.log
        let environment = TestLog.environment(POSIXFileSystem())
        var test = TestLog()
        let log = try Log(at: path, environment: environment)
        try test.append(to: log, paddings: [0])
        try log.close()
        let segment = path + "/00000000000000000001.lz4"
        try FileManager.default.moveItem(atPath: segment, toPath: folder.path + "/elsewhere")
        try FileManager.default.createSymbolicLink(
            atPath: segment, withDestinationPath: folder.path + "/elsewhere")
        let before = try Data(contentsOf: URL(fileURLWithPath: folder.path + "/elsewhere"))
        let error = #expect(throws: LogError.self) {
            try Log(at: path, environment: environment)
        }
        #expect(error?.code == .io)
        #expect(error?.path == segment)
        #expect(error?.detail.contains("symbolic link") == true)
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.path + "/elsewhere")) == before)
    }

    @Test(.verifies("LINE-4", "REC-1"))
    func `a second writer is refused and a copied folder is another incarnation`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.log
        let environment = LogEnvironment()
        let log = try Log(at: path, environment: environment)
        let error = #expect(throws: LogError.self) {
            try Log(at: path, environment: environment)
        }
        #expect(error?.code == .locked)
        try log.close()
        try FileManager.default.copyItem(atPath: path, toPath: folder.path + "/copy")
        let copy = try Log(at: folder.path + "/copy", environment: environment)
        #expect(copy.incarnation != log.incarnation)
        #expect(copy.id == log.id)
        let again = try Log(at: path, environment: environment)
        #expect(again.incarnation == log.incarnation)
    }

    #if os(Linux)
        @Test(.verifies("LINE-4"), arguments: ["", "/lock"])
        func `a closed log can be opened while another process has a copy of its descriptor`(
            locked: String
        ) throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let path = folder.log
            let log = try Log(at: path, environment: LogEnvironment())
            // A process that is being spawned has this copy until it executes its own program.
            let lock = try #require(
                (3..<4_096).first { descriptor in
                    let link = "/proc/self/fd/\(descriptor)"
                    let target = try? FileManager.default.destinationOfSymbolicLink(
                        atPath: link)
                    return target?.hasSuffix(path + locked) == true
                })
            let copy = dup(Int32(lock))
            defer { close(copy) }
            try #require(copy >= 0)
            try log.close()
            try Log(at: path, environment: LogEnvironment()).close()
        }
    #endif
}
