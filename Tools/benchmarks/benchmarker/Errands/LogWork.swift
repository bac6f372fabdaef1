// One piece of work with a log, done in a process of its own: the row of memory and the curves of
// Growth.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import WireHistories

/// Work with a log in a folder.
struct LogWork: Errand {
    enum Kind: String, Codable, CaseIterable {
        /// Batches of a thousand; settled now and then, stored with a checkpoint.
        case append
        /// The same, of which the server has heard nothing.
        case fill
        /// Opening from the checkpoint.
        case open
        /// Opening without one: all views from all events.
        case rebuild
        /// Every line once, as bytes.
        case scan
        case verify
        case compact
        /// Events by ids that the log has, and by ids that it has not.
        case known, unknown
        /// To a server that takes everything.
        case ship
        /// Nothing but having the store open.
        case rest
    }

    /// What came of it.
    struct Figures: Codable {
        var seconds = 0.0
        /// What the seconds are shared by: events, openings, lookups.
        var count = 0
        /// Memory of the process at the end, with the store open.
        var residentMiB = 0.0
    }

    var kind: Kind
    var log: String
    /// Events that the log has, or is to have.
    var events: Int
    var source: Input.Source

    private static let batch = 1_000
    /// Events that wait for the server at most.
    private static let unsettledMax = 10_000
    private static let openings = 20
    private static let lookups = 2_000

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
        case .rest: try await withStore { _ in }
        }
    }

    /// What a body that works through the log takes.
    private func timed(_ body: () async throws -> Void) async throws -> Figures {
        Figures(seconds: try await seconds(body), count: events)
    }

    /// The same with the store open, which does not count.
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
            figures.seconds += try await seconds { try await store.events.append(drafts) }
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
            let place = Int(random.next() % UInt64(events))
            return Input.id(known ? place : events + place)
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
            throw RaceFailure("shipped \(report.applied) events, \(report.pending) are left")
        }
    }
}

extension OfflineStore {
    /// Records that the server has taken all that there is, as a replayer does.
    func settle() async throws {
        let last = await events.lastDurable.rawValue
        var record = SyncSettled(by: events.incarnation)
        record.applied = [1...last]
        try await events.record(record)
    }
}
