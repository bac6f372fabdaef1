// The usual alternative: one table of events in SQLite, through GRDB, with the same durability as Daybook.

import DaybookOffline
import Foundation
import GRDB

/// Events in a SQLite database.
struct SQLitePeer {
    let queue: DatabaseQueue

    /// Sets WAL and `synchronous=FULL`, so that a commit that has returned is on the disk, and reads both
    /// back. Creates the table with its unique index on the id.
    init(in folder: URL) throws {
        queue = try DatabaseQueue(path: folder.appending(path: "events.sqlite").path)
        try queue.inDatabase { db in
            try db.execute(sql: "PRAGMA journal_mode = WAL")
            try db.execute(sql: "PRAGMA synchronous = FULL")
            guard try String.fetchOne(db, sql: "PRAGMA journal_mode") == "wal",
                try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2
            else { throw RaceFailure("SQLite refuses journal_mode=WAL, synchronous=FULL") }
        }
        try queue.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE events (
                        position INTEGER PRIMARY KEY, id BLOB NOT NULL, line BLOB NOT NULL);
                    CREATE UNIQUE INDEX events_id ON events (id);
                    """)
        }
    }

    /// Records events in one transaction.
    func append(_ events: some Sequence<(id: Data, line: Data)>) throws {
        try queue.write { db in
            let statement = try db.cachedStatement(
                sql: "INSERT INTO events (id, line) VALUES (?, ?)")
            for event in events { try statement.execute(arguments: [event.id, event.line]) }
        }
    }

    /// Moves the WAL into the database file, so that the file's size is the total.
    func checkpoint() throws {
        try queue.inDatabase { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
    }

    /// Encodes the rows to insert.
    static func rows(_ drafts: [EventDraft]) -> [(id: Data, line: Data)] {
        zip(drafts, Input.lines(drafts)).map { draft, line in
            (withUnsafeBytes(of: draft.id.uuid) { Data($0) }, Data(line.dropLast()))
        }
    }
}
