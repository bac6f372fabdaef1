// Measures a library of 100,000 assets in a store and in SQLite, with the same indexes: the times of three
// reads in both, and the store's times of folding and opening and its memory. `Tools/soak assets` runs it.
// Spec/model/media.md, MED-9.

import DaybookOffline
import DaybookTestKit
import Foundation

/// A comparison of reads of the same assets from a store and from a database.
package struct AssetReads: Sendable {
    package var assets = 100_000
    package var owners = 10
    package var rounds = 15
    package var seed: UInt64 = 1
    package var progress: @Sendable (String) -> Void = { _ in }

    package init() {}

    /// The number of lookups of one asset in a round.
    static let lookups = 1_000
    /// The number of assets in one call of `putAll`.
    static let batch = 2_000
    /// The number of copies of the view whose memory is measured.
    static let copies = 4
    /// 1 January 2016; the library covers ten years.
    static let start: Int64 = 1_451_606_400_000
    static let days: Int64 = 3_652

    /// The times of the reads, and the other measurements.
    package struct Report: Sendable, CustomStringConvertible {
        /// The times of one kind of read in both, in microseconds.
        struct Read: Sendable {
            var name: String
            var rows: Int
            var store: [Double] = []
            var database: [Double] = []

            var line: String {
                let (storeMedian, databaseMedian) = (store.median, database.median)
                return name.padding(toLength: 34, withPad: " ", startingAt: 0)
                    + String(
                        format: "%7d rows %10.1f µs %12.1f µs   %5.1f times as fast", rows,
                        storeMedian, databaseMedian, databaseMedian / max(storeMedian, 0.001))
            }
        }

        var reads: [Read] = []
        var measurements: [(name: String, value: String)] = []

        package var description: String {
            let head =
                "median of each read".padding(toLength: 34, withPad: " ", startingAt: 0)
                + "                  store       SQLite"
            let lines = measurements.map {
                $0.name.padding(toLength: 34, withPad: " ", startingAt: 0) + $0.value
            }
            return ([head] + reads.map(\.line) + [""] + lines).joined(separator: "\n")
        }

        /// The reads that were slower in the store than in the database.
        package var slower: [String] {
            reads.filter { $0.store.median > $0.database.median }.map(\.name)
        }

        mutating func addTime(_ name: String, _ milliseconds: Double) {
            measurements.append((name, String(format: "%.1f ms", milliseconds)))
        }

        mutating func addSize(_ name: String, bytes: Int) {
            measurements.append((name, String(format: "%.1f MB", Double(bytes) / 1_048_576)))
        }
    }

    /// Runs the measurements in an existing empty folder.
    package func run(in folder: URL) async throws -> Report {
        var report = Report()
        let library = SampleLibrary(assets: assets, owners: owners, seed: seed)
        let log = folder.appending(path: "log")
        try await fillStore(log, library, &report)
        let database = try AssetDatabase(at: folder.appending(path: "assets.sqlite").path)
        report.addTime("put all, SQLite", try milliseconds { try database.insert(library.all) })
        progress("filled")
        let store = try await openStore(log, "opening from a checkpoint", &report)
        try compare(store.view(AssetsView.self), database, library, &report)
        try measureState(store.view(AssetsView.self), &report)
        try await store.close()
        try FileManager.default.removeItem(at: log.appending(path: "checkpoints"))
        let folded = try await openStore(log, "opening without, all is folded", &report)
        guard folded.view(AssetsView.self).count == assets else {
            throw AssetReadsError("folding the log did not give \(assets) assets")
        }
        try await folded.close()
        report.addSize("memory of the process, at most", bytes: Memory.residentMax)
        return report
    }

    private func fillStore(
        _ log: URL, _ library: SampleLibrary, _ report: inout Report
    ) async throws {
        let store = try await OfflineStore.open(at: log, compaction: nil)
        let before = DispatchTime.now()
        for start in stride(from: 0, to: assets, by: Self.batch) {
            try await store.assets.putAll(
                (start..<min(start + Self.batch, assets)).map(library.asset))
        }
        report.addTime("put all, store", before.millisecondsUntilNow)
        try await store.close()
    }

    private func openStore(
        _ log: URL, _ name: String, _ report: inout Report
    ) async throws -> OfflineStore {
        let before = DispatchTime.now()
        let store = try await OfflineStore.open(at: log, compaction: nil)
        report.addTime(name, before.millisecondsUntilNow)
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
            let singleTimes = try measureBoth(round) {
                ids.map { view.asset(remoteId: $0) }
            } _: {
                try database.assets(remoteIds: ids)
            }
            single.store.append(singleTimes.store / Double(Self.lookups))
            single.database.append(singleTimes.database / Double(Self.lookups))

            let owner = library.owner(Int(random.next() % UInt64(owners)))
            let ownedTimes = try measureBoth(round) {
                Array(view.assets(ownedBy: owner))
            } _: {
                try database.assets(ownedBy: owner)
            }
            owned.rows = ownedTimes.rows
            owned.store.append(ownedTimes.store)
            owned.database.append(ownedTimes.database)

            let day = Int64(random.next() % UInt64(Self.days - 30))
            let first = Timestamp(milliseconds: Self.start + day * 86_400_000)
            let last = Timestamp(milliseconds: first.milliseconds + 30 * 86_400_000)
            let monthTimes = try measureBoth(round) {
                Array(view.assets(takenFrom: first, through: last))
            } _: {
                try database.assets(from: first, through: last)
            }
            month.rows = monthTimes.rows
            month.store.append(monthTimes.store)
            month.database.append(monthTimes.database)
        }
        report.reads = [single, owned, month]
    }

    /// Times a read in both and compares the results. Which of them is first alternates between rounds.
    private func measureBoth<Value: Collection & Equatable>(
        _ round: Int, _ store: () throws -> Value, _ database: () throws -> Value
    ) throws -> (store: Double, database: Double, rows: Int) {
        let (storeRead, databaseRead): ((Value, Double), (Value, Double))
        if round % 2 == 0 {
            storeRead = try timed(store)
            databaseRead = try timed(database)
        } else {
            databaseRead = try timed(database)
            storeRead = try timed(store)
        }
        guard storeRead.0 == databaseRead.0 else {
            throw AssetReadsError("the store and the database return different assets")
        }
        return (storeRead.1 * 1_000, databaseRead.1 * 1_000, storeRead.0.count)
    }

    // MARK: The state

    private func measureState(_ view: AssetsView, _ report: inout Report) throws {
        let (bytes, milliseconds) = try timed { try view.encodedState() ?? [] }
        report.addTime("encoding the state", milliseconds)
        report.addSize("bytes of the state", bytes: bytes.count)
        let (decoded, time) = try timed { try AssetsView(encodedState: bytes) }
        report.addTime("reading the state", time)
        // Several copies: the first may reuse freed memory, the others need new memory.
        let before = Memory.resident
        let copies = try (0..<Self.copies).map { _ in try AssetsView(encodedState: bytes) }
        let grown = (Memory.resident - before) / copies.count
        guard copies.allSatisfy({ $0.count == decoded.count }) else {
            throw AssetReadsError("a decoded state has another number of assets")
        }
        report.addSize("resident memory of the view", bytes: grown)
        let perAsset = grown / max(1, decoded.count)
        report.measurements.append(("resident memory for each asset", "\(perAsset) bytes"))
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

/// The error of a measurement with a wrong result.
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
