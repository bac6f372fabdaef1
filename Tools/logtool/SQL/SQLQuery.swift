// A connection of SQLite to an empty database in memory, whose tables are those of a log. Reads only, whatever
// the statement. Spec/operations/logtool.md, TOOL-52.

import DaybookOffline
import Foundation
import GRDBSQLite

/// The reason for which SQLite refuses a statement.
struct SQLError: Error, CustomStringConvertible {
    var description: String
    /// True if the disk or the memory is full, and not the statement wrong.
    var isOfSystem = false
}

/// A value of a column.
enum SQLValue {
    case null
    case integer(Int64)
    case real(Double)
    case text([UInt8])
    case blob([UInt8])
}

/// A connection with the tables of a log.
final class SQLQuery {
    private let connection: OpaquePointer
    private let limits: SQLLimits

    /// Opens the connection.
    ///
    /// - Throws: `SQLError`.
    init(_ tables: [SQLTable], _ limits: SQLLimits = SQLLimits()) throws {
        self.limits = limits
        guard let files = SQLTemporaryFiles.name else {
            throw SQLError(description: "SQLite has no memory", isOfSystem: true)
        }
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(
            ":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, files)
        guard let opened else { throw SQLError(description: "SQLite has no memory") }
        connection = opened
        guard code == SQLITE_OK else { throw lastError() }
        limits.apply(to: connection)
        for table in tables { try SQLTableModule.register(table, in: connection) }
        // Connected before the authorizer refuses it.
        sqlite3_exec(connection, "SELECT 1 FROM json_each('[]'), json_tree('[]')", nil, nil, nil)
        sqlite3_set_authorizer(
            connection,
            { _, action, _, function, _, _ in
                switch action {
                case SQLITE_SELECT, SQLITE_READ, SQLITE_RECURSIVE: return SQLITE_OK
                case SQLITE_FUNCTION:
                    let name = function.map { String(cString: $0).lowercased() }
                    let isRefused = name == "load_extension" || name == "fts3_tokenizer"
                    return isRefused ? SQLITE_DENY : SQLITE_OK
                default: return SQLTableModule.isDeclaring ? SQLITE_OK : SQLITE_DENY
                }
            }, nil)
    }

    deinit { sqlite3_close_v2(connection) }

    /// True if a text ends with a whole statement and its semicolon.
    static func isComplete(_ sql: String) -> Bool { sqlite3_complete(sql) != 0 }

    /// Runs statements, one after the other, within the limits.
    ///
    /// - Parameters:
    ///   - begin: called with the names of the columns of each statement that has some, before its rows.
    ///   - row: called with the values of each row.
    /// - Throws: `SQLError`, and what reading the log throws.
    func run(
        _ sql: String, begin: ([String]) throws -> Void, row: ([SQLValue]) throws -> Void
    ) throws {
        guard !sql.utf8.contains(0) else {
            throw SQLError(description: "the statements contain a NUL character")
        }
        let bytes = Array(sql.utf8CString)
        limits.begin()
        defer { limits.finish() }
        try bytes.withUnsafeBufferPointer { buffer in
            var rest = buffer.baseAddress
            while let start = rest, start.pointee != 0 {
                var statement: OpaquePointer?
                guard sqlite3_prepare_v2(connection, start, -1, &statement, &rest) == SQLITE_OK
                else { throw lastError() }
                // Only a comment or white space.
                guard let statement else { continue }
                defer { sqlite3_finalize(statement) }
                try step(statement, begin, row)
            }
        }
    }

    private func step(
        _ statement: OpaquePointer, _ begin: ([String]) throws -> Void,
        _ row: ([SQLValue]) throws -> Void
    ) throws {
        guard sqlite3_stmt_readonly(statement) != 0 else { throw Self.onlyReads }
        let count = sqlite3_column_count(statement)
        guard count > 0 else { return }
        try begin(
            (0..<count).map { sqlite3_column_name(statement, $0).map { String(cString: $0) } ?? "" }
        )
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW:
                try limits.checkRow(bytes: Self.byteCount(statement, count))
                try row((0..<count).map { Self.value(statement, $0) })
            case SQLITE_DONE: return
            default:
                let error = SQLTableModule.takeError()
                // First the limits: a table's error may be their consequence.
                throw limits.error(sqlite3_errcode(connection)) ?? error ?? lastError()
            }
        }
    }

    /// The bytes of the texts and blobs of a row.
    private static func byteCount(_ statement: OpaquePointer, _ count: Int32) -> Int {
        (0..<count).reduce(0) { sum, column in
            switch sqlite3_column_type(statement, column) {
            case SQLITE_TEXT, SQLITE_BLOB: sum + Int(sqlite3_column_bytes(statement, column))
            default: sum
            }
        }
    }

    private static func value(_ statement: OpaquePointer, _ column: Int32) -> SQLValue {
        func bytes(_ start: UnsafeRawPointer?) -> [UInt8] {
            Array(
                UnsafeRawBufferPointer(
                    start: start, count: Int(sqlite3_column_bytes(statement, column))))
        }
        switch sqlite3_column_type(statement, column) {
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(statement, column))
        case SQLITE_FLOAT: return .real(sqlite3_column_double(statement, column))
        case SQLITE_TEXT:
            let text = sqlite3_column_text(statement, column)
            return .text(bytes(text.map { UnsafeRawPointer($0) }))
        case SQLITE_BLOB: return .blob(bytes(sqlite3_column_blob(statement, column)))
        default: return .null
        }
    }

    private static let onlyReads = SQLError(
        description: "the statement is refused: only select, with and values can be used on a log")

    private func lastError() -> any Error {
        let message = String(cString: sqlite3_errmsg(connection))
        if message == "not authorized" { return Self.onlyReads }
        let code = sqlite3_errcode(connection)
        if let error = limits.error(code) { return error }
        let isOfSystem = [SQLITE_FULL, SQLITE_IOERR, SQLITE_NOMEM, SQLITE_CANTOPEN].contains(code)
        return SQLError(description: message, isOfSystem: isOfSystem)
    }
}
