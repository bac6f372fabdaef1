// Brings the tables of projections to the end of a log, batch by batch. The next batch is read while the last one
// is written. Spec/model/sql.md, SQL-3.

import Daybook
import GRDB

/// The projections of one database on their way to the end of a log.
struct CatchUp: Sendable {
    private let store: EventStore
    private let database: any DatabaseWriter
    private let writer: ProjectionWriter
    private let types: Set<String>?
    private var reader: LogBatchReader
    /// The batch that was read while the last one was written.
    private var next: LogBatch?
    /// The number of events in a batch. It adapts, so that a transaction takes about 50 ms: readers of the
    /// database and the app's own transactions wait no longer, and observers are notified as rarely.
    private var count = 256
    /// The projections' records, as the database has them.
    private(set) var records: [String: ProjectionRecord]
    /// The states of views, by the name of their projection; empty before the first step.
    private var followers: [String: any ViewFollowing] = [:]
    /// The last position that all projections include. It may be greater than the recorded ones, if the events in
    /// between are of other types.
    private(set) var through: Position

    /// The greatest number of positions between the recorded and the actual one.
    private static let unrecordedMax: UInt64 = 65_536
    /// The greatest last position of a log whose new tables are filled in the app's database. A longer log is read
    /// into a file beside it. Not below `unrecordedMax`: a build that passes over all events must record a position,
    /// or it would be repeated.
    static let shortLogMax = unrecordedMax
    private static let countRange = 64...16_384

    init(
        _ store: EventStore, _ database: any DatabaseWriter, _ writer: ProjectionWriter,
        _ records: [String: ProjectionRecord]
    ) {
        self.store = store
        self.database = database
        self.writer = writer
        self.records = records
        types = writer.projections.reduce(into: []) { types, projection in
            types = projection.types.flatMap { types?.union($0) }
        }
        through = records.values.map(\.through).min() ?? .zero
        reader = LogBatchReader(store, after: through, types: types)
    }

    /// The projections whose rows include an event that is retracted, or leave out one that is not.
    ///
    /// - Parameter retracted: all retracted positions.
    /// - Throws: `LogError`.
    func staleProjections(_ retracted: [Position]) async throws -> [Projecting] {
        var stale: [Projecting] = []
        for projection in writer.projections {
            guard let record = records[projection.name] else { continue }
            if try await record.isStale(retracted, projection, store) { stale.append(projection) }
        }
        return stale
    }

    /// Applies the next batch.
    ///
    /// - Parameters:
    ///   - end: the last durable position.
    ///   - retracted: all retracted positions at that moment. No projection is stale.
    /// - Returns: false at the end; true if the caller must look for stale projections and call again.
    /// - Throws: `RecordsMoved`, `DatabaseError`, `LogError`. The next call applies the same events again.
    mutating func advance(through end: Position, retracted: [Position]) async throws -> Bool {
        guard try await copyStates() else { return true }
        if next == nil {
            (reader, next) = try await Self.read(reader, through: end, count)
        }
        guard var batch = next else { return false }
        // Also if all of its events are retracted, so that a reinstatement is detected.
        let hasWantedEvents = !batch.events.isEmpty
        batch.events.removeAll { retracted.contains($0.position) }
        let passedOver = retracted.prefix { $0 <= batch.last }.map(\.rawValue)
        let isWritten =
            hasWantedEvents
            || records.values.contains {
                batch.last.rawValue - min($0.through, batch.last).rawValue > Self.unrecordedMax
            }
        guard isWritten else {
            through = batch.last
            next = nil
            return true
        }
        async let read = Self.read(reader, through: end, count)
        let began = ContinuousClock.now
        do {
            let (advanced, changes) = advancedFollowers(batch)
            records = try await write(batch, changes, retracted: passedOver)
            followers = advanced
        } catch {
            _ = try? await read
            throw error
        }
        adapt(to: ContinuousClock.now - began, batch)
        through = batch.last
        // What was read of the log is applied before an error of the rest is reported.
        next = nil
        (reader, next) = try await read
        return true
    }

    /// Copies the states of the views, once, and brings their tables to them, so that no row is ever newer than the
    /// recorded position. The states may be after the events that other projections have still to apply.
    ///
    /// - Returns: false if an event that a table includes was retracted since the caller has read the retracted
    ///   positions, or one that it leaves out reinstated: only some rows would be written, and the new record would
    ///   hide the wrong ones.
    private mutating func copyStates() async throws -> Bool {
        var isChanged = false
        for projection in writer.projections where followers[projection.name] == nil {
            guard var follower = projection.follower, let known = records[projection.name] else {
                continue
            }
            try await follower.copyState(of: store)
            guard try await !known.isStale(follower.retracted, projection, store) else {
                return false
            }
            if follower.last > known.through {
                let change = try await change(of: projection, follower, after: known.through)
                var new = known
                new.position = Int64(clamping: follower.last.rawValue)
                new.event = try await store.event(at: follower.last)?.id.text
                new.retracted = follower.retracted.map(\.rawValue)
                let (writer, present) = (writer, new)
                try await database.write { db in
                    try writer.move(projection, from: known, to: present, change, in: db)
                }
                records[projection.name] = new
                isChanged = true
            }
            followers[projection.name] = follower
        }
        guard isChanged else { return true }
        through = records.values.map(\.through).min() ?? .zero
        reader = LogBatchReader(store, after: through, types: types)
        next = nil
        return true
    }

    /// The change that brings a table from a position to a copied state: the rows that the events in between name,
    /// retracted ones included, or all rows.
    private func change(
        of projection: Projecting, _ follower: any ViewFollowing, after position: Position
    ) async throws -> RowChange {
        guard position > .zero else { return follower.allRows }
        var reader = LogBatchReader(store, after: position, types: projection.types)
        var keys: RowKeys? = RowKeys()
        while keys != nil {
            let batch: LogBatch?
            (reader, batch) = try await Self.read(
                reader, through: follower.last, Self.countRange.upperBound)
            guard let batch else { break }
            for event in batch.events { follower.addKeys(changedBy: event, to: &keys) }
        }
        return follower.change(of: keys)
    }

    /// The states after a batch, and the changes of their tables.
    private func advancedFollowers(
        _ batch: LogBatch
    ) -> ([String: any ViewFollowing], [String: RowChange]) {
        var (advanced, changes) = (followers, [String: RowChange]())
        for projection in writer.projections {
            guard let record = records[projection.name], record.through < batch.last else {
                continue
            }
            let through = record.through
            let events = batch.events.filter {
                $0.position > through && projection.wants($0.type)
            }
            changes[projection.name] = advanced[projection.name]?.advance(events, to: batch.last)
        }
        return (advanced, changes)
    }

    private mutating func adapt(to duration: Duration, _ batch: LogBatch) {
        guard batch.events.count >= count / 2 else { return }
        if duration < .milliseconds(25) { count = min(count * 2, Self.countRange.upperBound) }
        if duration > .milliseconds(100) { count = max(count / 2, Self.countRange.lowerBound) }
    }

    private static func read(
        _ reader: LogBatchReader, through end: Position, _ count: Int
    ) async throws -> (LogBatchReader, LogBatch?) {
        try await BlockingWork.run {
            var reader = reader
            let batch = try reader.next(through: end, count: count)
            return (reader, batch)
        }
    }

    private func write(
        _ batch: LogBatch, _ changes: [String: RowChange], retracted: [UInt64]
    ) async throws -> [String: ProjectionRecord] {
        let (writer, records) = (writer, records)
        func write(isCareful: Bool) async throws -> [String: ProjectionRecord] {
            try await database.write { db in
                try writer.apply(
                    batch, to: records, changes: changes, retracted: retracted,
                    isCareful: isCareful, in: db)
            }
        }
        // Savepoints around each event cost time, and hardly any event fails.
        do { return try await write(isCareful: false) } catch  where !error.isOfDatabase {}
        do { return try await write(isCareful: true) } catch  where !error.isOfDatabase {}
        return try await writeOneByOne(batch, changes, retracted: retracted)
    }

    /// Applies a batch with an event that ends the transaction itself, or that the commit refuses, as a deferred
    /// foreign key does: with one transaction for each event.
    private func writeOneByOne(
        _ batch: LogBatch, _ changes: [String: RowChange], retracted: [UInt64]
    ) async throws -> [String: ProjectionRecord] {
        let writer = writer
        var records = records
        let singles = batch.events.map {
            LogBatch(events: [$0], last: $0.position, lastID: $0.id.text)
        }
        let remaining = LogBatch(last: batch.last, lastID: batch.lastID)
        for (index, single) in (singles + [remaining]).enumerated() {
            let known = records
            // The tables of views get the changes of the batch, and not of its parts.
            let changes = index == singles.count ? changes : nil
            let passedOver = retracted.filter { $0 <= single.last.rawValue }
            do {
                records = try await database.write { db in
                    try writer.apply(
                        single, to: known, changes: changes, retracted: passedOver,
                        isCareful: true, in: db)
                }
            } catch  where !error.isOfDatabase && !single.events.isEmpty {
                records = try await database.write { db in
                    try writer.park(
                        single, error, records: known, retracted: passedOver, in: db)
                }
            }
        }
        return records
    }
}

extension ProjectionRecord {
    /// True if other events of the projection are retracted than those that its rows leave out.
    ///
    /// - Parameter retracted: all retracted positions.
    /// - Throws: `LogError`.
    func isStale(
        _ retracted: [Position], _ projection: Projecting, _ store: EventStore
    ) async throws -> Bool {
        let present = retracted.prefix { $0 <= through }.map(\.rawValue)
        guard present != self.retracted else { return false }
        for position in Set(present).symmetricDifference(self.retracted) {
            guard let event = try await store.event(at: Position(position)) else { return true }
            if projection.wants(store.catalogue.newestForm(of: event).type) { return true }
        }
        return false
    }
}
