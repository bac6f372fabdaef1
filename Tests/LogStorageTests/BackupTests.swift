// A backup that is made while a writer works opens, and holds everything that was acknowledged before it began.
// Spec/format/backup.md.

import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

/// A writer that takes one step at a time, and what is known of its log.
private final class Writer: Sendable {
    struct Known {
        /// Every line that was handed to the log, newline not included, by position.
        var lines: [UInt64: [UInt8]] = [:]
        var acknowledged: UInt64 = 0
        var hasCompacted = false
        var step = 0
    }

    static let steps = 12
    let known = Mutex(Known())
    private let log = Mutex<Log?>(nil)
    private let files: any FileSystem

    init(_ files: any FileSystem) throws {
        self.files = files
        try open()
        try append([40, 3_000])
    }

    private func open() throws {
        let log = try Log(at: TestLog.path, environment: TestLog.environment(files))
        self.log.withLock { $0 = log }
    }

    private func append(_ paddings: [Int]) throws {
        guard let log = log.withLock({ $0 }) else { return }
        let first = log.next.rawValue
        let lines = paddings.enumerated().map {
            TestLog.line(first + UInt64($0), padding: $1)
        }
        known.withLock { known in
            for (number, line) in lines.enumerated() { known.lines[first + UInt64(number)] = line }
        }
        try log.append(lines.flatMap { $0 + [0x0A] })
        known.withLock { $0.acknowledged = first + UInt64(lines.count) - 1 }
    }

    /// Takes the next step: an append, a seal, a checkpoint, a compaction, or a close.
    func takeStep() throws {
        let step = known.withLock { known in
            known.step += 1
            return known.step
        }
        guard let log = log.withLock({ $0 }) else { return }
        switch step {
        case 2, 6: try log.roll()
        case 4, 8:
            try CheckpointSlots(TestLog.path, fileSystem: files).write(
                try log.snapshot().checkpoint(
                    states: [StoredState(name: "n", version: 1, position: Position(1), bytes: [1])],
                    createdAt: Int64(step), seed: 5))
        case 9:
            known.withLock { $0.hasCompacted = true }
            try CompactionModel.compact(log, removing: { $0 % 3 == 0 })
        case 11:
            try log.close()
            try open()
        case 1, 3, 5, 7, 10, 12: try append([20, 70_000, step])
        default: break
        }
    }

    func close() throws { try log.withLock { try $0?.close() } }
}

/// A file system with links, which notes which segments of a backup are shared.
private final class Sharing: ForwardingFileSystem {
    let base: any FileSystem
    let shared = Mutex<[String]>([])
    private let files: InMemoryFileSystem

    init(_ files: InMemoryFileSystem) { (base, self.files) = (files, files) }

    func share(_ path: String, as newPath: String) -> Bool {
        files[newPath] = files[path]
        shared.withLock { $0.append(String(newPath.split(separator: "/").last ?? "")) }
        return true
    }
}

/// Another clock and other random numbers than the writer's.
private func environment(_ files: any FileSystem) -> LogEnvironment {
    let random = SeededSource(seed: 1234)
    return LogEnvironment(fileSystem: files, now: { 1_771_756_300_000 }, random: { random.next() })
}

@discardableResult
private func backUp(
    _ files: any FileSystem, to target: String, reading reader: (any FileSystem)? = nil
) throws -> BackupSummary {
    try LogBackup(
        of: TestLog.path, to: target, environment: environment(files), reading: reader
    ).run()
}

/// Opens a backup, compares its lines with those of the writer, and appends to it.
private func check(
    _ backup: String, _ files: InMemoryFileSystem, has acknowledged: UInt64, of known: Writer.Known
) throws {
    let findings = try LogVerifier(backup, fileSystem: files).verify { _, _ in nil }.findings
    #expect(findings == [], "\(backup)")
    let log = try Log(at: backup, create: false, environment: environment(files))
    #expect(log.recovery == RecoveryReport(), "\(backup)")
    let last = log.next.rawValue - 1
    #expect(last >= acknowledged, "\(backup) lacks lines")
    for position in 1...last {
        let line = try log.line(at: Position(position))
        guard line == nil else {
            #expect(line == known.lines[position], "\(backup), position \(position)")
            continue
        }
        #expect(known.hasCompacted, "\(backup), position \(position)")
        #expect(position % 3 == 0, "\(backup), position \(position)")
    }
    try log.append(TestLog.line(last + 1) + [0x0A])
    try log.close()
}

@Suite struct BackupTests {
    @Test(.verifies("BAK-1", "BAK-2", "BAK-3"))
    func `a backup at each operation of a writer holds all that was acknowledged before`() throws {
        let files = InMemoryFileSystem()
        let made = Mutex<[(backup: String, has: UInt64, known: Writer.Known)]>([])
        let working = Mutex<Writer?>(nil)
        let watched = InterleavingFileSystem(files, cut: { _ in InterleavingFileSystem.Cut() }) {
            guard let writer = working.withLock({ $0 }) else { return }
            let known = writer.known.withLock { $0 }
            made.withLock { made in
                let backup = "/backup-\(made.count)"
                do {
                    try backUp(files, to: backup)
                    made.append((backup, known.acknowledged, known))
                } catch { Issue.record("\(backup): \(error)") }
            }
        }
        let writer = try Writer(watched)
        working.withLock { $0 = writer }
        for _ in 0..<Writer.steps { try writer.takeStep() }
        try writer.close()
        let backups = made.withLock { $0 }
        #expect(backups.count > 100)
        for (backup, acknowledged, known) in backups {
            try check(backup, files, has: acknowledged, of: known)
        }
        let summary = try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }
        #expect(summary.findings == [], "a backup has changed the log")
    }

    @Test(.verifies("BAK-3"))
    func
        `at each operation that seals and creates a segment, the backup's last segment is its own`()
        throws
    {
        let files = InMemoryFileSystem()
        let backups = Mutex(0)
        let watched = InterleavingFileSystem(files, cut: { _ in InterleavingFileSystem.Cut() }) {
            let backup = backups.withLock { number in
                number += 1
                return "/backup-\(number)"
            }
            let sharing = Sharing(files)
            guard (try? backUp(sharing, to: backup)) != nil else { return }
            let last = try? LogDirectory.segments(of: backup, files).last
            #expect(!sharing.shared.withLock { $0 }.contains(last ?? ""), "\(backup)")
        }
        let log = try Log(at: TestLog.path, environment: TestLog.environment(watched))
        for position: UInt64 in 1...4 {
            try log.append(TestLog.line(position) + [0x0A])
            try log.roll()
        }
        try log.close()
        #expect(backups.withLock { $0 } > 40)
    }

    //  backup               writer
    //  read a checkpoint    –
    //  read a segment       append, seal, …: a step after each read from `first` on
    //  read the next one
    @Test(.verifies("BAK-1", "BAK-2"), arguments: 0..<40)
    func `a backup during which a writer works is a prefix of the log`(first: Int) throws {
        let files = InMemoryFileSystem()
        let writer = try Writer(files)
        for _ in 0..<(first % 4) { try writer.takeStep() }
        let acknowledged = writer.known.withLock { $0.acknowledged }
        let reads = Atomic(0)
        let reader = LogStorage.CountingFileSystem(files) { _ in
            guard reads.wrappingAdd(1, ordering: .relaxed).newValue > first / 2 else { return }
            do { try writer.takeStep() } catch { Issue.record("\(error)") }
        }
        let summary = try backUp(files, to: "/backup", reading: reader)
        #expect(summary.last.rawValue >= acknowledged)
        try check("/backup", files, has: acknowledged, of: writer.known.withLock { $0 })
        try writer.close()
    }

    @Test(.verifies("BAK-4")) func `a backup that fails at any call leaves nothing`() throws {
        let files = InMemoryFileSystem()
        let writer = try Writer(files)
        for _ in 0..<Writer.steps { try writer.takeStep() }
        try files.createDirectory(TestLog.path + "/files")
        files[TestLog.path + "/files/a"] = [UInt8](repeating: 1, count: 5_000)
        let before = files.image
        var failures = 0
        for call in 0... {
            let calls = Atomic(0)
            files.failing { operation, path in
                guard operation != "remove", operation != "list",
                    calls.wrappingAdd(1, ordering: .relaxed).oldValue == call
                else { return nil }
                return FileError(.io, operation: operation, path: path, reason: "it failed")
            }
            let result = Result { try backUp(files, to: "/backup") }
            files.failing(nil)
            guard case .failure = result else {
                // A checkpoint that cannot be read is left out, so a failure need not end the backup.
                guard calls.load(ordering: .relaxed) > call else { break }
                try files.removeAll("/backup")
                continue
            }
            failures += 1
            try #require(files.image == before, "call \(call)")
            try #require(try files.list("/") == ["log"], "call \(call)")
        }
        #expect(failures > 30)
        #expect(throws: LogError.self) { try backUp(files, to: "/backup") }
        try writer.close()
    }

    @Test(.verifies("BAK-4")) func `a backup that does not fit leaves nothing`() throws {
        let files = InMemoryFileSystem()
        let writer = try Writer(files)
        for _ in 0..<Writer.steps { try writer.takeStep() }
        let used = files.usedBytes
        let bytes = try backUp(files, to: "/backup").bytes
        try files.removeAll("/backup")
        for free in stride(from: 0, to: bytes, by: bytes / 25) {
            files.setQuota(used + free)
            let error = #expect(throws: LogError.self) { try backUp(files, to: "/backup") }
            #expect(error?.code == .diskFull)
            #expect(error?.path.contains(".part/") == true)
            #expect(try files.list("/") == ["log"], "\(free) bytes are free")
            #expect(files.usedBytes == used)
        }
        files.setQuota(used + bytes)
        try backUp(files, to: "/backup")
        try writer.close()
    }

    @Test(.verifies("BAK-3", "BAK-4"))
    func `on a disk, files that no longer change take no space, and only the owner may read`()
        throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let target = folder.appending("backup").path
        let log = try Log(at: folder.log, environment: environment(POSIXFileSystem()))
        for position: UInt64 in 1...3 {
            try log.append(TestLog.line(position, padding: 20_000) + [0x0A])
            try log.roll()
        }
        try log.append(TestLog.line(4) + [0x0A])
        try FileManager.default.createDirectory(
            atPath: folder.log + "/files", withIntermediateDirectories: false)
        try Data([1, 2]).write(to: URL(filePath: folder.log + "/files/content"))
        try Data([1]).write(to: URL(filePath: folder.log + "/files/new-1"))
        try FileManager.default.createSymbolicLink(
            atPath: folder.log + "/files/link", withDestinationPath: "/etc/hostname")
        func run(to path: String) throws -> BackupSummary {
            try LogBackup(
                of: folder.log, to: path, environment: environment(POSIXFileSystem())
            ).run()
        }
        let summary = try run(to: target + "/")
        #expect(summary.events == 4)
        #expect(summary.files == 1)
        #expect(summary.bytesCopied < summary.bytes / 4, "the sealed segments were copied")
        #expect(try folder.names(in: "backup/files") == ["content"])
        let names = try FileManager.default.subpathsOfDirectory(atPath: target)
        #expect(names.count == 6, "\(names)")
        for name in [""] + names {
            let attributes = try FileManager.default.attributesOfItem(atPath: target + "/" + name)
            let isFolder = attributes[.type] as? FileAttributeType == .typeDirectory
            let mode = try #require(attributes[.posixPermissions] as? Int)
            #expect(mode == (isFolder ? 0o700 : 0o600), "\(name)")
        }
        try FileManager.default.createSymbolicLink(
            atPath: folder.appending("nowhere").path, withDestinationPath: "missing")
        // A rename would replace it.
        let empty = folder.appending("empty").path
        try FileManager.default.createDirectory(atPath: empty, withIntermediateDirectories: false)
        for taken in [target, folder.log + "/inside", folder.appending("nowhere").path, empty] {
            let error = #expect(throws: LogError.self) { try run(to: taken) }
            #expect(error?.code == .io)
        }
        #expect(try folder.names(in: ".") == ["backup", "empty", "log", "nowhere"])

        // Both write, and neither changes the other's files.
        let backup = try Log(at: target, environment: LogEnvironment())
        #expect(backup.incarnation != log.incarnation)
        #expect(backup.id == log.id)
        try backup.append(TestLog.line(5, padding: 9) + [0x0A])
        try log.append(TestLog.line(5) + [0x0A])
        try backup.close()
        try log.close()
        for path in [folder.log, target] {
            #expect(try LogVerifier(path).verify { _, _ in nil }.findings == [])
        }
        #expect(try TestLog.read(POSIXFileSystem(), at: folder.log).last == TestLog.line(5))
    }

    @Test(.verifies("BAK-1")) func `a damaged log gives no backup, and a torn tail is left out`()
        throws
    {
        let files = InMemoryFileSystem()
        let writer = try Writer(files)
        for _ in 0..<3 { try writer.takeStep() }
        let first = try #require(TestLog.segments(files).first)
        let last = try #require(TestLog.segments(files).last)
        let damaged = files.snapshot()
        damaged.flip(bit: 40 * 8, of: first)
        let error = #expect(throws: LogError.self) { try backUp(damaged, to: "/backup") }
        #expect(error?.code == .corrupt)
        #expect(error?.path == first)
        #expect(try damaged.list("/") == ["log"])

        let torn = files.snapshot()
        let whole = try TestLog.read(torn)
        let end = try #require(torn[last]?.lastIndex { $0 != 0 })
        torn[last]?[end + 40] = 7
        try backUp(torn, to: "/backup")
        #expect(try TestLog.read(torn, at: "/backup") == whole)
        #expect(torn[last]?[end + 40] == 7, "the log was changed")
    }
}
