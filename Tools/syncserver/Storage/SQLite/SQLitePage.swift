// Reads one page of an account's events from a snapshot of the database.
// Spec/protocol/sync-protocol.md, SYNC-30 to SYNC-36.

import Foundation
import GRDB

/// A reader of pages in one order.
struct SQLitePage {
    private let db: Database
    private let account: Int64?
    private let lastSerial: Int64
    private let source: UUID?

    /// Reads in the server's order, or, with a source, in the order of that source.
    init(_ db: Database, account: String, source: UUID?) throws {
        self.db = db
        self.source = source
        let row = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT number, last_serial FROM account WHERE name = ?"),
            arguments: [account])
        self.account = row?[0]
        lastSerial = row?[1] ?? 0
    }

    /// Reads the page after a cursor.
    func read(after cursor: EventCursor, limit: Int) throws -> ServedPage {
        var page = ServedPage(after: cursor)
        guard let account else {
            page.setRemaining(until: 0)
            return page
        }
        let rows: RowCursor
        switch cursor {
        case .serial(let serial):
            precondition(source == nil, "a cursor belongs to its order")
            rows = try Row.fetchCursor(
                db.cachedStatement(
                    sql: """
                        SELECT line, serial, sequence FROM event
                        WHERE account = ? AND serial > ? ORDER BY serial LIMIT ?
                        """),
                arguments: [account, serial, limit])
        case .sequence(let sequence, let serial):
            guard let source else { preconditionFailure("a cursor belongs to its order") }
            rows = try Row.fetchCursor(
                db.cachedStatement(
                    sql: """
                        SELECT line, serial, sequence FROM event
                        WHERE account = ? AND source = ? AND (sequence, serial) > (?, ?)
                        ORDER BY sequence, serial LIMIT ?
                        """),
                arguments: [account, source, sequence, serial, limit])
        }
        while !page.isFull(limit: limit), let row = try rows.next() {
            let line: Data = row[0]
            page.append(
                [UInt8](line),
                source == nil ? .serial(row[1]) : .sequence(row[2], serial: row[1]))
        }
        page.setRemaining(until: lastSerial)
        return page
    }
}
