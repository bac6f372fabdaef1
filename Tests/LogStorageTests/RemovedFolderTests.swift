// A log whose files are removed, or whose folder is renamed or replaced, while it is open: no lost line is
// acknowledged, and nothing is written into another folder. Spec/format/recovery.md, REC-11.

import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import TestSupport
import Testing

@Suite struct RemovedFolderTests {
    /// Creates a log in a temporary folder on disk.
    private func onDisk(_ body: (_ path: String, _ log: Log) throws -> Void) throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.log
        let log = try Log(at: path, environment: TestLog.environment(POSIXFileSystem()))
        try append(to: log)
        try body(path, log)
    }

    private func append(to log: Log) throws {
        try log.append(TestLog.line(log.next.rawValue) + [UInt8(ascii: "\n")])
    }

    /// Checks that the log refuses appends and gives the reason.
    private func expectGone(_ log: Log, _ body: () throws -> Void) {
        let first = #expect(throws: LogError.self) { try body() }
        #expect(first?.code == .noSuchLog, "\(String(describing: first))")
        #expect(first?.detail.contains("while the log was open") == true)
        let again = #expect(throws: LogError.self) { try append(to: log) }
        #expect(again == first)
    }

    @Test(.verifies("REC-11"))
    func `an append to a folder that was deleted fails, and so do all later ones`() throws {
        try onDisk { path, log in
            try FileManager.default.removeItem(atPath: path)
            expectGone(log) { try append(to: log) }
            #expect(!FileManager.default.fileExists(atPath: path))
        }
        for files in [InMemoryFileSystem() as any FileSystem, SimulatedFileSystem()] {
            let log = try Log(at: TestLog.path, environment: TestLog.environment(files))
            try append(to: log)
            try files.remove(TestLog.path + "/" + SegmentName.of(Position(1)))
            expectGone(log) { try append(to: log) }
        }
    }

    @Test(.verifies("REC-13"), arguments: [false, true])
    func `two folders of hard links are written to at the same time, and each has its lines`(
        isOpen: Bool
    ) throws {
        try onDisk { path, log in
            if !isOpen { try log.close() }
            let links = path + "-links"
            let segment = "/" + SegmentName.of(Position(1))
            try FileManager.default.createDirectory(
                atPath: links, withIntermediateDirectories: false)
            try FileManager.default.linkItem(atPath: path + segment, toPath: links + segment)
            let environment = TestLog.environment(POSIXFileSystem())
            let first = isOpen ? log : try Log(at: path, environment: environment)
            let second = try Log(at: links, environment: environment)
            try append(to: second)
            try append(to: first)
            try append(to: second)
            try first.close()
            try second.close()
            #expect(try Log(at: path, environment: environment).next == Position(3))
            #expect(try Log(at: links, environment: environment).next == Position(4))
        }
    }

    @Test(.verifies("REC-11")) func `closing a log whose segment was deleted says so`() throws {
        try onDisk { path, log in
            try FileManager.default.removeItem(
                atPath: path + "/" + SegmentName.of(Position(1)))
            let error = #expect(throws: LogError.self) { try log.close() }
            #expect(error?.code == .noSuchLog)
            try log.close()
        }
    }

    @Test(.verifies("REC-11"), arguments: [false, true])
    func `a folder that was renamed keeps what it has, and takes nothing more`(
        isReplaced: Bool
    ) throws {
        try onDisk { path, log in
            try FileManager.default.moveItem(atPath: path, toPath: path + "-moved")
            var other: Log?
            var image: [String] = []
            if isReplaced {
                other = try Log(at: path, environment: TestLog.environment(POSIXFileSystem()))
                image = try FileManager.default.contentsOfDirectory(atPath: path).sorted()
            }
            expectGone(log) { try append(to: log) }
            let checkpoint = #expect(throws: LogError.self) { try log.snapshot() }
            #expect(checkpoint?.code == .noSuchLog)
            try log.close()
            let moved = try Log(
                at: path + "-moved", environment: TestLog.environment(POSIXFileSystem()))
            #expect(moved.next == Position(2), "what was acknowledged is there, and nothing else")
            if isReplaced {
                let names = try FileManager.default.contentsOfDirectory(atPath: path).sorted()
                #expect(names == image, "something was written into another log's folder")
            }
            try other?.close()
        }
        try onDisk { path, log in
            try FileManager.default.moveItem(atPath: path, toPath: path + "-moved")
            expectGone(log) { try log.roll() }
        }
    }

    @Test(.verifies("REC-11", "ACC-4"), arguments: [false, true])
    func `erasing a log whose folder was replaced leaves the other log as it is`(
        hasBegun: Bool
    ) throws {
        try onDisk { path, log in
            if hasBegun { try log.beginErasure() }
            try FileManager.default.moveItem(atPath: path, toPath: path + "-moved")
            let other = try Log(at: path, environment: TestLog.environment(POSIXFileSystem()))
            try append(to: other)
            let names = try FileManager.default.contentsOfDirectory(atPath: path).sorted()
            let error = #expect(throws: LogError.self) {
                if !hasBegun { try log.beginErasure() }
                try log.finishErasure()
            }
            #expect(error?.code == .noSuchLog)
            #expect(try FileManager.default.contentsOfDirectory(atPath: path).sorted() == names)
            try append(to: other)
            try other.close()
        }
    }
}
