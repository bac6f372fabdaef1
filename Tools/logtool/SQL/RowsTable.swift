// Tables of rows that are computed at once when a statement first reads them: the views, the outbox, the segments.

import DaybookOffline
import Foundation
import LogFormat
import LogStorage

/// A table of rows that are objects.
final class RowsTable: SQLTable {
    let columns: [String]
    private let load: () throws -> [ViewRow]
    private var loaded: [ViewRow]?

    /// - Parameter load: computes the rows, once.
    init(_ name: String, columns: [String], _ load: @escaping () throws -> [ViewRow]) {
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

private final class ObjectRows: SQLRows {
    private let rows: [ViewRow]
    private let columns: [String]
    private var index = -1

    init(_ rows: [ViewRow], _ columns: [String]) {
        self.rows = rows
        self.columns = columns
    }

    override var rowID: Int64 { Int64(index) }

    override func next() throws -> Bool {
        index += 1
        return index < rows.count
    }

    override func write(_ column: Int, to result: SQLResult) throws {
        let name = columns[column]
        let fields = rows[index].fields
        // Usually all rows have the same fields.
        let field =
            column < fields.count && fields[column].name == name
            ? fields[column] : fields.first { $0.name == name }
        switch field?.scalar {
        case .integer(let value): result.write(integer: value)
        case .real(let value): result.write(real: value)
        case .text(let value): result.write(value)
        case .null, nil: break
        }
    }
}
