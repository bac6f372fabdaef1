// Applies batches of events to the tables of projections: the rows and the positions in one transaction.
// Spec/model/sql.md, SQL-2 and SQL-3.

import Daybook
import GRDB

/// The projections of one database.
struct ProjectionWriter: Sendable {
    let projections: [Projecting]
    let log: String
    let writer: String
    /// The writers of the tables of views, by the name of the projection.
    private let rowWriters: [String: RowWriter]

    init(_ projections: [Projecting], of store: EventStore) {
        self.projections = projections
        log = store.logID.text
        writer = store.incarnation.text
        var rowWriters: [String: RowWriter] = [:]
        for projection in projections {
            rowWriters[projection.name] = projection.follower?.writer(projection.name) {
                [store] id in try store.data(ofEvent: id)
            }
        }
        self.rowWriters = rowWriters
    }

    /// Creates the tables of a projection, and its record: it has applied nothing yet.
    func create(_ projection: Projecting, in db: Database) throws -> ProjectionRecord {
        let before = Set(try SchemaObject.all(in: db))
        try projection.create(in: db)
        let created = try SchemaObject.all(in: db).filter { !before.contains($0) }
        let record = ProjectionRecord(
            name: projection.name, version: projection.version, log: log, writer: writer,
            position: 0, retracted: [], objects: created)
        try record.insert(db, onConflict: .replace)
        try ParkedProjection.deleteAll(of: projection.name, in: db)
        return record
    }

    /// Applies a batch to the projections that are behind it, and writes their positions.
    ///
    /// - Parameters:
    ///   - known: the records as the caller knows them.
    ///   - changes: the changes of the tables of views, by name; nil to leave those tables, and their positions, as
    ///     they are.
    ///   - retracted: the retracted positions up to the batch's last one.
    ///   - isCareful: true to undo and park single events that fail; false to throw their errors, after which the
    ///     caller rolls back and applies the batch carefully.
    /// - Returns: the new records.
    /// - Throws: `RecordsMoved` if the database has other records, or lacks tables: another process has written,
    ///   or the file was replaced. `DatabaseError`.
    func apply(
        _ batch: LogBatch, to known: [String: ProjectionRecord], changes: [String: RowChange]?,
        retracted: [UInt64], isCareful: Bool, in db: Database
    ) throws -> [String: ProjectionRecord] {
        try write(batch, known, changes, retracted, in: db) { event, projection in
            if isCareful {
                try Self.applyOrPark(event, projection, in: db)
            } else {
                try projection.projection.apply(event, in: db)
            }
        }
    }

    /// Parks the event of a batch of one, and writes the positions.
    ///
    /// - Throws: as `apply`.
    func park(
        _ batch: LogBatch, _ error: any Error, records known: [String: ProjectionRecord],
        retracted: [UInt64], in db: Database
    ) throws -> [String: ProjectionRecord] {
        try write(batch, known, nil, retracted, in: db) { event, projection in
            try ParkedProjection(projection.name, event, error).insert(db, onConflict: .replace)
        }
    }

    /// Writes a change of a view's table, and the position of the state that the rows are from.
    ///
    /// - Throws: as `apply`.
    func move(
        _ projection: Projecting, from known: ProjectionRecord, to new: ProjectionRecord,
        _ change: RowChange, in db: Database
    ) throws {
        guard try ProjectionRecord.all(in: db)[known.name] == known else { throw RecordsMoved() }
        try rowWriters[projection.name]?.write(change, in: db)
        try new.update(db)
    }

    private func write(
        _ batch: LogBatch, _ known: [String: ProjectionRecord], _ changes: [String: RowChange]?,
        _ retracted: [UInt64], in db: Database, _ body: (Event, Projecting) throws -> Void
    ) throws -> [String: ProjectionRecord] {
        let stored = try ProjectionRecord.all(in: db)
        var records = known
        for projection in projections {
            guard var record = known[projection.name] else { throw RecordsMoved() }
            guard record.through < batch.last else { continue }
            guard stored[projection.name] == record else { throw RecordsMoved() }
            if let writer = rowWriters[projection.name] {
                guard let changes else { continue }
                if let change = changes[projection.name] { try writer.write(change, in: db) }
            } else {
                let through = record.through
                for event in batch.events
                where event.position > through && projection.wants(event.type) {
                    try body(event, projection)
                }
            }
            record.position = Int64(clamping: batch.last.rawValue)
            record.event = batch.lastID ?? record.event
            record.retracted = retracted
            try record.update(db)
            records[projection.name] = record
        }
        return records
    }

    /// Applies an event; if that fails, undoes its changes, and parks it.
    ///
    /// - Returns: true if it was applied.
    @discardableResult
    static func applyOrPark(
        _ event: Event, _ projection: Projecting, in db: Database
    ) throws -> Bool {
        do {
            try db.inSavepoint {
                try projection.projection.apply(event, in: db)
                return .commit
            }
            return true
        } catch {
            guard !error.isOfDatabase, db.isInsideTransaction else { throw error }
            // Without its tables, every event would fail.
            if let record = try ProjectionRecord.all(in: db)[projection.name],
                !Set(try SchemaObject.all(in: db)).isSuperset(of: record.objects)
            {
                throw RecordsMoved()
            }
            try ParkedProjection(projection.name, event, error).insert(db, onConflict: .replace)
            return false
        }
    }
}

/// The records in the database are not those that were last written.
struct RecordsMoved: Error {}

extension Error {
    /// True for an error of the database as a whole, after which no other event can be applied either: a full
    /// disk, a lock, a damaged file.
    var isOfDatabase: Bool {
        guard let error = self as? DatabaseError else {
            return self is RecordsMoved || self is CancellationError && Task.isCancelled
        }
        switch error.resultCode {
        case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_NOMEM, .SQLITE_READONLY, .SQLITE_INTERRUPT,
            .SQLITE_IOERR, .SQLITE_CORRUPT, .SQLITE_FULL, .SQLITE_CANTOPEN, .SQLITE_PROTOCOL,
            .SQLITE_NOTADB, .SQLITE_PERM, .SQLITE_NOLFS, .SQLITE_AUTH:
            return true
        default: return false
        }
    }
}
