// A table of SQLite whose rows a program computes: https://sqlite.org/vtab.html. The module exists under the name of
// the table and needs no CREATE (an eponymous-only virtual table).

import Foundation
import GRDBSQLite

/// A table that can be read. A class, as are its rows: SQLite calls them a million times a second.
class SQLTable {
    let name: String
    /// The columns as in CREATE TABLE.
    let declaration: String

    init(name: String, declaration: String) {
        self.name = name
        self.declaration = declaration
    }

    /// What a read within bounds costs, by which SQLite chooses the order of a join.
    func cost(within bounds: [SQLBound]) -> SQLCost { SQLCost(lines: 1_000, rows: 1_000) }

    /// True if `rows(within:isSorted:)` uses a bound.
    func uses(_ bound: SQLBound) -> Bool { false }

    /// True if the rows are read in ascending order of a column.
    func isSorted(byColumn column: Int) -> Bool { false }

    /// True if the rows can be sorted by a column when no other column is used.
    func canSort(byColumn column: Int) -> Bool { false }

    /// The rows, before the first one. They may include some that are outside the bounds.
    ///
    /// - Parameter isSorted: true if they have to be sorted by the only column that is used.
    func rows(within bounds: [(SQLBound, SQLValue)], isSorted: Bool) throws -> SQLRows {
        SQLRows()
    }
}

/// The rows of a table, one after the other; none here.
class SQLRows {
    /// Moves to the next row.
    ///
    /// - Returns: false after the last one.
    func next() throws -> Bool { false }

    /// The identity of the present row: the same in every read of the table.
    var rowID: Int64 { 0 }

    /// Passes the value of a column of the present row to SQLite; `NULL` if it writes none.
    func write(_ column: Int, to result: SQLResult) throws {}
}

/// A comparison of a column.
struct SQLBound: Hashable {
    enum Comparison: UInt8 {
        case equal, greater, greaterOrEqual, less, lessOrEqual
    }

    var column: Int
    var comparison: Comparison
}

/// The estimated cost of a read.
struct SQLCost {
    /// The number of rows that are read.
    var lines: Double
    /// The number of those that are within the bounds.
    var rows: Int64
    /// True if there is at most one.
    var isUnique = false
}

/// The destination of a value for SQLite.
struct SQLResult {
    fileprivate let context: OpaquePointer?

    func write(integer value: Int64) { sqlite3_result_int64(context, value) }
    func write(real value: Double) { sqlite3_result_double(context, value) }
    func write(_ text: String) { write(text: Array(text.utf8).span.bytes) }

    func write(text: RawSpan) {
        text.withUnsafeBytes { bytes in
            let start = bytes.bindMemory(to: CChar.self).baseAddress
            // An empty span has no address, which would mean NULL.
            sqlite3_result_text64(
                context, start ?? Self.empty, UInt64(bytes.count), Self.transient,
                UInt8(SQLITE_UTF8))
        }
    }

    /// A destructor that makes SQLite copy the bytes.
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    nonisolated(unsafe) private static let empty: UnsafePointer<CChar> = {
        let start = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
        start.pointee = 0
        return UnsafePointer(start)
    }()
}

/// The functions that SQLite calls.
enum SQLTableModule {
    private struct Table {
        var base = sqlite3_vtab()
        var table: Unmanaged<SQLTable>
    }

    private struct Cursor {
        var base = sqlite3_vtab_cursor()
        var rows: Unmanaged<SQLRows>?
        var isAtEnd = true

        mutating func advance() throws {
            isAtEnd = try !(rows?._withUnsafeGuaranteedRef { try $0.next() } ?? false)
        }
    }

    /// The error of a table that has ended the running statement: SQLite carries only a number. One statement
    /// runs at a time.
    nonisolated(unsafe) private static var error: (any Error)?

    /// True while a table declares its columns, which SQLite asks the authorizer for, too.
    nonisolated(unsafe) fileprivate(set) static var isDeclaring = false

    /// The error that ended the last statement, if it came from a table.
    static func takeError() -> (any Error)? {
        defer { error = nil }
        return error
    }

    /// - Parameter name: the name in statements; nil for the table's own.
    static func register(
        _ table: SQLTable, as name: String? = nil, in connection: OpaquePointer
    ) throws {
        let code = sqlite3_create_module_v2(
            connection, name ?? table.name, module, Unmanaged.passRetained(table).toOpaque()
        ) { pointer in
            pointer.map { Unmanaged<SQLTable>.fromOpaque($0).release() }
        }
        guard code == SQLITE_OK else {
            throw SQLError(description: "SQLite has refused the table \(table.name)")
        }
    }

    private static func table(_ pointer: UnsafeMutablePointer<sqlite3_vtab>) -> SQLTable {
        UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: Table.self)
            .pointee.table.takeUnretainedValue()
    }

    private static func cursor(
        _ pointer: UnsafeMutablePointer<sqlite3_vtab_cursor>
    ) -> UnsafeMutablePointer<Cursor> {
        UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: Cursor.self)
    }

    /// Runs a call of SQLite into Swift; a thrown error ends the statement.
    private static func code(_ body: () throws -> Void) -> Int32 {
        do {
            try body()
            return SQLITE_OK
        } catch {
            self.error = error
            return SQLITE_ERROR
        }
    }

    nonisolated(unsafe) private static let module: UnsafeMutablePointer<sqlite3_module> = {
        var module = sqlite3_module()
        module.iVersion = 1
        // No xCreate: the table exists under the module's name only.
        module.xConnect = { connection, data, _, _, result, _ in
            guard let data else { return SQLITE_ERROR }
            let table = Unmanaged<SQLTable>.fromOpaque(data).takeUnretainedValue()
            SQLTableModule.isDeclaring = true
            let code = sqlite3_declare_vtab(
                connection, "CREATE TABLE rows (\(table.declaration))")
            SQLTableModule.isDeclaring = false
            guard code == SQLITE_OK else { return code }
            let pointer = UnsafeMutablePointer<Table>.allocate(capacity: 1)
            pointer.initialize(to: Table(table: Unmanaged.passRetained(table)))
            result?.pointee = UnsafeMutableRawPointer(pointer).assumingMemoryBound(
                to: sqlite3_vtab.self)
            return SQLITE_OK
        }
        module.xDisconnect = { pointer in
            guard let pointer else { return SQLITE_OK }
            let table = UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: Table.self)
            table.pointee.table.release()
            table.deinitialize(count: 1)
            table.deallocate()
            return SQLITE_OK
        }
        module.xBestIndex = { pointer, info in
            guard let pointer, let info else { return SQLITE_ERROR }
            return SQLTableModule.plan(SQLTableModule.table(pointer), info)
        }
        module.xOpen = { _, result in
            let pointer = UnsafeMutablePointer<Cursor>.allocate(capacity: 1)
            pointer.initialize(to: Cursor())
            result?.pointee = UnsafeMutableRawPointer(pointer).assumingMemoryBound(
                to: sqlite3_vtab_cursor.self)
            return SQLITE_OK
        }
        module.xClose = { pointer in
            guard let pointer else { return SQLITE_OK }
            let cursor = SQLTableModule.cursor(pointer)
            cursor.pointee.rows?.release()
            cursor.deinitialize(count: 1)
            cursor.deallocate()
            return SQLITE_OK
        }
        module.xFilter = { pointer, plan, _, count, values in
            SQLTableModule.code {
                guard let pointer, let table = pointer.pointee.pVtab else { return }
                let cursor = SQLTableModule.cursor(pointer)
                let rows = try SQLTableModule.table(table).rows(
                    within: SQLTableModule.bounds(plan, count, values),
                    isSorted: plan & SQLTableModule.sortedFlag != 0)
                cursor.pointee.rows?.release()
                cursor.pointee.rows = Unmanaged.passRetained(rows)
                try cursor.pointee.advance()
            }
        }
        module.xNext = { pointer in
            guard let pointer else { return SQLITE_ERROR }
            return SQLTableModule.code { try SQLTableModule.cursor(pointer).pointee.advance() }
        }
        module.xEof = { pointer in
            guard let pointer else { return 1 }
            return SQLTableModule.cursor(pointer).pointee.isAtEnd ? 1 : 0
        }
        module.xColumn = { pointer, context, column in
            guard let pointer else { return SQLITE_ERROR }
            return SQLTableModule.code {
                try SQLTableModule.cursor(pointer).pointee.rows?._withUnsafeGuaranteedRef {
                    try $0.write(Int(column), to: SQLResult(context: context))
                }
            }
        }
        module.xRowid = { pointer, result in
            guard let pointer else { return SQLITE_ERROR }
            result?.pointee =
                SQLTableModule.cursor(pointer).pointee.rows?._withUnsafeGuaranteedRef { $0.rowID }
                ?? 0
            return SQLITE_OK
        }
        let pointer = UnsafeMutablePointer<sqlite3_module>.allocate(capacity: 1)
        pointer.initialize(to: module)
        return pointer
    }()

    // MARK: Planning

    /// The greatest number of bounds in a plan: each takes 8 bits of its number, below `sortedFlag`.
    private static let boundsMax = 3
    /// The bit of a plan whose rows are sorted by the only column that is used.
    private static let sortedFlag: Int32 = 1 << 24

    private static func plan(
        _ table: SQLTable, _ pointer: UnsafeMutablePointer<sqlite3_index_info>
    ) -> Int32 {
        let info = pointer.pointee
        var plan: Int32 = 0
        var bounds: [SQLBound] = []
        for index in 0..<Int(info.nConstraint) where bounds.count < boundsMax {
            let constraint = info.aConstraint[index]
            guard constraint.usable != 0, constraint.iColumn >= 0, constraint.iColumn < 32,
                let comparison = comparison(constraint.op),
                // With another collation, other texts are equal.
                sqlite3_vtab_collation(pointer, Int32(index)).map({ String(cString: $0) })
                    == "BINARY"
            else { continue }
            let bound = SQLBound(column: Int(constraint.iColumn), comparison: comparison)
            guard table.uses(bound) else { continue }
            let code = Int32(bound.column) << 3 | Int32(comparison.rawValue)
            plan |= code << (8 * Int32(bounds.count))
            bounds.append(bound)
            info.aConstraintUsage[index].argvIndex = Int32(bounds.count)
        }
        let cost = table.cost(within: bounds)
        pointer.pointee.estimatedCost = cost.lines
        pointer.pointee.estimatedRows = cost.rows
        if cost.isUnique { pointer.pointee.idxFlags = SQLITE_INDEX_SCAN_UNIQUE }
        // Also GROUP BY and DISTINCT.
        if info.nOrderBy == 1, info.aOrderBy[0].desc == 0, info.aOrderBy[0].iColumn >= 0 {
            let column = Int(info.aOrderBy[0].iColumn)
            // Rows with one value are sorted.
            let hasOneValue = bounds.contains(SQLBound(column: column, comparison: .equal))
            if hasOneValue || table.isSorted(byColumn: column) {
                pointer.pointee.orderByConsumed = 1
            } else if info.colUsed == 1 << UInt64(column), table.canSort(byColumn: column) {
                pointer.pointee.orderByConsumed = 1
                plan |= sortedFlag
            }
        }
        pointer.pointee.idxNum = plan
        return SQLITE_OK
    }

    private static func comparison(_ code: UInt8) -> SQLBound.Comparison? {
        switch Int32(code) {
        case SQLITE_INDEX_CONSTRAINT_EQ: .equal
        case SQLITE_INDEX_CONSTRAINT_GT: .greater
        case SQLITE_INDEX_CONSTRAINT_GE: .greaterOrEqual
        case SQLITE_INDEX_CONSTRAINT_LT: .less
        case SQLITE_INDEX_CONSTRAINT_LE: .lessOrEqual
        default: nil
        }
    }

    private static func bounds(
        _ plan: Int32, _ count: Int32, _ values: UnsafeMutablePointer<OpaquePointer?>?
    ) -> [(SQLBound, SQLValue)] {
        (0..<Int(count)).compactMap { index in
            let code = UInt8(truncatingIfNeeded: plan >> (8 * Int32(index)))
            guard let value = values?[index],
                let comparison = SQLBound.Comparison(rawValue: code & 7)
            else { return nil }
            return (SQLBound(column: Int(code >> 3), comparison: comparison), self.value(value))
        }
    }

    private static func value(_ value: OpaquePointer) -> SQLValue {
        switch sqlite3_value_type(value) {
        case SQLITE_INTEGER: return .integer(sqlite3_value_int64(value))
        case SQLITE_FLOAT: return .real(sqlite3_value_double(value))
        case SQLITE_TEXT:
            let text = sqlite3_value_text(value)
            return .text(
                Array(
                    UnsafeRawBufferPointer(
                        start: text.map { UnsafeRawPointer($0) },
                        count: Int(sqlite3_value_bytes(value)))))
        case SQLITE_NULL: return .null
        default: return .blob([])
        }
    }
}
