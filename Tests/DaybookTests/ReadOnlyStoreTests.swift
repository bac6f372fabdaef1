// A widget or a support screen reads a log that an app has open: nothing is changed, and the app's changes
// are followed. Spec/format/following.md.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogStorage
import Synchronization
import TestSupport
import Testing

/// Counts how often it is folded, in all stores.
private struct CountedHikes: Projection, Codable {
    static let name = "counted-hikes"
    static let version = 1
    static let folds = Mutex(0)
    private(set) var hikes = 0

    mutating func fold(_ event: Event) {
        Self.folds.withLock { $0 += 1 }
        if event.type == Hike.type { hikes += 1 }
    }
}

@Suite struct ReadOnlyStoreTests {
    private let files = InMemoryFileSystem()

    @Test(.verifies("FOL-1"))
    func `a second reader sees what the writer appended after a refresh`() async throws {
        let writer = try await HikeLog.write(files, account: "ada")
        try await writer.append(Hike(path: "lake", kilometres: 3))
        let reader = try await HikeLog.read(files)
        #expect(reader.logID == writer.logID)
        #expect(reader.account == "ada")
        #expect(await reader.position == Position(1))
        #expect(await reader.view(Hikes.self).kilometres == ["lake": 3])
        try await writer.append(Hike(path: "forest", kilometres: 2))
        #expect(await reader.view(Hikes.self).kilometres == ["lake": 3])
        #expect(try await reader.refresh() == Position(2))
        #expect(await reader.view(Hikes.self) == writer.view(Hikes.self))
        #expect(await reader.view(Outbox.self).count == 2)
        #expect(try await reader.refresh() == Position(2))
        // More than one batch of events.
        try await writer.appendHikes(2_000)
        try await reader.refresh()
        #expect(await reader.view(Hikes.self) == writer.view(Hikes.self))
        try await writer.close()
        #expect(try await reader.refresh() == Position(2_002))
    }

    @Test(.verifies("FOL-1"))
    func `reading changes nothing in the folder: names, sizes, times and files stay`() async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let (disk, log) = (POSIXFileSystem(), folder.appending("log"))
        let writer = try await HikeLog.write(disk, at: log)
        try await writer.appendHikes(300)
        try await writer.checkpoint()
        let hike = try await writer.append(Hike(path: "forest"))
        func image() throws -> [String: [Double]] {
            let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
            return try names.reduce(into: [:]) { image, name in
                let file = try FileManager.default.attributesOfItem(
                    atPath: folder.appending(name).path)
                image[name] = [
                    try #require(file[.size] as? Double),
                    try #require(file[.systemFileNumber] as? Double),
                    try #require(file[.modificationDate] as? Date).timeIntervalSince1970,
                ]
            }
        }
        let before = try image()
        let reader = try await HikeLog.read(disk, at: log)
        try await reader.refresh()
        var events = 0
        for try await _ in reader.events() { events += 1 }
        #expect(events == 301)
        #expect(try await reader.statistics().events == 301)
        #expect(try await reader.story(of: hike.id)?.position == Position(301))
        #expect(try image() == before)
        // The writer is not blocked.
        try await writer.append(Hike(path: "hill"))
        #expect(try await reader.refresh() == Position(302))
        try await writer.close()
    }

    @Test(.verifies("FOL-1"))
    func `it works in a folder without write permission`() async throws {
        let writer = try await HikeLog.write(files)
        try await writer.appendHikes(300)
        try await writer.checkpoint()
        try await writer.appendHikes(10, on: "forest")
        for isOpen in [true, false] {
            let reader = try await HikeLog.read(WriteProtected(base: files))
            #expect(await reader.view(Hikes.self) == writer.view(Hikes.self))
            #expect(try await reader.statistics().isOpen == isOpen)
            try await writer.close()
            try await reader.refresh()
        }
        await #expect(throws: LogError.self) {
            _ = try await HikeLog.write(WriteProtected(base: files))
        }
    }

    @Test func `events that stored states cover are not folded, as for the writer`() async throws {
        let views: [any Projection.Type] = [CountedHikes.self]
        let writer = try await HikeLog.write(files, views: views)
        try await writer.appendHikes(500)
        try await writer.checkpoint()
        try await writer.appendHikes(3)
        let before = CountedHikes.folds.withLock { $0 }
        let parts = Mutex<[Double]>([])
        let reader = try await ReadOnlyStore.open(
            at: HikeLog.url, rules: HikeLog.rules, views: views,
            environment: LogEnvironment(fileSystem: files)
        ) { part in parts.withLock { $0.append(part) } }
        #expect(CountedHikes.folds.withLock { $0 } == before + 3)
        #expect(await reader.view(CountedHikes.self).hikes == 503)
        #expect(await reader.view(Outbox.self).count == 503)
        #expect(parts.withLock { $0 == $0.sorted() && $0.last == 1 })
        try await writer.close()
    }

    @Test(.verifies("FOL-3"))
    func `beside a writer that compacts, a reader shows what the writer shows`() async throws {
        let environment = LogEnvironment(fileSystem: files)
        let writer = try await OfflineStore.open(
            at: HikeLog.url, compaction: nil, environment: environment)
        let note = try await writer.notes.add("0", city: "oslo", by: "ada")
        @Sendable func open() async throws -> ReadOnlyStore {
            try await ReadOnlyStore.open(
                at: HikeLog.url, views: OfflineModel.views, extending: OfflineModel.catalogue,
                environment: environment)
        }
        let reader = try await open()
        let isOver = Atomic(false)
        let reading = Task {
            while !isOver.load(ordering: .relaxed) {
                try await reader.refresh()
                _ = try await open()
            }
        }
        var removed = 0
        for round in 1...8 {
            for edit in 1...10 {
                try await writer.notes.update(note.id, "\(round)-\(edit)", by: "ada")
            }
            try await writer.events.settleAll()
            try writer.events.log.roll()
            removed += try await writer.compact().removed
        }
        isOver.store(true, ordering: .relaxed)
        try await reading.value
        #expect(removed > 60)
        try await reader.refresh()
        for store in [reader, try await open()] {
            #expect(await store.view(NotesView.self).rows() == writer.view(NotesView.self).rows())
            #expect(await store.view(Outbox.self).count == 0)
        }
        try await writer.close()
    }

    @Test(.verifies("TOOL-15"))
    func `a discarded event is removed from the views, also if a stored state has it`()
        async throws
    {
        let writer = try await HikeLog.write(files)
        let hike = try await writer.append(Hike(path: "lake", kilometres: 9))
        try await writer.append(Hike(path: "forest"))
        try await writer.record(.parked, of: hike, code: "too_long")
        try await writer.checkpoint()
        let reader = try await HikeLog.read(files)
        #expect(await reader.view(Hikes.self).total == 10)
        try await writer.outbox.discard(hike.id)
        try await reader.refresh()
        for store in [reader, try await HikeLog.read(files)] {
            #expect(await store.view(Hikes.self).kilometres == ["forest": 1])
            #expect(await store.view(Outbox.self).count == 1)
            #expect(await store.position == writer.lastDurable)
        }
        try await writer.close()
    }

    @Test(.verifies("FOL-3"))
    func `a repaired log is followed, and the folded events stay in the views`() async throws {
        var writer = try await HikeLog.write(files)
        try await writer.appendHikes(2_000)
        let reader = try await HikeLog.read(files)
        try await writer.close()
        let segment = "/log/00000000000000000001.lz4"
        files.flip(bit: try #require(files[segment]).count / 2 * 8, of: segment)
        try files.removeAll("/log/checkpoints")
        let repair = try await LogMaintenance(
            at: HikeLog.url, account: nil, rules: HikeLog.rules, views: [Hikes.self],
            environment: LogEnvironment(fileSystem: files)
        ).repair()
        #expect(try #require(repair.lostCount) > 0)
        #expect(try await reader.refresh() == Position(2_000))
        writer = try await HikeLog.write(files)
        try await writer.append(Hike(path: "forest"))
        #expect(try await reader.refresh() == Position(2_001))
        #expect(await reader.view(Hikes.self).total == 2_001)
        try await writer.close()
    }

    @Test(.verifies("FOL-2"))
    func `the views of an erased log stay, and a new log in its folder is distinguished from it`()
        async throws
    {
        var writer = try await HikeLog.write(files)
        try await writer.append(Hike(path: "lake"))
        let reader = try await HikeLog.read(files)
        try await writer.erase(discardingUnsynced: true)
        for isReplaced in [false, true] {
            if isReplaced {
                writer = try await HikeLog.write(files)
                try await writer.appendHikes(5)
            }
            let refused = await #expect(throws: LogError.self) { try await reader.refresh() }
            #expect(refused?.code == .noSuchLog)
            let unread = await #expect(throws: LogError.self) {
                for try await _ in reader.events() {}
            }
            #expect(unread?.code == .noSuchLog)
            #expect(await reader.view(Hikes.self).kilometres == ["lake": 1])
        }
        try await writer.close()
    }

    @Test(.verifies("FOL-1"))
    func `events are those of the writer, after any position, and end`() async throws {
        let writer = try await HikeLog.write(files)
        try await writer.appendHikes(3_000)
        let reader = try await HikeLog.read(files)
        for start in [Position.zero, Position(2_990), Position(3_000), Position(9_000)] {
            var positions: [UInt64] = []
            for try await event in reader.events(after: start) {
                positions.append(event.position.rawValue)
            }
            #expect(positions == Array((1...3_000).dropFirst(Int(start.rawValue))))
        }
        try await writer.close()
        let segment = "/log/00000000000000000001.lz4"
        files.flip(bit: try #require(files[segment]).count / 2 * 8, of: segment)
        var count = 0
        var events = reader.events().makeAsyncIterator()
        let damage = await #expect(throws: LogError.self) {
            while try await events.next() != nil { count += 1 }
        }
        #expect(damage?.code == .corrupt)
        #expect(count > 0)
        #expect(count < 3_000)
        #expect(try await events.next() == nil)
    }

    @Test(.verifies("FOL-1"))
    func `changes give each position of the views, until the task is cancelled`()
        async throws
    {
        let writer = try await HikeLog.write(files)
        let reader = try await HikeLog.read(files)
        var seen: [Position] = []
        for try await position in reader.changes(every: .milliseconds(1)) {
            seen.append(position)
            #expect(await reader.view(Hikes.self).total == Int(position.rawValue))
            if seen.count == 4 { break }
            try await writer.append(Hike(path: "lake"))
        }
        #expect(seen == [.zero, Position(1), Position(2), Position(3)])
        let following = Task {
            for try await _ in reader.changes(every: .milliseconds(1)) {}
        }
        following.cancel()
        try await following.value
        try await writer.close()
    }

    @Test func `a cancelled refresh is continued by the next one`() async throws {
        let writer = try await HikeLog.write(files)
        let reader = try await HikeLog.read(files)
        try await writer.appendHikes(700)
        for work in [
            { @Sendable in try await reader.refresh() },
            { @Sendable in try await HikeLog.read(files).position },
        ] {
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await work()
            }
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(try await reader.refresh() == Position(700))
        #expect(await reader.view(Hikes.self).total == 700)
        try await writer.close()
    }

    @Test func `a missing log and inconsistent views are refused`() async throws {
        let missing = await #expect(throws: LogError.self) { _ = try await HikeLog.read(files) }
        #expect(missing?.code == .noSuchLog)
        try files.createDirectory("/log")
        let empty = await #expect(throws: LogError.self) { _ = try await HikeLog.read(files) }
        #expect(empty?.code == .noSuchLog)
        let url = try #require(URL(string: "https://example.com/log"))
        let refused = await #expect(throws: EventError.self) {
            _ = try await ReadOnlyStore.open(at: url)
        }
        #expect(refused?.code == .refused)
    }
}

// MARK: A folder without write permission

/// A file system on which nothing can be changed.
private struct WriteProtected: ForwardingFileSystem {
    let base: any FileSystem

    private func refuse(_ operation: String, _ path: String) throws(FileError) {
        throw FileError(.readOnly, operation: operation, path: path, reason: "write-protected")
    }

    func createDirectory(_ path: String) throws(FileError) { try refuse("create", path) }
    func rename(_ path: String, to newPath: String) throws(FileError) { try refuse("rename", path) }
    func remove(_ path: String) throws(FileError) { try refuse("remove", path) }
    func removeDirectory(_ path: String) throws(FileError) { try refuse("remove", path) }
    func syncDirectory(_ path: String) throws(FileError) { try refuse("sync", path) }
    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        if mode != .read { try refuse("open", path) }
        return ProtectedFile(try base.open(path, mode), path)
    }

    private final class ProtectedFile: ForwardingFile {
        let file: any File
        private let path: String

        init(_ file: any File, _ path: String) {
            self.file = file
            self.path = path
        }

        private func refuse(_ operation: String) throws(FileError) {
            throw FileError(.readOnly, operation: operation, path: path, reason: "write-protected")
        }

        func write(_ bytes: [UInt8], at offset: Int) throws(FileError) { try refuse("write") }
        func allocate(size: Int) throws(FileError) { try refuse("grow") }
        func truncate(to size: Int) throws(FileError) { try refuse("truncate") }
        func sync() throws(FileError) { try refuse("sync") }
        func lock() throws(FileError) -> Bool {
            try refuse("lock")
            return false
        }
    }
}
