// The wear of a phone's flash by recording: bytes, writes and syncs of one way to record, with Daybook or
// SQLite. Runs in a process of its own.

import DaybookOffline
import Foundation
import LogStorage

/// Records events in one way, followed by the maintenance of the long run: a checkpoint and a compaction;
/// for SQLite, moving the WAL into the database file.
struct Writing: Errand {
    enum Recorder: String, Codable { case daybook, sqlite }

    /// The counts up to a point of the work.
    struct Counts: Codable {
        /// The bytes passed to the system.
        var bytes = 0.0
        /// The bytes of the pages that the system wrote for them.
        var deviceBytes = 0.0
        /// The writes; nil if they are not counted inside the process.
        var writes: Double?
        var syncs: Double?
    }

    /// The result.
    struct Figures: Codable {
        var lineBytes = 0.0
        var recorded = Counts()
        /// The counts with the maintenance.
        var all = Counts()
    }

    var recorder: Recorder
    /// The events of a commit; nil for single appends with relaxed durability.
    var batch: Int?
    var events: Int
    var folder: String
    var source: Input.Source

    private var url: URL { URL(filePath: folder) }

    func perform() async throws -> Figures {
        let drafts = try Input(source).drafts(0..<events)
        var figures = Figures()
        figures.lineBytes = Double(Input.lines(drafts).reduce(0) { $0 + $1.count })
        switch recorder {
        case .daybook: try await record(drafts, &figures)
        case .sqlite: try recordWithSQLite(drafts, &figures)
        }
        return figures
    }

    private func record(_ drafts: [EventDraft], _ figures: inout Figures) async throws {
        let files = WriteCounter()
        let before = try SystemCounters.bytesToDevice()
        func counts() throws -> Counts {
            let counts = files.counts
            return Counts(
                bytes: Double(counts.bytes),
                deviceBytes: try SystemCounters.bytesToDevice() - before,
                writes: Double(counts.writes), syncs: Double(counts.syncs))
        }
        let store = try await OfflineStore.open(
            at: url.appending(path: "log"), compaction: nil,
            environment: LogEnvironment(fileSystem: files))
        if let batch {
            for part in parts(drafts, batch) { try await store.events.append(contentsOf: part) }
        } else {
            for draft in drafts {
                try await store.events.append(contentsOf: [draft], durability: .relaxed)
            }
            try await store.events.flush()
        }
        figures.recorded = try counts()
        try await store.settle()
        try await store.compact()
        try await store.close()
        figures.all = try counts()
    }

    private func recordWithSQLite(_ drafts: [EventDraft], _ figures: inout Figures) throws {
        let rows = SQLitePeer.rows(drafts)
        let device = try SystemCounters.bytesToDevice()
        let handedOver = try SystemCounters.bytesHandedOver()
        func counts() throws -> Counts {
            Counts(
                bytes: try SystemCounters.bytesHandedOver() - handedOver,
                deviceBytes: try SystemCounters.bytesToDevice() - device)
        }
        let peer = try SQLitePeer(in: url)
        for part in parts(rows, batch ?? 1) { try peer.append(part) }
        figures.recorded = try counts()
        try peer.checkpoint()
        figures.all = try counts()
    }

    private func parts<Element>(_ all: [Element], _ count: Int) -> [ArraySlice<Element>] {
        stride(from: 0, to: all.count, by: count).map { all[$0..<min($0 + count, all.count)] }
    }
}
