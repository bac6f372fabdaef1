// A log is erased for good: after a power cut anywhere, after a failure of any operation, and with files of
// other programs in the folder.

import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

/// The machine's file system, where no link may be removed, as in another user's folder.
private struct LinksStay: ForwardingFileSystem {
    let base: any FileSystem

    func remove(_ path: String) throws(FileError) {
        do throws(FileError) { _ = try base.open(path, .read) } catch let error
            where error.code == .symbolicLink
        {
            throw FileError(.readOnly, operation: "remove", path: path, reason: "no permission")
        }
        try base.remove(path)
    }
}

@Suite struct ErasureTests {
    private static func environment(
        _ files: any FileSystem, seed: UInt64
    ) -> LogEnvironment {
        let random = SeededSource(seed: seed)
        return LogEnvironment(fileSystem: files, now: { 1 }, random: { random.next() })
    }

    /// A log of three segments with every kind of file that its folder may contain.
    private static func begin(_ files: any FileSystem) throws -> Log {
        let log = try Log(at: TestLog.path, environment: environment(files, seed: 1))
        for position in 1...3 as ClosedRange<UInt64> {
            if position > 1 { try log.roll() }
            try log.append(TestLog.line(position, padding: 600) + [0x0A])
        }
        for folder in ["quarantine", "checkpoints", "mine", "mine/inner"] {
            try files.createDirectory(TestLog.path + "/" + folder)
            try files.syncDirectory(TestLog.path)
        }
        for name in [
            "quarantine/x.torn", "checkpoints/a", "checkpoints/b", "mine/photo", "mine/inner/x",
            "rewrite", "notes.txt",
        ] {
            let file = try files.open(TestLog.path + "/" + name, .createNew)
            try file.write([1, 2, 3], at: 0)
            try file.sync()
        }
        for folder in ["", "/quarantine", "/checkpoints", "/mine", "/mine/inner"] {
            try files.syncDirectory(TestLog.path + folder)
        }
        return log
    }

    @Test(.verifies("ACC-5"))
    func `an erased log leaves an empty folder, and what begins there is another log`() throws {
        let files = InMemoryFileSystem()
        let log = try Self.begin(files)
        try log.erase()
        #expect(try files.list(TestLog.path) == [])
        #expect(files.openFileCount == 0)
        let error = #expect(throws: LogError.self) { try log.append(TestLog.line(4) + [0x0A]) }
        #expect(error?.code == .closed)
        #expect(#expect(throws: LogError.self) { try log.erase() }?.code == .closed)
        let next = try Log(at: TestLog.path, environment: Self.environment(files, seed: 2))
        #expect(next.id != log.id)
        #expect(next.incarnation != log.incarnation)
        #expect(next.next == Position(1))
    }

    @Test(.verifies("ACC-6"), arguments: ["erasing", "erasing-with-secrets"])
    func `a folder that is no log is not emptied, whatever its files are called`(
        name: String
    ) throws {
        let files = InMemoryFileSystem()
        try files.createDirectory(TestLog.path)
        for name in [name, "thesis.txt"] { files[TestLog.path + "/" + name] = [1] }
        let before = files.image
        for create in [true, false] {
            let error = #expect(throws: LogError.self) {
                try Log(
                    at: TestLog.path, create: create,
                    environment: Self.environment(files, seed: 2))
            }
            #expect(error?.code == .notALog)
            #expect(files.image == before)
        }
    }

    @Test(.verifies("ACC-6"))
    func `a symbolic link that cannot be removed is not followed`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let (log, other) = (folder.log, folder.path + "/other")
        for path in [log, other] {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false)
        }
        try Data([1]).write(to: URL(filePath: other + "/doc"))
        try FileManager.default.createSymbolicLink(
            atPath: log + "/photos", withDestinationPath: other)
        #expect(throws: FileError.self) {
            try LinksStay(base: POSIXFileSystem()).removeAll(log + "/photos")
        }
        #expect(FileManager.default.fileExists(atPath: other + "/doc"))
        try POSIXFileSystem().removeAll(log + "/photos")
        #expect(FileManager.default.fileExists(atPath: other + "/doc"))
    }

    @Test(.verifies("ACC-5", "ACC-6"))
    func `after a power cut anywhere the log is unchanged or erased for good`()
        throws
    {
        let rehearsal = SimulatedFileSystem()
        let log = try Self.begin(rehearsal)
        let first = rehearsal.operations
        try log.erase()
        let last = rehearsal.operations
        try #require(last - first > 10)
        var wasIntact = false
        var wasErased = false
        for cut in first...last {
            try Property.check("erasure cut at operation \(cut)", runs: 20) { choices in
                var files = SimulatedFileSystem()
                let log = try Self.begin(files)
                files.cutPower(at: cut)
                let returned = (try? log.erase()) != nil
                try #require(returned == (cut == last))
                // The opening that finishes the erasure may be interrupted as well.
                for _ in 1...choices.int(in: 1...3) {
                    files =
                        choices.bool(oneIn: 4) ? files.afterKill() : files.afterPowerCut(&choices)
                    files.cutPower(at: choices.int(in: 0...30))
                    _ = try? Log(at: TestLog.path, environment: Self.environment(files, seed: 2))
                    files = files.afterKill()
                }
                files = files.afterPowerCut(&choices)
                let again = try Log(
                    at: TestLog.path, environment: Self.environment(files, seed: 3))
                if again.id == log.id {
                    wasIntact = true
                    try #require(!returned)
                    try #require(again.incarnation == log.incarnation)
                    try #require(try TestLog.read(files).count == 3)
                } else {
                    wasErased = true
                    try #require(again.incarnation != log.incarnation)
                    try #require(again.next == Position(1))
                    // If the new log's creation was interrupted, its first trailer is a torn tail.
                    let torn = try? files.list(TestLog.path + "/quarantine")
                    try #require(
                        torn ?? ["00000000000000000001.lz4.512.torn"] == [
                            "00000000000000000001.lz4.512.torn"
                        ])
                    try #require(
                        try files.list(TestLog.path).filter { $0 != "quarantine" }.sorted() == [
                            "00000000000000000001.lz4", "lock",
                        ])
                }
                try again.append(TestLog.line(again.next.rawValue) + [0x0A])
            }
        }
        #expect(wasIntact)
        #expect(wasErased)
    }

    @Test(.verifies("ACC-6"))
    func `if an operation fails, the log stays usable or the next opening finishes the erasure`()
        throws
    {
        var kinds: Set<String> = []
        for failing in 0..<60 {
            let files = InMemoryFileSystem()
            let log = try Self.begin(files)
            let counter = OperationCounter(failingAt: failing)
            files.failing { counter.error($0, $1) }
            let result = Result { try log.erase() }
            files.failing(nil)
            let again: Log
            switch result {
            case .success:
                kinds.insert("erased")
                #expect(try files.list(TestLog.path) == [])
                continue
            case .failure where !log.isClosed:
                kinds.insert("unchanged")
                try log.append(TestLog.line(4) + [0x0A])
                try log.close()
                again = try Log(at: TestLog.path, environment: Self.environment(files, seed: 2))
                #expect(again.id == log.id)
                #expect(again.next == Position(5))
            case .failure:
                kinds.insert("half")
                let error = #expect(throws: LogError.self) { try TestLog.read(files) }
                if try files.list(TestLog.path).contains("erasing") {
                    #expect(error?.code == .noSuchLog)
                }
                again = try Log(at: TestLog.path, environment: Self.environment(files, seed: 2))
                #expect(again.id != log.id)
                #expect(again.next == Position(1))
                #expect(again.incarnation != log.incarnation)
            }
            #expect(try !files.list(TestLog.path).contains("erasing"))
        }
        #expect(kinds == ["erased", "unchanged", "half"])
    }

    @Test(.verifies("ACC-6"))
    func `an opening finishes an erasure, also for another account or without creating a log`()
        throws
    {
        func interrupted() throws -> InMemoryFileSystem {
            let files = InMemoryFileSystem()
            let log = try Log(
                at: TestLog.path, account: "ada", environment: Self.environment(files, seed: 1))
            try log.append(TestLog.line(1) + [0x0A])
            files["/log/photo.jpg"] = [1]
            files["/log/erasing"] = []
            return files.snapshot()
        }
        let files = try interrupted()
        let log = try Log(
            at: TestLog.path, account: "grace", environment: Self.environment(files, seed: 2))
        #expect(log.account == "grace")
        #expect(log.next == Position(1))
        let others = try interrupted()
        let error = #expect(throws: LogError.self) {
            try Log(
                at: TestLog.path, create: false, environment: Self.environment(others, seed: 2))
        }
        #expect(error?.code == .noSuchLog)
        #expect(try others.list(TestLog.path) == ["lock"])
    }

    @Test(.verifies("ACC-7"))
    func `the lock of a file that an erasure has removed meanwhile excludes no writer`() throws {
        let files = InMemoryFileSystem()
        let log = try Self.begin(files)
        // Opens the lock before it is removed, and locks it after.
        let slow = PausedLock(files)
        let waiting = try slow.open("/log/lock", .createIfMissing)
        try log.erase()
        let winner = try Log(at: TestLog.path, environment: Self.environment(files, seed: 2))
        slow.stale = waiting
        let error = #expect(throws: LogError.self) {
            try Log(at: TestLog.path, environment: Self.environment(slow, seed: 3))
        }
        #expect(error?.code == .locked)
        try winner.append(TestLog.line(1) + [0x0A])
    }
}

/// A file system that opens the lock file so slowly that it returns one that was removed meanwhile.
private final class PausedLock: ForwardingFileSystem {
    var base: any FileSystem { files }
    private let files: InMemoryFileSystem
    private let file = Mutex<(any File)?>(nil)

    init(_ files: InMemoryFileSystem) { self.files = files }

    var stale: (any File)? {
        get { file.withLock { $0 } }
        set { file.withLock { $0 = newValue } }
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        if mode == .createIfMissing, path.hasSuffix("/lock"), let stale { return stale }
        return try files.open(path, mode)
    }

    /// As on a file system whose folders cannot be locked, so that the lock file alone decides.
    func lockDirectory(_ path: String) throws(FileError) -> (any DirectoryLock)? { NoLock() }
    private final class NoLock: DirectoryLock {}
}
