// One piece of work with a log, in a process of its own, for the memory row and the growth curves.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import WireHistories

/// Work with a log in a folder.
struct LogWork: Errand {
    enum Kind: String, Codable, CaseIterable {
        /// Appends batches of a thousand, settles them from time to time, and stores a checkpoint.
        case append
        /// The same without settling.
        case fill
        /// Opens the store from the checkpoint.
        case open
        /// Opens the store without a checkpoint: all views from all events.
        case rebuild
        /// Reads every line once, as bytes.
        case scan
        case verify
        case compact
        /// Looks up ids that the log has, or ids that it does not have.
        case known, unknown
        /// Ships to a server that accepts everything.
        case ship
        /// Opens the store and does nothing.
        case idle
        /// Opens a companion, appends one event and reads one entry of a view.
        case companion
    }

    /// The result.
    struct Figures: Codable {
        var seconds = 0.0
        /// The number of events, openings or lookups in these seconds.
        var count = 0
        /// The memory of the process at the end, with the store open.
        var residentMiB = 0.0
    }

    var kind: Kind
    var log: String
    /// The events that the log has or will have.
    var events: Int
    var source: Input.Source

    private static let batch = 1_000
    /// The most pending events.
    private static let unsettledMax = 10_000
    private static let openings = 20
    /// Enough that what a store does once, such as making a filter for the ids, has little part in the mean.
    private static let lookups = 20_000

    private var url: URL { URL(filePath: log) }

    private func store() async throws -> OfflineStore {
        try await OfflineStore.open(at: url, account: "local", compaction: nil)
    }

    func perform() async throws -> Figures {
        switch kind {
        case .append: try await append(settles: true)
        case .fill: try await append(settles: false)
        case .open: try await open()
        case .rebuild: try await rebuild()
        case .scan: try await timed { try LogReader(log).forEachLine { _, _ in true } }
        case .verify:
            try await timed {
                let summary = try LogVerifier(log).verify { _, _ in nil }
                guard summary.findings.isEmpty else { throw RaceFailure("the log is damaged") }
            }
        case .compact: try await withStore { store in _ = try await store.compact() }
        case .known: try await lookUp(known: true)
        case .unknown: try await lookUp(known: false)
        case .ship: try await withStore(ship)
        case .idle: try await withStore { _ in }
        case .companion: try await companion()
        }
    }

    /// Measures a closure that processes the whole log.
    private func timed(_ body: () async throws -> Void) async throws -> Figures {
        Figures(seconds: try await seconds(body), count: events)
    }

    /// Measures a closure with an open store; opening and closing are not counted.
    private func withStore(_ body: (OfflineStore) async throws -> Void) async throws -> Figures {
        let store = try await store()
        var figures = try await timed { try await body(store) }
        figures.residentMiB = try SystemCounters.residentMiB()
        try await store.close()
        return figures
    }

    private func append(settles: Bool) async throws -> Figures {
        let input = try Input(source)
        let store = try await store()
        var figures = Figures(count: events)
        for start in stride(from: 0, to: events, by: Self.batch) {
            let end = min(start + Self.batch, events)
            let drafts = input.drafts(start..<end)
            figures.seconds += try await seconds {
                try await store.events.append(contentsOf: drafts)
            }
            if settles, end % Self.unsettledMax == 0 || end == events { try await store.settle() }
        }
        try await store.events.checkpoint()
        try await store.close()
        return figures
    }

    private func open() async throws -> Figures {
        var costs: [Double] = []
        for _ in 0..<Self.openings {
            var store: OfflineStore?
            costs.append(try await seconds { store = try await self.store() })
            try await store?.close()
        }
        return Figures(seconds: costs.median, count: 1)
    }

    private func companion() async throws -> Figures {
        let input = try Input(source)
        let drafts = input.drafts(events..<events + 1)
        let seconds = try await seconds {
            let companion = try await OfflineStore.openCompanion(
                at: url, name: "widget", account: "local")
            try await companion.append(contentsOf: drafts)
            _ = await companion.view(CitiesView.self).offline("paris")
        }
        return Figures(seconds: seconds, count: 1)
    }

    private func rebuild() async throws -> Figures {
        try? FileManager.default.removeItem(at: url.appending(path: LogDirectory.checkpoints))
        var store: OfflineStore?
        let figures = try await timed { store = try await self.store() }
        try await store?.close()
        return figures
    }

    private func lookUp(known: Bool) async throws -> Figures {
        var random = SeededRandom(seed: 1)
        let ids = (0..<Self.lookups).map { _ in
            let index = Int(random.next() % UInt64(events))
            return Input.id(known ? index : events + index)
        }
        var figures = try await withStore { store in
            for id in ids {
                guard (try await store.events.event(id: id) != nil) == known else {
                    throw RaceFailure("an id is \(known ? "missing" : "known")")
                }
            }
        }
        figures.count = ids.count
        return figures
    }

    private func ship(_ store: OfflineStore) async throws {
        let server = try NullServer()
        var options = Replayer.Options()
        options.reads = false
        let report = try await Replayer(
            store.events, transport: HTTPTransport(endpoint: try server.endpoint),
            options: options
        ).run()
        guard report.applied == events, report.pending == 0 else {
            throw RaceFailure("shipped \(report.applied) events, \(report.pending) are pending")
        }
    }
}

extension OfflineStore {
    /// Records that the server has applied all events, as a replayer does.
    func settle() async throws {
        let last = await events.lastDurable.rawValue
        var record = SyncSettled(by: events.incarnation)
        record.applied = [1...last]
        try await events.record(record)
    }
}
