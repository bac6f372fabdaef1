// A view of the store as a table, which follows it row by row. Spec/model/sql.md, SQL-8.

import Daybook
import EventSourcing
import GRDB

/// A table with the rows of a view of the store, indexed and searchable.
///
/// ```swift
/// struct RatingRows: ViewTable {
///     typealias View = CityRatings
///     static let indexes = [["cityId"]]
///     static let fullTextColumns = ["comment"]
/// }
/// ```
///
/// The table has the view's name and the columns `View.columns`; the keys of a `KeyedView` are its primary key.
/// Booleans are 0 and 1, times are ISO 8601 text in UTC, arrays and objects are JSON text. The rows are those of
/// the view, whatever happens to the log, so they need no `apply`.
public protocol ViewTable: SQLProjection {
    /// The view: one that the store was opened with, and that names its columns.
    associatedtype View: ListableView
    /// The columns of each index.
    static var indexes: [[String]] { get }
    /// The columns of the full-text index, an FTS5 table named `<view>_fts`; empty for none. Only for a
    /// `KeyedView`.
    static var fullTextColumns: [String] { get }
    /// The version of the table, to be raised when the view's columns, the indexes or the full-text index change.
    static var tableVersion: Int { get }
    /// Creates the projection, to be passed to `project(into:_:)`.
    init()
}

extension ViewTable {
    /// None.
    public static var indexes: [[String]] { [] }
    /// None.
    public static var fullTextColumns: [String] { [] }
    /// 1.
    public static var tableVersion: Int { 1 }

    /// The view's name.
    public static var name: String { View.name }
    /// The versions of view and table.
    public static var version: Int { View.version &* 1_000 &+ tableVersion }
    /// None: the view names its own.
    public static var events: [any EventPayload.Type] { [] }
    /// True: the view states which events it needs.
    public static var allowsCompaction: Bool { true }

    /// Creates the table and its indexes.
    ///
    /// - Throws: `EventError` (`refused`) for a view without names of columns; `DatabaseError`.
    public static func create(in db: Database) throws {
        guard !View.columns.isEmpty else {
            throw EventError(
                .refused,
                "the view \(View.name) does not name its columns; declare static let columns")
        }
        let table = name.quotedDatabaseIdentifier
        let keys = View.rowKeyNames
        var parts = View.columns.map {
            $0.quotedDatabaseIdentifier + (keys.contains($0) ? " ANY NOT NULL" : " ANY")
        }
        if !keys.isEmpty { parts.append("PRIMARY KEY (\(list(keys)))") }
        try db.execute(sql: "CREATE TABLE \(table) (\(parts.joined(separator: ", "))) STRICT")
        for columns in indexes {
            let index = ([name] + columns).joined(separator: "_").quotedDatabaseIdentifier
            try db.execute(sql: "CREATE INDEX \(index) ON \(table) (\(list(columns)))")
        }
        if !fullTextColumns.isEmpty { try createFullTextIndex(in: db) }
    }

    /// Does nothing: rows are written from the state of the view.
    public func apply(_ event: Event, in db: Database) throws {}

    private static func createFullTextIndex(in db: Database) throws {
        let (table, index) = (
            name.quotedDatabaseIdentifier, "\(name)_fts".quotedDatabaseIdentifier
        )
        let columns = list(fullTextColumns)
        func values(_ row: String) -> String {
            fullTextColumns.map { "\(row).\($0.quotedDatabaseIdentifier)" }
                .joined(separator: ", ")
        }
        let insertion =
            "INSERT INTO \(index)(rowid, \(columns)) VALUES (new.rowid, \(values("new")));"
        let deletion =
            "INSERT INTO \(index)(\(index), rowid, \(columns)) "
            + "VALUES ('delete', old.rowid, \(values("old")));"
        func trigger(_ kind: String, on change: String, _ body: String) -> String {
            "CREATE TRIGGER \("\(name)_fts_\(kind)".quotedDatabaseIdentifier) AFTER \(change) ON "
                + "\(table) BEGIN \(body) END;"
        }
        try db.execute(
            sql: """
                CREATE VIRTUAL TABLE \(index) USING fts5(
                    \(columns), content=\(table), tokenize='unicode61 remove_diacritics 2');
                \(trigger("insert", on: "INSERT", insertion))
                \(trigger("delete", on: "DELETE", deletion))
                \(trigger("update", on: "UPDATE OF \(columns)", deletion + insertion))
                """)
    }

    private static func list(_ names: [String]) -> String {
        names.map(\.quotedDatabaseIdentifier).joined(separator: ", ")
    }

    /// The follower of the view, before its state is known.
    var follower: any ViewFollowing { ViewFollower<View>() }
}
