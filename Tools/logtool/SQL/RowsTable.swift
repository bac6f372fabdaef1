// Tables of rows that are computed when a statement first reads them: the views, the outbox, the segments.

import DaybookOffline
import Foundation
import LogFormat
import LogStorage

/// A table of rows that are objects.
final class RowsTable: SQLTable {
    let columns: [String]
    private let load: () throws -> PortionedRows
    private var loaded: PortionedRows?

    /// - Parameter load: computes the rows, once.
    init(_ name: String, columns: [String], _ load: @escaping () throws -> PortionedRows) {
        self.columns = columns
        self.load = load
        super.init(
            name: name, declaration: columns.map { "\"\($0)\"" }.joined(separator: ", "))
    }

    /// Computes the rows again when they are read next.
    func forgetRows() { loaded = nil }

    override func rows(
        within bounds: [(SQLBound, SQLValue)], isSorted: Bool
    ) throws -> SQLRows {
        let rows = try loaded ?? load()
        loaded = rows
        return ObjectRows(rows, columns)
    }
}

/// The rows of a view, in portions: all of them may not fit in memory.
final class PortionedRows {
    let rows: ViewRows
    private let reader: LogReader
    /// The position at which the search for the events of the next portion begins.
    private var next = Position(1)
    /// All rows, if they are one portion: a join reads them repeatedly.
    private var all: (rows: [ViewRow], isFilled: Bool)?

    private let portionMax: Int

    /// - Parameter portionMax: the greatest number of rows in a portion.
    init(_ rows: ViewRows, _ reader: LogReader, portionMax: Int = 50_000) {
        self.rows = rows
        self.reader = reader
        self.portionMax = portionMax
    }

    /// The rows from an index on. Those that are not filled lack the values that only events contain.
    func portion(from start: Int) -> (rows: [ViewRow], isFilled: Bool) {
        if let all { return all }
        let portion = (Array(rows[start..<min(start + portionMax, rows.count)]), false)
        if rows.count <= portionMax { all = portion }
        return portion
    }

    /// A portion with the values that only events contain.
    func filled(_ portion: [ViewRow]) throws -> [ViewRow] {
        if let all, all.isFilled { return all.rows }
        guard let filled = try EventData.insert(into: portion, reader, from: &next) else {
            Message.error("the log was compacted while it was read; try again")
            throw Exit.unavailable
        }
        if rows.count <= portionMax { all = (filled, true) }
        return filled
    }
}

private final class ObjectRows: SQLRows {
    private let source: PortionedRows
    private let columns: [String]
    private var portion: (rows: [ViewRow], isFilled: Bool) = ([], true)
    private var start = 0
    private var index = -1

    init(_ source: PortionedRows, _ columns: [String]) {
        self.source = source
        self.columns = columns
    }

    override var rowID: Int64 { Int64(start + index) }

    override func next() throws -> Bool {
        index += 1
        guard index == portion.rows.count else { return true }
        (start, index) = (start + index, 0)
        guard start < source.rows.count else { return false }
        portion = source.portion(from: start)
        return true
    }

    override func write(_ column: Int, to result: SQLResult) throws {
        var field = field(column)
        if field?.source != nil, !portion.isFilled {
            portion = (try source.filled(portion.rows), true)
            field = self.field(column)
        }
        switch field?.scalar {
        case .integer(let value): result.write(integer: value)
        case .real(let value): result.write(real: value)
        case .text(let value): result.write(value)
        case .null, nil: break
        }
    }

    private func field(_ column: Int) -> ViewRow.Field? {
        let (name, fields) = (columns[column], portion.rows[index].fields)
        // Usually all rows have the same fields.
        return column < fields.count && fields[column].name == name
            ? fields[column] : fields.first { $0.name == name }
    }
}
