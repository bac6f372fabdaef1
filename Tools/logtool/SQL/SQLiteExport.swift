// Writes the tables of logtool sql as a database of SQLite, which other programs can open.
// Spec/operations/logtool.md, TOOL-53.

import DaybookOffline
import Foundation
import GRDBSQLite
import LogStorage

/// A database file that is being written.
final class SQLiteExport {
    private let connection: OpaquePointer
    private let path: String

    /// Opens a database in an empty file. The file has no journal: it counts only once it is complete, and the
    /// caller syncs it.
    ///
    /// - Parameter path: the path that errors name.
    init(_ file: String, namedInErrors path: String) throws {
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(
            file, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil)
        guard let opened else { throw SQLError(description: "SQLite has no memory") }
        connection = opened
        self.path = path
        guard code == SQLITE_OK else { throw error() }
        // Called in the task that runs the statement.
        sqlite3_progress_handler(connection, 10_000, { _ in Task.isCancelled ? 1 : 0 }, nil)
        try run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN")
    }

    deinit { sqlite3_close_v2(connection) }

    /// Writes a table with its rows.
    ///
    /// - Parameters:
    ///   - columns: the names of the columns to write.
    ///   - declarations: the columns as in CREATE TABLE.
    ///   - indexes: the indexed columns, and whether their values are unique.
    func write(
        _ table: SQLTable, columns: [String], declarations: [String],
        indexes: [(column: String, isUnique: Bool)]
    ) throws {
        let source = "log_\(table.name)"
        try SQLTableModule.register(table, as: source, in: connection)
        let list = columns.map { "\"\($0)\"" }.joined(separator: ", ")
        try run("CREATE TABLE \"\(table.name)\" (\(declarations.joined(separator: ", ")))")
        try run("INSERT INTO \"\(table.name)\" SELECT \(list) FROM \"\(source)\"")
        // After the rows: SQLite then sorts the keys instead of inserting them at random pages.
        for (column, isUnique) in indexes {
            try run(
                "CREATE \(isUnique ? "UNIQUE " : "")INDEX \"\(table.name)_\(column)\" "
                    + "ON \"\(table.name)\" (\"\(column)\")")
        }
    }

    /// Writes what is in memory to the file.
    func finish() throws { try run("COMMIT") }

    private func run(_ sql: String) throws {
        guard sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else { throw error() }
    }

    private func error() -> any Error {
        if let error = SQLTableModule.takeError() { return error }
        let message = String(cString: sqlite3_errmsg(connection))
        switch sqlite3_errcode(connection) {
        case SQLITE_INTERRUPT: return CancellationError()
        case SQLITE_FULL: return LogError(.diskFull, path: path, message)
        default: return LogError(.io, path: path, message)
        }
    }
}

extension LogTables {
    /// Writes all tables, as they are at the end of the log.
    ///
    /// - Returns: the last position, and the number of tables.
    static func write(
        to database: SQLiteExport, _ reader: LogReader, _ progress: Progress
    ) throws -> (last: Position, tables: Int) {
        let (last, tables) = try folded(reader, progress)
        try database.write(
            EventsTable(reader, through: last), columns: EventsTable.Column.stored.map { "\($0)" },
            declarations: EventsTable.Column.stored.map(\.storedDeclaration),
            indexes: [("id", true), ("type", false), ("subject", false), ("time", false)])
        // Again, because a compaction may have run while the events were read.
        try EventData.refuseCompacted(last.rawValue, reader)
        for table in tables {
            try database.write(
                table, columns: table.columns, declarations: table.columns.map { "\"\($0)\"" },
                indexes: [(table.columns[0], false)])
        }
        return (last, 1 + tables.count)
    }

    /// The tables except `events`. One fold computes them all, so that they agree while a writer appends.
    private static func folded(
        _ reader: LogReader, _ progress: Progress
    ) throws -> (last: Position, tables: [RowsTable]) {
        let catalogue = reader.modelCatalogue
        let (views, outcome) = try reader.fold(
            catalogue: catalogue, from: { LogTables.views.map { $0.init() as any ListableView } }
        ) { views, event in
            try Task.checkCancellation()
            let event = catalogue.newestForm(of: event)
            for index in views.indices where type(of: views[index]).folds(event.type) {
                views[index].fold(event)
            }
            progress.update(Int(clamping: event.position.rawValue))
        }
        try EventData.refuseCompacted(outcome.last.rawValue, reader)
        if let tail = outcome.tornTail { Message.note(Message.text(for: tail)) }
        let segments = ViewRows(try segments(reader, through: outcome.last))
        var tables = [
            RowsTable("segments", columns: segmentColumns) { PortionedRows(segments, reader) }
        ]
        for view in views {
            let rows = view.rows()
            let type = type(of: view)
            tables.append(
                RowsTable(type.name, columns: type.columns) { PortionedRows(rows, reader) })
        }
        return (outcome.last, tables)
    }
}

extension EventsTable.Column {
    /// The columns that are written to a file: all but the hidden one.
    fileprivate static var stored: [Self] { allCases.filter { $0 != .line } }

    fileprivate var storedDeclaration: String {
        switch self {
        case .position: "position INTEGER PRIMARY KEY"
        case .sequence, .own, .bytes: "\(self) INTEGER NOT NULL"
        case .subject, .data, .baseid, .causationid: "\(self) TEXT"
        default: "\(self) TEXT NOT NULL"
        }
    }
}
