// A library of 100,000 assets in a store and in SQLite, with the same indexes: what three reads take
// in each, and what the library costs to fold, to open and to keep in memory. Started by
// `Tools/soak assets`. Spec/model/media.md, MED-9.

import DaybookOffline
import DaybookTestKit
import Foundation

/// The same assets in a store and in a database, read in turn.
package struct AssetReads: Sendable {
    package var assets = 100_000
    package var owners = 10
    package var rounds = 15
    package var seed: UInt64 = 1
    package var say: @Sendable (String) -> Void = { _ in }

    package init() {}

    /// Look-ups of one asset in a round.
    static let lookups = 1_000
    /// Assets that are put at once.
    static let batch = 2_000
    /// Copies of the view of which the memory is measured.
    static let copies = 4
    /// 1 January 2016; the library covers ten years.
    static let start: Int64 = 1_451_606_400_000
    static let days: Int64 = 3_652

    /// What the reads took, and what else there is to know.
    package struct Report: Sendable, CustomStringConvertible {
        /// One read, in both; microseconds.
        struct Read: Sendable {
            var name: String
            var rows: Int
            var store: [Double] = []
            var database: [Double] = []

            var line: String {
                let (one, other) = (store.median, database.median)
                return name.padding(toLength: 34, withPad: " ", startingAt: 0)
                    + String(
                        format: "%7d rows %10.1f µs %12.1f µs   %5.1f times as fast", rows, one,
                        other, other / max(one, 0.001))
            }
        }

        var reads: [Read] = []
        var facts: [(name: String, value: String)] = []

        package var description: String {
            let head =
                "median of each read".padding(toLength: 34, withPad: " ", startingAt: 0)
                + "                  store       SQLite"
            let facts = facts.map {
                $0.name.padding(toLength: 34, withPad: " ", startingAt: 0) + $0.value
            }
            return ([head] + reads.map(\.line) + [""] + facts).joined(separator: "\n")
        }

        /// Whether a read was slower in the store than in the database.
        package var slower: [String] {
            reads.filter { $0.store.median > $0.database.median }.map(\.name)
        }

        mutating func add(_ name: String, _ milliseconds: Double) {
            facts.append((name, String(format: "%.1f ms", milliseconds)))
        }

        mutating func add(_ name: String, bytes: Int) {
            facts.append((name, String(format: "%.1f MB", Double(bytes) / 1_048_576)))
        }
    }

    /// Measures in a folder that is there and empty.
    package func run(in folder: URL) async throws -> Report {
        var report = Report()
        let library = SampleLibrary(assets: assets, owners: owners, seed: seed)
        let log = folder.appending(path: "log")
        try await fill(log, library, &report)
        let database = try AssetDatabase(at: folder.appending(path: "assets.sqlite").path)
        report.add("put all, SQLite", try milliseconds { try database.insert(library.all) })
        say("filled")
        let store = try await open(log, "opening from a checkpoint", &report)
        try compare(store.view(AssetsView.self), database, library, &report)
        try measureState(store.view(AssetsView.self), &report)
        try await store.close()
        try FileManager.default.removeItem(at: log.appending(path: "checkpoints"))
        let folded = try await open(log, "opening without, all is folded", &report)
        guard folded.view(AssetsView.self).count == assets else {
            throw AssetReadsError("the log did not come to \(assets) assets")
        }
        try await folded.close()
        report.add("memory of the process, at most", bytes: Memory.residentMax)
        return report
    }

    private func fill(
        _ log: URL, _ library: SampleLibrary, _ report: inout Report
    ) async throws {
        let store = try await OfflineStore.open(at: log, compaction: nil)
        let before = DispatchTime.now()
        for start in stride(from: 0, to: assets, by: Self.batch) {
            try await store.assets.putAll(
                (start..<min(start + Self.batch, assets)).map(library.asset))
        }
        report.add("put all, store", before.millisecondsUntilNow)
        try await store.close()
    }

    private func open(
        _ log: URL, _ name: String, _ report: inout Report
    ) async throws -> OfflineStore {
        let before = DispatchTime.now()
        let store = try await OfflineStore.open(at: log, compaction: nil)
        report.add(name, before.millisecondsUntilNow)
        return store
    }

    // MARK: Reading

    private func compare(
        _ view: AssetsView, _ database: AssetDatabase, _ library: SampleLibrary,
        _ report: inout Report
    ) throws {
        var random = SeededRandom(seed: seed)
        var single = Report.Read(name: "by remote id", rows: 1)
        var owned = Report.Read(name: "by owner", rows: 0)
        var month = Report.Read(name: "in a date range, a month", rows: 0)
        for round in 0..<rounds {
            let ids = (0..<Self.lookups).map { _ in
                library.asset(Int(random.next() % UInt64(assets))).remoteId ?? ""
            }
            let both = try inTurn(round) {
                ids.map { view.asset(remoteId: $0) }
            } _: {
                try database.assets(remoteIds: ids)
            }
            single.store.append(both.store / Double(Self.lookups))
            single.database.append(both.database / Double(Self.lookups))

            let owner = library.owner(Int(random.next() % UInt64(owners)))
            let all = try inTurn(round) {
                Array(view.assets(ownedBy: owner))
            } _: {
                try database.assets(ownedBy: owner)
            }
            owned.rows = all.rows
            owned.store.append(all.store)
            owned.database.append(all.database)

            let day = Int64(random.next() % UInt64(Self.days - 30))
            let first = Timestamp(milliseconds: Self.start + day * 86_400_000)
            let last = Timestamp(milliseconds: first.milliseconds + 30 * 86_400_000)
            let some = try inTurn(round) {
                Array(view.assets(takenFrom: first, through: last))
            } _: {
                try database.assets(from: first, through: last)
            }
            month.rows = some.rows
            month.store.append(some.store)
            month.database.append(some.database)
        }
        report.reads = [single, owned, month]
    }

    /// Asks both, which takes turns to be first, and sees that they answer the same.
    private func inTurn<Value: Collection & Equatable>(
        _ round: Int, _ store: () throws -> Value, _ database: () throws -> Value
    ) throws -> (store: Double, database: Double, rows: Int) {
        let (one, other): ((Value, Double), (Value, Double))
        if round % 2 == 0 {
            one = try timed(store)
            other = try timed(database)
        } else {
            other = try timed(database)
            one = try timed(store)
        }
        guard one.0 == other.0 else {
            throw AssetReadsError("the store and the database do not answer the same")
        }
        return (one.1 * 1_000, other.1 * 1_000, one.0.count)
    }

    // MARK: The state

    private func measureState(_ view: AssetsView, _ report: inout Report) throws {
        let (bytes, milliseconds) = try timed { view.encodedState() ?? [] }
        report.add("encoding the state", milliseconds)
        report.add("bytes of the state", bytes: bytes.count)
        let (decoded, time) = try timed { try AssetsView(encodedState: bytes) }
        report.add("reading the state", time)
        // The first copy fills what was freed before; the others need room of their own.
        let before = Memory.resident
        let copies = try (0..<Self.copies).map { _ in try AssetsView(encodedState: bytes) }
        let grown = (Memory.resident - before) / copies.count
        guard copies.allSatisfy({ $0.count == decoded.count }) else {
            throw AssetReadsError("a state that was read is another one")
        }
        report.add("resident memory of the view", bytes: grown)
        let perAsset = grown / max(1, decoded.count)
        report.facts.append(("resident memory for each asset", "\(perAsset) bytes"))
    }

    private func timed<Value>(_ body: () throws -> Value) throws -> (Value, Double) {
        let before = DispatchTime.now()
        let value = try body()
        return (value, before.millisecondsUntilNow)
    }

    private func milliseconds(_ body: () throws -> Void) throws -> Double {
        try timed(body).1
    }
}

/// A measurement that came to what must not be.
package struct AssetReadsError: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}

extension DispatchTime {
    fileprivate var millisecondsUntilNow: Double {
        Double(DispatchTime.now().uptimeNanoseconds - uptimeNanoseconds) / 1e6
    }
}

extension [Double] {
    fileprivate var median: Double { isEmpty ? 0 : sorted()[count / 2] }
}
