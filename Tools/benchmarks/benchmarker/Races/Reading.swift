// The speed of reading a log: as bytes, as views, at an opening; and its size.

import DaybookOffline
import Foundation
import GRDB
import LogStorage

/// The read races.
struct Reading {
    let input: Input
    let folder: URL
    /// The events of the logs.
    let events: Int
    /// The events of the log that is rebuilt; fewer, because the peer is slow.
    let rebuilt: Int

    /// Creates a log with a number of events in batches, closed cleanly, without a checkpoint.
    private func log(_ name: String, _ events: Int, batch: Int = 1_000) async throws -> URL {
        let url = folder.appending(path: name)
        let store = try await OfflineStore.open(at: url, compaction: nil)
        for start in stride(from: 0, to: events, by: batch) {
            try await store.events.append(
                contentsOf: input.drafts(start..<min(start + batch, events)))
        }
        try await store.close()
        try? FileManager.default.removeItem(at: url.appending(path: LogDirectory.checkpoints))
        return url
    }

    private static func segments(_ log: URL) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: log.path)
            .filter { $0.hasSuffix(".lz4") }.sorted().map { log.appending(path: $0).path }
    }

    // MARK: Scan

    /// Reads every line once, as bytes.
    func scan() async throws -> Race {
        let log = try await log("scan", events)
        let segments = try Self.segments(log)
        let files = segments.map { "'\($0)'" }.joined(separator: " ")
        return try Race(
            name: "raw scan", unit: "ns an event", scale: 1e9 / Double(events),
            budgets: [.atMost(1.15, of: "lz4 -dc")],
            contenders: [
                Contender(name: RaceResult.ours) {
                    var count = 0
                    let cost = try await measured {
                        try LogReader(log.path).forEachLine { _, _ in
                            count += 1
                            return true
                        }
                    }
                    guard count == events else { throw RaceFailure("\(count) lines were read") }
                    return cost
                },
                Contender(name: "lz4 -dc") {
                    try await measured {
                        try output(of: ["sh", "-c", "cat \(files) | lz4 -dc > /dev/null"])
                    }
                },
            ] + outsideScan())
    }

    /// RocksDB and LMDB, filled and compacted beforehand.
    private func outsideScan() throws -> [Contender] {
        guard !OutsidePeer.all.isEmpty else { return [] }
        let file = folder.appending(path: "scan.ndjson")
        try Input.write(input.drafts(0..<events), to: file)
        return try OutsidePeer.all.map { peer in
            let database = try Folder(in: folder).url
            _ = try peer.perform("load", file, events: events, in: database)
            return Contender(name: peer.name) {
                try peer.perform("scan", file, events: events, in: database)
            }
        }
    }

    // MARK: Rebuild

    private static func decodeAll(_ peer: SQLitePeer) throws -> Int {
        let decoder = JSONDecoder()
        return try peer.queue.read { db in
            let rows = try Data.fetchCursor(db, sql: "SELECT line FROM events ORDER BY position")
            var count = 0
            while let line = try rows.next() {
                _ = try decoder.decode(CodableEvent.self, from: line)
                count += 1
            }
            return count
        }
    }

    /// Rebuilds all views from all events, without a checkpoint.
    func rebuild() async throws -> Race {
        let log = try await log("rebuild", rebuilt)
        let peer = try SQLitePeer(in: folder)
        for start in stride(from: 0, to: rebuilt, by: 10_000) {
            try peer.append(
                SQLitePeer.rows(input.drafts(start..<min(start + 10_000, rebuilt))))
        }
        return Race(
            name: "typed rebuild of all views", unit: "µs an event", scale: 1e6 / Double(rebuilt),
            budgets: [
                .atLeast(8, timesFasterThan: "SQLite + JSONDecoder"),
                .processorAtMost(0.2, of: "SQLite + JSONDecoder"),
            ],
            contenders: [
                Contender(name: RaceResult.ours) {
                    try? FileManager.default.removeItem(
                        at: log.appending(path: LogDirectory.checkpoints))
                    var store: OfflineStore?
                    let cost = try await measured {
                        store = try await OfflineStore.open(at: log, compaction: nil)
                    }
                    guard let store, await store.events.lastDurable.rawValue == UInt64(rebuilt)
                    else { throw RaceFailure("events are missing") }
                    try await store.close()
                    return cost
                },
                Contender(name: "SQLite + JSONDecoder") {
                    try await measured {
                        guard try Self.decodeAll(peer) == rebuilt else {
                            throw RaceFailure("rows are missing")
                        }
                    }
                },
            ])
    }

    // MARK: Open

    /// Opens two logs: one has a hundred times the events of the other, the same entities and tail.
    func opening() async throws -> Race {
        let (small, big) = (max(100, events / 100), events)
        // Too few for a checkpoint when the store is closed, so that every opening folds them.
        let tail = 90
        var logs: [URL] = []
        for (name, count) in [("small", small), ("big", big)] {
            let url = folder.appending(path: name)
            let store = try await OfflineStore.open(at: url, compaction: nil)
            // A hundred cities, saved repeatedly, so that the states of both logs are equal.
            for start in stride(from: 0, to: count, by: 1_000) {
                try await store.events.append(
                    contentsOf:
                        try (start..<min(start + 1_000, count)).map {
                            try EventDraft(CitySaved(userId: "u", cityId: "city-\($0 % 100)"))
                        })
                // Pending events would be part of the state.
                try await store.settle()
            }
            try await store.events.checkpoint()
            for number in 0..<tail {
                try await store.cities.save("city-\(number)", by: "u")
            }
            try await store.close()
            logs.append(url)
        }
        func open(_ log: URL) async throws -> Cost {
            var costs: [Double] = []
            for _ in 0..<20 {
                var store: OfflineStore?
                costs.append(
                    try await seconds {
                        store = try await OfflineStore.open(at: log, compaction: nil)
                    })
                try await store?.close()
            }
            return Cost(value: costs.median)
        }
        return Race(
            name: "open with a checkpoint", unit: "ms an opening (median)", scale: 1e3,
            budgets: [.atMost(1.2, of: "\(Markdown.count(small)) events")],
            contenders: [
                Contender(name: "\(Markdown.count(big)) events") { [logs] in try await open(logs[1])
                },
                Contender(name: "\(Markdown.count(small)) events") { [logs] in
                    try await open(logs[0])
                },
            ])
    }

    // MARK: Size

    /// Compares the bytes on the disk, for commits of `batch` events.
    func size(batch: Int) async throws -> Race {
        let count = batch == 1 ? min(events, 10_000) : events
        let log = try await log("size-\(batch)", count, batch: batch)
        let drafts = input.drafts(0..<count)
        let database = folder.appending(path: "size-\(batch)-sqlite")
        try FileManager.default.createDirectory(at: database, withIntermediateDirectories: true)
        let peer = try SQLitePeer(in: database)
        try peer.append(SQLitePeer.rows(drafts))
        try peer.checkpoint()
        // The lines of the log, compressed as one file.
        let plain = folder.appending(path: "size-\(batch).ndjson").path
        let files = try Self.segments(log).map { "'\($0)'" }.joined(separator: " ")
        try output(
            of: ["sh", "-c", "cat \(files) | lz4 -dc | lz4 -1 -c > '\(plain).lz4'"])
        let sizes = [
            try Folder.bytes(log, ending: ".lz4"), try Folder.bytes(database, ending: ".sqlite"),
            try Folder.bytes(folder, ending: "size-\(batch).ndjson.lz4"),
        ].map { Double($0) / Double(count) }
        return Race(
            name: batch == 1 ? "size, single commits" : "size, batches of \(Markdown.count(batch))",
            unit: "bytes an event",
            budgets: [
                .atMost(0.3, of: "SQLite"), .atMost(batch == 1 ? 1.25 : 1.12, of: "lz4 -1"),
            ],
            contenders: zip([RaceResult.ours, "SQLite", "lz4 -1"], sizes).map { name, size in
                Contender(name: name) { Cost(value: size) }
            })
    }
}
