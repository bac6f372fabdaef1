// The state of a view that the table's rows are written from: a copy of the store's, which follows the durable
// events by itself, since the store's state also has relaxed events. Spec/model/sql.md, SQL-8.

import Daybook
import EventSourcing
import Foundation
import GRDB

/// The state of a view at a durable position.
protocol ViewFollowing: Sendable {
    /// The types of the events that the view folds; nil for all.
    var types: Set<String>? { get }
    /// The last position that the state includes.
    var last: Position { get }
    /// The positions that were retracted when the state was copied.
    var retracted: [Position] { get }
    /// All rows of the state.
    var allRows: RowChange { get }

    /// True if a store has the view.
    func isView(of store: EventStore) -> Bool
    /// A number that differs if the view is folded under other rules.
    func fingerprint(of catalogue: EventCatalogue) -> Int
    /// The writer of the table's rows.
    ///
    /// - Parameter data: returns the data of an event.
    func writer(
        _ table: String, _ data: @escaping @Sendable (UUID) throws -> [UInt8]?
    ) -> RowWriter
    /// Copies the store's state. Commits relaxed events.
    mutating func copyState(of store: EventStore) async throws
    /// Adds the keys of the rows that an event changes; sets nil if any row may change.
    func addKeys(changedBy event: Event, to keys: inout RowKeys?)
    /// The present rows of some keys; all rows for nil.
    func change(of keys: RowKeys?) -> RowChange
    /// Applies events after `last`, ascending.
    ///
    /// - Returns: the change of the rows.
    mutating func advance(_ events: [Event], to last: Position) -> RowChange
}

/// Keys of rows, each once, in the order of their events. Compared byte by byte, as SQLite does.
struct RowKeys: Sendable {
    private(set) var all: [[String]] = []
    private var known: Set<[EntityID]> = []

    mutating func insert(_ key: [String]) {
        if known.insert(key.map { EntityID($0) }).inserted { all.append(key) }
    }
}

/// The change of a table.
enum RowChange: Sendable {
    /// No row has changed.
    case none
    /// All rows.
    case all(ViewRows)
    /// The rows of some keys, in the order of their events; nil if the row was removed.
    case some([(key: [String], row: ViewRow?)])
}

extension ListableView {
    /// The columns of the primary key; empty if the rows have no keys.
    static var rowKeyNames: [String] { (Self.self as? any KeyedView.Type)?.keyNames ?? [] }
}

/// The state of one view, which follows the durable events of a store.
struct ViewFollower<View: ListableView>: ViewFollowing {
    private(set) var last = Position.zero
    private(set) var retracted: [Position] = []
    private var view = View()

    var types: Set<String>? { View.eventTypes }
    var allRows: RowChange { .all(view.rows()) }

    func isView(of store: EventStore) -> Bool { store.has(View.self) }

    func fingerprint(of catalogue: EventCatalogue) -> Int {
        Int(truncatingIfNeeded: catalogue.fingerprint(includingRules: View.dependsOnRules))
    }

    func writer(
        _ table: String, _ data: @escaping @Sendable (UUID) throws -> [UInt8]?
    ) -> RowWriter {
        RowWriter(table: table, columns: View.columns, keyNames: View.rowKeyNames, data: data)
    }

    mutating func copyState(of store: EventStore) async throws {
        (view, last, retracted) = try await store.durableView(View.self)
    }

    func addKeys(changedBy event: Event, to keys: inout RowKeys?) {
        guard !View.rowKeyNames.isEmpty,
            let changed = (view as? any KeyedView)?.rowKeys(changedBy: event)
        else { return keys = nil }
        for key in changed { keys?.insert(key) }
    }

    func change(of keys: RowKeys?) -> RowChange {
        guard let keys = keys?.all, let view = view as? any KeyedView else { return allRows }
        return keys.isEmpty ? .none : .some(Array(zip(keys, view.rows(keys: keys))))
    }

    mutating func advance(_ events: [Event], to last: Position) -> RowChange {
        var keys: RowKeys? = RowKeys()
        for event in events {
            addKeys(changedBy: event, to: &keys)
            view.fold(event)
        }
        self.last = last
        return events.isEmpty ? .none : change(of: keys)
    }
}

/// Writes changes of rows to the table of a view.
struct RowWriter: Sendable {
    let table: String
    let columns: [String]
    let keyNames: [String]
    /// Returns the data of an event: some values of a row are only there.
    let data: @Sendable (UUID) throws -> [UInt8]?

    /// - Throws: `DatabaseError`, `LogError`.
    func write(_ change: RowChange, in db: Database) throws {
        switch change {
        case .none: break
        case .all(let rows):
            try db.execute(sql: "DELETE FROM \(table.quotedDatabaseIdentifier)")
            let insertion = try insertion(in: db)
            for row in rows { try insertion.execute(arguments: values(of: row)) }
        case .some(let rows):
            let insertion = try insertion(in: db)
            let condition = keyNames.map { "\($0.quotedDatabaseIdentifier) = ?" }
                .joined(separator: " AND ")
            let deletion = try db.cachedStatement(
                sql: "DELETE FROM \(table.quotedDatabaseIdentifier) WHERE \(condition)")
            for (key, row) in rows {
                if let row {
                    try insertion.execute(arguments: values(of: row))
                } else {
                    try deletion.execute(arguments: StatementArguments(key))
                }
            }
        }
    }

    private func insertion(in db: Database) throws -> Statement {
        let names = columns.map(\.quotedDatabaseIdentifier)
        let keys = keyNames.map(\.quotedDatabaseIdentifier)
        var sql = """
            INSERT INTO \(table.quotedDatabaseIdentifier)(\(names.joined(separator: ", ")))
            VALUES (\(names.map { _ in "?" }.joined(separator: ", ")))
            """
        let others = names.filter { !keys.contains($0) }
        if !keys.isEmpty {
            // The row keeps its rowid.
            sql += " ON CONFLICT(\(keys.joined(separator: ", "))) DO "
            sql +=
                others.isEmpty
                ? "NOTHING"
                : "UPDATE SET " + others.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
        }
        return try db.cachedStatement(sql: sql)
    }

    private func values(of row: ViewRow) throws -> StatementArguments {
        let fields = try row.filled(by: data).fields
        return StatementArguments(
            columns.enumerated().map { index, name in
                // Most rows have all fields, in order.
                let field =
                    index < fields.count && fields[index].name == name
                    ? fields[index] : fields.first { $0.name == name }
                return field?.scalar.databaseValue ?? .null
            })
    }
}

extension ScalarValue {
    fileprivate var databaseValue: DatabaseValue {
        switch self {
        case .null: .null
        case .integer(let value): value.databaseValue
        case .real(let value): value.databaseValue
        case .text(let value): value.databaseValue
        }
    }
}
