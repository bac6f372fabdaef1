// What a program reads: stdout, as a table, one JSON document, or one JSON object a line.

import ArgumentParser
import Daybook
import Foundation
import Synchronization

/// The forms of output.
enum OutputFormat: String, ExpressibleByArgument, CaseIterable {
    case table, json, ndjson
}

struct OutputOptions: ParsableArguments {
    @Option(
        help: "table, json or ndjson. Default: table on a terminal, else ndjson.")
    var output: OutputFormat?

    var format: OutputFormat { output ?? (isatty(STDOUT_FILENO) == 1 ? .table : .ndjson) }
}

/// Writes rows as they come; a table waits for the last one, to know its widths.
struct RowWriter {
    private let format: OutputFormat
    private let cutsLastColumn: Bool
    private var rows: [ViewRow] = []
    private var count = 0

    /// - Parameter cutsLastColumn: whether a table's last column is cut like the others.
    init(_ format: OutputFormat, cutsLastColumn: Bool = true) {
        self.format = format
        self.cutsLastColumn = cutsLastColumn
    }

    mutating func write(_ row: ViewRow) {
        count += 1
        switch format {
        case .ndjson: Stdout.write(row.json + [UInt8(ascii: "\n")])
        case .json:
            Stdout.write(Array((count == 1 ? "[\n" : ",\n").utf8) + row.json)
        case .table: rows.append(row)
        }
    }

    func finish() {
        switch format {
        case .ndjson: break
        case .json: Stdout.write(Array((count == 0 ? "[]\n" : "\n]\n").utf8))
        case .table: Table.write(rows, cutsLastColumn: cutsLastColumn)
        }
        Stdout.flush()
    }

    /// Writes one object that is not a list: as a table, its fields below each other.
    static func writeSummary(_ row: ViewRow, _ format: OutputFormat) {
        if format == .table {
            let width = row.fields.map(\.name.count).max() ?? 0
            for field in row.fields {
                let name = field.name.padding(toLength: width, withPad: " ", startingAt: 0)
                Stdout.write(Array("\(name)  \(Table.cell(field.json))\n".utf8))
            }
        } else {
            Stdout.write(row.json + [UInt8(ascii: "\n")])
        }
        Stdout.flush()
    }
}

enum Table {
    private static let cellWidthMax = 60

    /// A JSON value as a person reads it: a string without quotation marks, nothing for null.
    static func cell(_ json: [UInt8]) -> String {
        let value = try? JSONValue(json.span.bytes)
        let text: String
        switch value {
        case .string(let string)?: text = string
        case .null?: text = ""
        default: text = String(decoding: json, as: UTF8.self)
        }
        return printable(text)
    }

    /// What a log holds must not drive the terminal.
    static func printable(_ text: String) -> String {
        String(
            text.map {
                $0.unicodeScalars.contains { $0.properties.generalCategory == .control }
                    ? " " : $0
            })
    }

    static func write(_ rows: [ViewRow], cutsLastColumn: Bool = true) {
        // The fields of the row that has most of them; others may lack the last ones.
        guard let names = rows.map({ $0.fields.map(\.name) }).max(by: { $0.count < $1.count })
        else { return }
        let cells = rows.map { row in
            names.indices.map { column in
                let cell = column < row.fields.count ? cell(row.fields[column].json) : ""
                let isWhole = column == names.count - 1 && !cutsLastColumn
                return cell.count > cellWidthMax && !isWhole
                    ? cell.prefix(cellWidthMax - 1) + "…" : cell
            }
        }
        let widths = names.indices.map { column in
            max(
                names[column].count,
                cells.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0)
        }
        func line(_ cells: [String]) {
            var text = ""
            for (column, cell) in cells.enumerated() where column < widths.count {
                let isLast = column == widths.count - 1
                text += cell
                if !isLast {
                    text += String(repeating: " ", count: widths[column] - cell.count + 2)
                }
            }
            Stdout.write(Array((text + "\n").utf8))
        }
        line(names)
        for row in cells { line(row) }
    }
}

/// Buffered standard output.
enum Stdout {
    private static let buffer = Mutex<[UInt8]>([])
    private static let bufferBytesMax = 64 * 1024

    static func write(_ bytes: [UInt8]) {
        let isFull = buffer.withLock { buffer in
            buffer.append(contentsOf: bytes)
            return buffer.count >= bufferBytesMax
        }
        if isFull { flush() }
    }

    static func flush() {
        buffer.withLock { buffer in
            do {
                try FileHandle.standardOutput.write(contentsOf: Data(buffer))
            } catch {
                Message.error("standard output: \(error.localizedDescription)")
                exit(Exit.io.rawValue)
            }
            buffer.removeAll(keepingCapacity: true)
        }
    }
}
