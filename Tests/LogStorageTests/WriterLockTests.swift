// The writer's locks outlive the deletion and the replacement of the lock file, and an incarnation belongs to
// one state of one log. Spec/format/line.md, LINE-4 and LINE-8; Spec/format/recovery.md, REC-11.

import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

/// A file system whose folders cannot be locked, as on some network file systems.
private final class WithoutFolderLocks: ForwardingFileSystem {
    let base: any FileSystem
    private let segmentSync: @Sendable () -> Void

    /// - Parameter segmentSync: called before each sync of a segment.
    init(_ base: any FileSystem, segmentSync: @escaping @Sendable () -> Void = {}) {
        self.base = base
        self.segmentSync = segmentSync
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        let file = try base.open(path, mode)
        return path.hasSuffix(".lz4") ? Watched(file: file, sync: segmentSync) : file
    }

    func lockDirectory(_ path: String) throws(FileError) -> (any DirectoryLock)? { NoLock() }

    private final class NoLock: DirectoryLock {}

    private final class Watched: ForwardingFile {
        let file: any File
        private let willSync: @Sendable () -> Void

        init(file: any File, sync: @escaping @Sendable () -> Void) {
            self.file = file
            willSync = sync
        }

        func sync() throws(FileError) {
            willSync()
            try file.sync()
        }
    }
}

@Suite struct WriterLockTests {
    /// What users, editors and sync tools do to the lock file of an open log.
    enum Attack: CaseIterable {
        case delete, replaceByRename, moveAside, replaceByFolder

        func run(on path: String) throws {
            let manager = FileManager.default
            let lock = path + "/lock"
            switch self {
            case .delete: try manager.removeItem(atPath: lock)
            case .replaceByRename:
                try manager.copyItem(atPath: lock, toPath: lock + ".tmp")
                try POSIXFileSystem().rename(lock + ".tmp", to: lock)
            case .moveAside: try manager.moveItem(atPath: lock, toPath: lock + ".old")
            case .replaceByFolder:
                try manager.removeItem(atPath: lock)
                try manager.createDirectory(atPath: lock, withIntermediateDirectories: false)
            }
        }
    }

    private static func code(_ body: () throws -> Void) -> LogError.Code? {
        let error = #expect(throws: LogError.self) { try body() }
        return error?.code
    }

    /// The number of lines in the log.
    private static func lineCount(_ path: String) throws -> Int {
        try TestLog.read(POSIXFileSystem(), at: path).count
    }

    @Test(.verifies("LINE-4", "REC-11"), arguments: Attack.allCases)
    func `without its lock file a writer acknowledges nothing, and no second writer gets in`(
        attack: Attack
    ) throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = try openLog(folder.log)
        try appendLine(to: log)
        let segment = folder.log + "/" + SegmentName.of(Position(1))
        let before = try Data(contentsOf: URL(filePath: segment))
        try attack.run(on: folder.log)
        #expect(Self.code { _ = try openLog(folder.log) } == .locked)
        #expect(Self.code { _ = try LogRepair(folder.log).repair() } == .locked)
        let refused = #expect(throws: LogError.self) { try appendLine(to: log) }
        #expect(refused?.code == .noSuchLog)
        #expect(refused?.description.contains("lock") == true)
        #expect(refused?.description.contains("open the log again") == true)
        #expect(try Data(contentsOf: URL(filePath: segment)) == before)
        try log.close()
        if attack == .replaceByFolder {
            try FileManager.default.removeItem(atPath: folder.log + "/lock")
        }
        let next = try openLog(folder.log)
        #expect(next.incarnation != log.incarnation)
        try appendLine(to: next)
        try next.close()
        #expect(try Self.lineCount(folder.log) == 2)
    }

    @Test func `the error for a log that is open in this process says so`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        for (files, path) in [
            (POSIXFileSystem() as any FileSystem, folder.log), (InMemoryFileSystem(), "/log"),
        ] {
            let log = try openLog(path, files)
            let refused = #expect(throws: LogError.self) { _ = try openLog(path, files) }
            #expect(refused?.detail.contains("this process (pid \(getpid())") == true)
            try log.close()
            #expect(files.lockHolder(of: path) == nil)
        }
    }

    @Test(.verifies("LINE-4"))
    func `a log whose folder was moved is locked in its new place, and free in the old one`() throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = try openLog(folder.log)
        try appendLine(to: log)
        try FileManager.default.moveItem(atPath: folder.log, toPath: folder.log + "-moved")
        #expect(Self.code { _ = try openLog(folder.log + "-moved") } == .locked)
        let other = try openLog(folder.log)
        #expect(other.id != log.id)
        #expect(other.incarnation != log.incarnation)
        #expect(Self.code { try log.close() } == .noSuchLog)
        let moved = try openLog(folder.log + "-moved")
        #expect(moved.incarnation == log.incarnation)
        #expect(moved.next == Position(2))
    }

    @Test(.verifies("REC-11"))
    func
        `where folders have no locks, a writer without its lock file leaves another's events alone`()
        throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let files = WithoutFolderLocks(POSIXFileSystem())
        let log = try openLog(folder.log, files)
        try appendLine(to: log)
        #expect(Self.code { _ = try openLog(folder.log, files) } == .locked)
        try Attack.delete.run(on: folder.log)
        let other = try openLog(folder.log, files)
        for _ in 1...3 { try appendLine(to: other) }
        #expect(Self.code { try appendLine(to: log) } == .noSuchLog)
        try log.close()
        try other.close()
        #expect(try Self.lineCount(folder.log) == 4)
    }

    @Test(.verifies("REC-11"))
    func `a commit is not acknowledged if the lock file is removed while it is written`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let isArmed = Mutex(false)
        let path = folder.log
        let files = WithoutFolderLocks(POSIXFileSystem()) {
            if isArmed.withLock({ $0 }) { try? Attack.delete.run(on: path) }
        }
        let log = try openLog(path, files)
        isArmed.withLock { $0 = true }
        #expect(Self.code { try appendLine(to: log) } == .noSuchLog)
    }

    /// A way in which the folder of a closed log becomes another state of it, or another log.
    enum Change: CaseIterable {
        case segmentsDeleted, segmentsOfAnotherLog, earlierCopy, copy

        /// - Returns: the path of the changed log.
        func run(on path: String, earlier: String, isSealed: Bool) throws -> String {
            let manager = FileManager.default
            let names = try manager.contentsOfDirectory(atPath: path)
            let segments = names.filter { $0.hasSuffix(".lz4") }.sorted()
            func remove(_ names: [String]) throws {
                for name in names { try manager.removeItem(atPath: path + "/" + name) }
            }
            switch self {
            case .segmentsDeleted: try remove(segments)
            case .segmentsOfAnotherLog:
                try remove(segments)
                let other = try openLog(path + "-other")
                try appendLine(to: other)
                if isSealed { try other.roll() }
                try other.close()
                try manager.copyItem(
                    atPath: path + "-other/" + segments[0], toPath: path + "/" + segments[0])
            case .earlierCopy:
                // By rename, since a file system may give a new file the inode number of a removed one.
                try POSIXFileSystem().rename(
                    earlier + "/" + segments[0], to: path + "/" + segments[0])
                try remove(Array(segments.dropFirst()))
            case .copy:
                try manager.copyItem(atPath: path, toPath: path + "-copy")
                return path + "-copy"
            }
            return path
        }
    }

    @Test(.verifies("LINE-8"), arguments: Change.allCases, [false, true])
    func `a log that is not the one that was closed here gets a new incarnation`(
        change: Change, isSealed: Bool
    ) throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = try openLog(folder.log)
        try appendLine(to: log)
        try FileManager.default.copyItem(atPath: folder.log, toPath: folder.log + "-earlier")
        try appendLine(to: log)
        if isSealed { try log.roll() }
        try log.close()
        let path = try change.run(
            on: folder.log, earlier: folder.log + "-earlier", isSealed: isSealed)
        let changed = try openLog(path)
        #expect(changed.incarnation != log.incarnation)
        try changed.close()
        #expect(try openLog(path).incarnation == changed.incarnation)
    }

    /// The moment from which an earlier state is, and the end of the session after it.
    enum EarlierState: CaseIterable {
        case beforeTheLastClose, beforeASessionThatWasKilled, backupBeforeTheKill, beforeARecovery
        case beforeASealAtTheEnd

        /// Writes to the log, and calls `copy` at the moment of the earlier state.
        func run(_ path: String, _ copy: () throws -> Void) throws {
            let log = try openLog(path)
            try appendLine(to: log)
            switch self {
            case .beforeTheLastClose:
                try copy()
                try appendLine(to: log)
                try log.close()
            case .beforeASessionThatWasKilled:
                try log.close()
                try copy()
                try appendLine(to: try openLog(path))
            case .backupBeforeTheKill:
                try log.close()
                let killed = try openLog(path)
                try appendLine(to: killed)
                let backup = path + "-backup"
                _ = try LogBackup(of: path, to: backup, environment: LogEnvironment()).run()
                try appendLine(to: killed)
                try copy()
            case .beforeARecovery:
                try copy()
                try appendLine(to: log)
            case .beforeASealAtTheEnd:
                try copy()
                try appendLine(to: log)
                try log.roll()
                try log.close()
            }
        }
    }

    @Test(.verifies("LINE-4", "LINE-8"), arguments: EarlierState.allCases)
    func `an earlier state that is written into the same files gets a new incarnation`(
        state: EarlierState
    ) throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let name = SegmentName.of(Position(1))
        var earlier = Data()
        try state.run(folder.log) {
            let isBackup = state == .backupBeforeTheKill
            let source = folder.log + (isBackup ? "-backup" : "") + "/" + name
            earlier = try Data(contentsOf: URL(filePath: source))
        }
        if state == .beforeARecovery { _ = try openLog(folder.log) }
        let lock = folder.log + "/lock"
        let marker = try Data(contentsOf: URL(filePath: lock))
        let file = try POSIXFileSystem().open(folder.log + "/" + name, .readWrite)
        try file.write(Array(earlier), at: 0)
        try file.truncate(to: earlier.count)
        let again = try openLog(folder.log)
        #expect(!String(decoding: marker, as: UTF8.self).hasPrefix(Self.text(again.incarnation)))
        try again.close()
        #expect(try openLog(folder.log).incarnation == again.incarnation)
    }

    private static func text(_ incarnation: UInt128) -> String {
        var bytes: [UInt8] = []
        LineText.append(uuid: incarnation, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test(.verifies("LINE-8"))
    func `a lock file that could not be written at close keeps the log open to the next writer`()
        throws
    {
        let files = InMemoryFileSystem()
        let log = try openLog("/log", files)
        try appendLine(to: log)
        files.failing { operation, path in
            guard operation == "write", path.hasSuffix("/lock") else { return nil }
            return FileError(.noSpace, operation: operation, path: path, reason: "full")
        }
        try log.close()
        files.failing(nil)
        let again = try openLog("/log", files)
        #expect(again.incarnation == log.incarnation)
        #expect(again.next == Position(2))
    }

    @Test(.verifies("LINE-8"))
    func `moving, sealing and killing keep the incarnation`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        /// Opens the log, and is killed after the work.
        func session(_ path: String, _ work: (Log) throws -> Void) throws -> UInt128 {
            let log = try openLog(path)
            try work(log)
            return log.incarnation
        }
        let first = try session(folder.log) { log in
            try appendLine(to: log)
            try log.roll()
        }
        let second = try session(folder.log) { try appendLine(to: $0) }
        #expect(second == first)
        try FileManager.default.moveItem(atPath: folder.log, toPath: folder.log + "-moved")
        #expect(try session(folder.log + "-moved") { _ in } == first)
    }

    @Test(.verifies("LINE-8"))
    func `two folders with hard links to the same files exclude each other and never share a name`()
        throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let paths = [folder.log, folder.log + "-linked"]
        let log = try openLog(paths[0])
        try appendLine(to: log)
        try FileManager.default.createDirectory(
            atPath: paths[1], withIntermediateDirectories: false)
        for name in try FileManager.default.contentsOfDirectory(atPath: paths[0]) {
            try FileManager.default.linkItem(
                atPath: paths[0] + "/" + name, toPath: paths[1] + "/" + name)
        }
        #expect(Self.code { _ = try openLog(paths[1]) } == .locked)
        try log.roll()
        try appendLine(to: log)
        try log.close()
        let linked = try openLog(paths[1])
        #expect(linked.incarnation != log.incarnation)
        try appendLine(to: linked)
        try linked.close()
        let again = try openLog(paths[0])
        #expect(Set([again, linked, log].map(\.incarnation)).count == 3)
    }
}

private func openLog(
    _ path: String, _ files: any FileSystem = POSIXFileSystem()
) throws -> Log {
    try Log(at: path, environment: LogEnvironment(fileSystem: files))
}

private func appendLine(to log: Log) throws {
    try log.append(TestLog.line(log.next.rawValue) + [UInt8(ascii: "\n")])
}
