// Writes the rows of an answer: a table, JSON, or CSV.

import ArgumentParser
import DaybookOffline
import EventSourcing
import Foundation
import StandardStreams

/// The formats of an answer.
enum SQLOutputFormat: String, ExpressibleByArgument, CaseIterable {
    case table, json, ndjson, csv

    fileprivate var ofRows: OutputFormat? { OutputFormat(rawValue: rawValue) }
}

/// Writes the rows of one statement.
struct SQLRowWriter {
    private let columns: [String]
    /// Nil for CSV.
    private var rows: RowWriter?

    init(_ format: SQLOutputFormat, _ columns: [String]) {
        self.columns = Self.unique(columns)
        rows = format.ofRows.map { RowWriter($0, cutsLastColumn: false) }
        if rows == nil { Self.writeCSV(columns.map { CSVField.of(Array($0.utf8)) }) }
    }

    /// The names; of several equal ones, the later ones with a number: an object has each name once.
    private static func unique(_ names: [String]) -> [String] {
        var taken: Set<String> = []
        return names.map { name in
            var result = name
            var number = 0
            while !taken.insert(result).inserted {
                number += 1
                result = "\(name):\(number)"
            }
            return result
        }
    }

    mutating func write(_ values: [SQLValue]) {
        guard rows != nil else { return Self.writeCSV(values.map(Self.csv)) }
        var row = ViewRow()
        for (name, value) in zip(columns, values) { row.appendField(name, raw: Self.json(value)) }
        rows?.write(row)
    }

    mutating func finish() {
        rows?.finish()
        Stdout.flush()
    }

    private static func json(_ value: SQLValue) -> [UInt8]? {
        switch value {
        case .null: nil
        case .integer(let number): Array("\(number)".utf8)
        // JSON has no infinity.
        case .real(let number): number.isFinite ? Array("\(number)".utf8) : nil
        case .text(let text): JSONObjectWriter.string(String(decoding: text, as: UTF8.self))
        case .blob(let bytes): JSONObjectWriter.string(bytes.hexadecimalDigits)
        }
    }

    private static func csv(_ value: SQLValue) -> [UInt8] {
        switch value {
        case .null: []
        case .integer(let number): Array("\(number)".utf8)
        case .real(let number): Array("\(number)".utf8)
        case .text(let text): CSVField.of(text)
        case .blob(let bytes): Array(bytes.hexadecimalDigits.utf8)
        }
    }

    private static func writeCSV(_ fields: [[UInt8]]) {
        let isTerminal = isatty(STDOUT_FILENO) == 1
        let shown = fields.map { field in
            isTerminal
                ? Array(Table.printable(String(decoding: field, as: UTF8.self)).utf8) : field
        }
        Stdout.write(Array(shown.joined(separator: [UInt8(ascii: ",")])) + [0x0D, 0x0A])
    }
}
