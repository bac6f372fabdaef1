// The time until an event is on the disk: one writer, sixteen writers, and batches of a thousand events.

import DaybookOffline
import Foundation
import LogStorage

/// The append races.
struct Appending {
    let input: Input
    let folder: URL
    /// The events of a turn: single commits, sixteen writers, batches.
    let sizes: (single: Int, concurrent: Int, bulk: Int)

    private static let writers = 16
    private static let batch = 1_000

    private func store(_ folder: URL, _ files: any FileSystem = POSIXFileSystem()) async throws
        -> OfflineStore
    {
        try await OfflineStore.open(
            at: folder.appending(path: "log"), compaction: nil,
            environment: LogEnvironment(fileSystem: files))
    }

    /// Runs a closure in a new folder and removes the folder.
    private func inFolder(_ body: (URL) async throws -> Cost) async throws -> Cost {
        let folder = try Folder(in: folder)
        defer { folder.remove() }
        return try await body(folder.url)
    }

    // MARK: One writer

    /// One commit for each event; the cost is the median append.
    func single() async throws -> Race {
        let drafts = input.drafts(0..<sizes.single)
        let rows = SQLitePeer.rows(drafts)
        let writes = try await recordedWrites(drafts)
        return try Race(
            name: "durable append, one writer", unit: "µs an append (median)", scale: 1e6,
            budgets: [
                .within(15, entry: RaceResult.ours, and: "pwrite + fdatasync"),
                .atMost(1.15, of: "pwrite + fdatasync"), .atLeast(1.15, timesFasterThan: "SQLite"),
                .atLeast(1.3, timesFasterThan: "RocksDB"), .processorAtMost(0.5, of: "SQLite"),
            ],
            contenders: [
                Contender(name: RaceResult.ours) {
                    try await inFolder { folder in
                        let store = try await store(folder)
                        let cost = try await medianMeasured(drafts) {
                            try await store.events.append(contentsOf: [$0])
                        }
                        try await store.close()
                        return cost
                    }
                },
                Contender(name: "pwrite + fdatasync") {
                    try await inFolder { folder in
                        let file = try RawFile(in: folder, for: writes)
                        defer { file.close() }
                        return try await medianMeasured(writes) { try file.append($0) }
                    }
                },
                // The cost of the two changes of threads, with which no thread of an app waits for the disk.
                Contender(name: "the same in an actor") {
                    try await inFolder { folder in
                        let file = RawFileActor(try RawFile(in: folder, for: writes))
                        let cost = try await medianMeasured(writes) { try await file.append($0) }
                        await file.close()
                        return cost
                    }
                },
                Contender(name: "SQLite") {
                    try await inFolder { folder in
                        let peer = try SQLitePeer(in: folder)
                        return try await medianMeasured(rows) { try peer.append([$0]) }
                    }
                },
            ] + outside("single", drafts))
    }

    /// Writes the lines to a file for RocksDB and LMDB, and returns these contenders.
    private func outside(
        _ work: String, _ drafts: [EventDraft], by divisor: Int = 1
    ) throws -> [Contender] {
        guard !OutsidePeer.all.isEmpty else { return [] }
        let file = folder.appending(path: "\(work).ndjson")
        try Input.write(drafts, to: file)
        return OutsidePeer.contenders(
            work, file, events: drafts.count, by: divisor, in: folder)
    }

    /// Records the log's writes for these events, one commit for each.
    private func recordedWrites(_ drafts: [EventDraft]) async throws -> [WriteRecorder.Write] {
        let folder = try Folder(in: folder)
        defer { folder.remove() }
        let recorder = WriteRecorder()
        let store = try await store(folder.url, recorder)
        _ = recorder.drain()
        for draft in drafts { try await store.events.append(contentsOf: [draft]) }
        let writes = recorder.drain()
        try await store.close()
        return writes
    }

    // MARK: Sixteen writers

    /// Sixteen tasks, each of which awaits its own commits.
    func concurrent() throws -> Race {
        let share = max(1, sizes.concurrent / Self.writers)
        let all = input.drafts(0..<share * Self.writers)
        let parts = (0..<Self.writers).map { Array(all[$0 * share..<($0 + 1) * share]) }
        let rows = parts.map(SQLitePeer.rows)
        return try Race(
            name: "durable appends, 16 writers", unit: "µs an event", scale: 1e6,
            budgets: [
                .atLeast(10, timesFasterThan: "SQLite"), .atLeast(3, timesFasterThan: "RocksDB"),
                .processorAtMost(0.15, of: "SQLite"),
            ],
            contenders: [
                Contender(name: RaceResult.ours) {
                    try await inFolder { folder in
                        let store = try await store(folder)
                        let cost = try await measured {
                            try await withThrowingTaskGroup { group in
                                for part in parts {
                                    group.addTask {
                                        for draft in part {
                                            try await store.events.append(contentsOf: [draft])
                                        }
                                    }
                                }
                                try await group.waitForAll()
                            }
                        }
                        try await store.close()
                        return cost / Double(all.count)
                    }
                },
                Contender(name: "SQLite") {
                    try await inFolder { folder in
                        let peer = try SQLitePeer(in: folder)
                        let cost = try await measured {
                            try await withThrowingTaskGroup { group in
                                for part in rows {
                                    group.addTask { for row in part { try peer.append([row]) } }
                                }
                                try await group.waitForAll()
                            }
                        }
                        return cost / Double(all.count)
                    }
                },
            ] + outside("concurrent", all, by: all.count))
    }

    // MARK: Batches

    /// Batches of a thousand events. Each contender begins with values of Swift types, so encoding JSON is
    /// part of the race.
    func bulk() throws -> Race {
        let starts = Array(stride(from: 0, to: sizes.bulk, by: Self.batch))
        let batches = starts.map { input.drafts($0..<$0 + Self.batch) }
        let payloads = try batches.map { try $0.map { ($0, try Input.payload($0)) } }
        let decoder = JSONDecoder()
        let codable = try batches.map { batch in
            try zip(batch, Input.lines(batch)).map { draft, line in
                (draft.id, try decoder.decode(CodableEvent.self, from: Data(line)))
            }
        }
        let count = Double(batches.count * Self.batch)
        return try Race(
            name: "bulk append, 1,000 typed events a batch", unit: "µs an event", scale: 1e6,
            budgets: [
                .atLeast(6, timesFasterThan: "SQLite + JSONEncoder"),
                .atLeast(2, timesFasterThan: "RocksDB"), .atLeast(2, timesFasterThan: "LMDB"),
                .processorAtMost(0.5, of: "SQLite + JSONEncoder"),
                .processorAtMost(0.9, of: "SQLite + our lines"),
            ],
            contenders: [
                Contender(name: RaceResult.ours) {
                    try await inFolder { folder in
                        let store = try await store(folder)
                        let cost = try await measured {
                            for batch in payloads {
                                try await store.events.append(
                                    contentsOf:
                                        try batch.map { draft, payload in
                                            try EventDraft(payload, id: draft.id, time: draft.time)
                                        })
                            }
                        }
                        try await store.close()
                        return cost / count
                    }
                },
                Contender(name: "SQLite + JSONEncoder") {
                    try await inFolder { folder in
                        let peer = try SQLitePeer(in: folder)
                        let encoder = JSONEncoder()
                        let cost = try await measured {
                            for batch in codable {
                                try peer.append(
                                    try batch.map { id, event in
                                        (
                                            withUnsafeBytes(of: id.uuid) { Data($0) },
                                            try encoder.encode(event)
                                        )
                                    })
                            }
                        }
                        return cost / count
                    }
                },
                // The cost of the database alone: the JSON is from the store's own encoder.
                Contender(name: "SQLite + our lines") {
                    try await inFolder { folder in
                        let peer = try SQLitePeer(in: folder)
                        let cost = try await measured {
                            for batch in batches { try peer.append(SQLitePeer.rows(batch)) }
                        }
                        return cost / count
                    }
                },
            ] + outside("bulk", Array(batches.joined()), by: batches.count * Self.batch))
    }

    // MARK: Ready lines

    /// Batches of a thousand lines that were encoded beforehand, without a store: nothing is checked but the lines'
    /// beginnings, and no view is folded.
    func readyLines() throws -> Race {
        let drafts = input.drafts(0..<sizes.bulk)
        let lines = Input.lines(drafts)
        let batches = stride(from: 0, to: lines.count, by: Self.batch).map { start in
            Array(lines[start..<min(start + Self.batch, lines.count)].joined())
        }
        let file = folder.appending(path: "ready.ndjson")
        try Input.write(drafts, to: file)
        let count = Double(lines.count)
        return Race(
            name: "bulk append, ready lines", unit: "µs an event", scale: 1e6,
            budgets: [.atMost(2, of: "lz4 -1")],
            contenders: [
                Contender(name: RaceResult.ours) {
                    try await inFolder { folder in
                        let log = try Log(at: folder.appending(path: "log").path)
                        let cost = try await measured {
                            for batch in batches { try log.append(batch) }
                        }
                        try log.close()
                        return cost / count
                    }
                },
                Contender(name: "lz4 -1") {
                    try await inFolder { folder in
                        let copy = folder.appending(path: "ready.lz4").path
                        let command = "lz4 -1 -q '\(file.path)' '\(copy)' && sync -d '\(copy)'"
                        return try await measured { try output(of: ["sh", "-c", command]) } / count
                    }
                },
            ])
    }
}

/// A file with preallocated space for the writes that the log makes.
private struct RawFile {
    private let descriptor: Int32

    init(in folder: URL, for writes: [WriteRecorder.Write]) throws {
        descriptor = open(folder.appending(path: "raw").path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw RaceFailure("cannot open the raw file") }
        let end = writes.map { $0.offset + $0.bytes.count }.max() ?? 0
        guard posix_fallocate(descriptor, 0, off_t(end)) == 0, fsync(descriptor) == 0 else {
            throw RaceFailure("cannot preallocate the raw file")
        }
    }

    /// Writes and syncs.
    func append(_ write: WriteRecorder.Write) throws {
        let count = write.bytes.count
        guard pwrite(descriptor, write.bytes, count, off_t(write.offset)) == count,
            fdatasync(descriptor) == 0
        else { throw RaceFailure("cannot write the raw file") }
    }

    func close() { _ = Foundation.close(descriptor) }
}

/// A file that is written on a queue of its own, as a store's log is.
private actor RawFileActor {
    private let file: RawFile
    private nonisolated let executor = StoreExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }

    init(_ file: RawFile) { self.file = file }

    func append(_ write: WriteRecorder.Write) throws { try file.append(write) }

    func close() { file.close() }
}
