// A log may have more segments than a process may have open files. Spec/format/segment.md, SEG-11.

import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

/// A file system that refuses to open more files than a limit.
private final class LimitedFileSystem: ForwardingFileSystem {
    let base: any FileSystem
    private let limit: Int
    private let opened = Mutex((now: 0, total: 0))

    init(_ base: any FileSystem, limit: Int) { (self.base, self.limit) = (base, limit) }

    /// The number of files that were opened so far.
    var total: Int { opened.withLock { $0.total } }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        let isAllowed = opened.withLock { opened in
            guard opened.now < limit else { return false }
            opened = (opened.now + 1, opened.total + 1)
            return true
        }
        guard isAllowed else {
            throw FileError(.io, operation: "open", path: path, reason: "too many open files")
        }
        do throws(FileError) { return Limited(try base.open(path, mode), self) } catch {
            release()
            throw error
        }
    }

    func release() { opened.withLock { $0.now -= 1 } }

    private final class Limited: ForwardingFile {
        let file: any File
        private let system: LimitedFileSystem

        init(_ file: any File, _ system: LimitedFileSystem) {
            (self.file, self.system) = (file, system)
        }

        deinit { system.release() }
    }
}

@Suite struct OpenFilesTests {
    @Test(.verifies("SEG-11"))
    func
        `a log of 1,100 segments is written, compacted, opened, read and verified with 16 open files`()
        throws
    {
        var model = CompactionModel(files: LimitedFileSystem(InMemoryFileSystem(), limit: 16))
        var log = try model.open()
        for _ in 0..<1_100 {
            try model.append(to: log, paddings: [0])
            try log.roll()
        }
        try model.compact(log) { $0 % 50 == 0 }
        try model.append(to: log, paddings: [0])
        try log.close()
        log = try model.open()
        try model.append(to: log, paddings: [0])
        try model.check(log)
    }

    @Test(.verifies("SEG-11", "CMP-24"))
    func `a reader of a closed file reads on in it after compaction has given its name to another`()
        throws
    {
        var model = CompactionModel()
        let log = try model.open()
        for _ in 0..<20 {
            try model.append(to: log, paddings: [0, 0])
            try log.roll()
        }
        let old = try log.sealedSegments()[0]
        try model.compact(log) { $0 % 2 == 0 }
        try model.compact(log) { $0 == 1 }
        var positions: [UInt64] = []
        _ = try old.forEachLine(from: Position(1)) { prefix, _ in
            positions.append(prefix.position.rawValue)
            return true
        }
        #expect(positions == [1, 2])
        try model.check(log)
    }

    @Test(.verifies("SEG-11", "REC-11"))
    func `a segment that another program has replaced is not read as the one that was opened`()
        throws
    {
        let files = InMemoryFileSystem()
        var model = CompactionModel(files: files)
        let log = try model.open()
        for _ in 0..<20 {
            try model.append(to: log, paddings: [0])
            try log.roll()
        }
        let path = try #require(TestLog.segments(files).first)
        files["/copy"] = files[path]
        try files.rename("/copy", to: path)
        #expect {
            try log.line(at: Position(1))
        } throws: { ($0 as? LogError)?.code == .noSuchLog }
        #expect(try log.line(at: Position(2)) == model.lines[2])
    }

    @Test(.verifies("SEG-11"))
    func `looking up ids that a log does not have opens no files again`() throws {
        let files = LimitedFileSystem(InMemoryFileSystem(), limit: 16)
        var model = CompactionModel(files: files)
        let log = try model.open()
        for _ in 0..<40 {
            try model.append(to: log, paddings: [0, 0])
            try log.roll()
        }
        try model.compact(log) { $0 % 2 == 0 }
        func lookUp(_ ids: Range<UInt64>) throws {
            for position in ids {
                try #require(try log.line(id: TestLog.id(position)) == nil)
                try #require(try log.removed(id: TestLog.id(position)) == nil)
            }
        }
        // Reads the lists of removed ids.
        try lookUp(1_000..<1_001)
        let before = files.total
        try lookUp(1_001..<2_000)
        #expect(files.total - before < 100)
    }
}
