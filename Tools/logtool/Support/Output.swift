// The data on stdout: a table, one JSON document, or one JSON object a line.

import ArgumentParser
import DaybookOffline
import Foundation
import Synchronization

/// The formats of output.
enum OutputFormat: String, ExpressibleByArgument, CaseIterable {
    case table, json, ndjson
}

struct OutputOptions: ParsableArguments {
    @Option(
        help: "table, json or ndjson. Default: table on a terminal, else ndjson.")
    var output: OutputFormat?

    var format: OutputFormat { output ?? (isatty(STDOUT_FILENO) == 1 ? .table : .ndjson) }
}

/// Writes rows as they come. A table buffers its first rows to compute the column widths, and stores
/// only the shown beginning of a value.
struct RowWriter {
    private let format: OutputFormat
    private var table: Table
    private var count = 0

    /// - Parameter cutsLastColumn: whether a table's last column is truncated like the others.
    init(_ format: OutputFormat, cutsLastColumn: Bool = true) {
        self.format = format
        table = Table(cutsLastColumn: cutsLastColumn)
    }

    mutating func write(_ row: ViewRow) {
        count += 1
        switch format {
        case .ndjson: Stdout.write(json: row.json + [UInt8(ascii: "\n")])
        case .json:
            Stdout.write(json: Array((count == 1 ? "[\n" : ",\n").utf8) + row.json)
        case .table: table.add(row)
        }
    }

    mutating func finish() {
        switch format {
        case .ndjson: break
        case .json: Stdout.write(Array((count == 0 ? "[]\n" : "\n]\n").utf8))
        case .table: table.finish()
        }
        Stdout.flush()
    }

    /// Writes one object, in a table with one field a line.
    static func writeSummary(_ row: ViewRow, _ format: OutputFormat) {
        if format == .table {
            let width = row.fields.map(\.name.count).max() ?? 0
            for field in row.fields {
                let name = field.name.padding(toLength: width, withPad: " ", startingAt: 0)
                Stdout.write(Array("\(name)  \(Table.cell(field.json))\n".utf8))
            }
        } else {
            Stdout.write(json: row.json + [UInt8(ascii: "\n")])
        }
        Stdout.flush()
    }
}

/// A table with cells of bounded width.
struct Table {
    private static let cellWidthMax = 60
    /// The bytes of a value that a cell is made from: more than it shows, and few of a large value.
    private static let cellBytesMax = 4_096
    /// The number of rows that determine the widths. Later rows are written as they come.
    private static let layoutRowsMax = 1_000

    private let cutsLastColumn: Bool
    /// The first rows, as names and cells, until the widths are known.
    private var waiting: [(names: [String], cells: [String])] = []
    private var widths: [Int]?

    init(cutsLastColumn: Bool = true) { self.cutsLastColumn = cutsLastColumn }

    mutating func add(_ row: ViewRow) {
        let last = row.fields.count - 1
        let cells = row.fields.enumerated().map { column, field in
            column == last && !cutsLastColumn
                ? Self.cell(field.json) : Self.truncatedCell(field.json)
        }
        guard widths == nil else { return write(cells) }
        waiting.append((row.fields.map(\.name), cells))
        if waiting.count == Self.layoutRowsMax { layOut() }
    }

    mutating func finish() { if widths == nil { layOut() } }

    private mutating func layOut() {
        // The names of the row with the most fields; other rows may lack the last ones.
        guard let names = waiting.map(\.names).max(by: { $0.count < $1.count }) else { return }
        widths = names.indices.map { column in
            max(
                names[column].count,
                waiting.map { column < $0.cells.count ? $0.cells[column].count : 0 }.max() ?? 0)
        }
        write(names.map(Self.printable))
        for row in waiting { write(row.cells) }
        waiting = []
    }

    private func write(_ cells: [String]) {
        guard let widths else { return }
        var text = ""
        for (column, cell) in cells.enumerated() where column < widths.count {
            text += cell
            guard column < widths.count - 1 else { break }
            text += String(repeating: " ", count: max(0, widths[column] - cell.count) + 2)
        }
        // A row that lacks the last fields is as wide as the others up to there.
        for column in cells.count..<max(cells.count, widths.count - 1) {
            text += String(repeating: " ", count: widths[column] + 2)
        }
        Stdout.write(Array((text + "\n").utf8))
    }

    // MARK: Cells

    /// Formats a JSON value for people: a string without quotation marks, nothing for null.
    static func cell(_ json: [UInt8]) -> String {
        switch json.first {
        case UInt8(ascii: "\""):
            printable(JSONText.string(json.span.bytes, 1..<max(1, json.count - 1)))
        case UInt8(ascii: "n"): ""
        default: printable(String(decoding: json, as: UTF8.self))
        }
    }

    /// Formats the beginning of a value, with an ellipsis if it is longer.
    static func truncatedCell(_ json: [UInt8]) -> String {
        let isComplete = json.count <= cellBytesMax
        let cell = cell(isComplete ? json : beginning(of: json))
        guard !isComplete || cell.count > cellWidthMax else { return cell }
        return cell.prefix(cellWidthMax - 1) + "…"
    }

    /// The first bytes of a large value, without a partial character or escape at the end.
    private static func beginning(of json: [UInt8]) -> [UInt8] {
        var end = cellBytesMax
        while end > 0, json[end] & 0xC0 == 0x80 { end -= 1 }
        guard json.first == UInt8(ascii: "\"") else { return Array(json[..<end]) }
        var offset = 1
        while offset < end {
            var next = offset + 1
            if json[offset] == UInt8(ascii: "\\") {
                next = offset + (json[offset + 1] == UInt8(ascii: "u") ? 6 : 2)
            }
            guard next <= end else { break }
            offset = next
        }
        return Array(json[..<offset]) + [UInt8(ascii: "\"")]
    }

    /// Makes a text safe for a terminal: control characters become spaces, invisible and separating
    /// ones, which could change the reading order, become escapes.
    static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: Terminal.isUnsafe) else { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            if scalar.properties.generalCategory == .control {
                result += " "
            } else if Terminal.isUnsafe(scalar) {
                result += Terminal.escape(scalar)
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

/// Buffered standard output.
enum Stdout {
    private static let buffer = Mutex<[UInt8]>([])
    private static let bufferBytesMax = 64 * 1024
    private static let isTerminal = isatty(STDOUT_FILENO) == 1
    private static let waits = Mutex<(ended: Duration, begun: ContinuousClock.Instant?)>(
        (ended: .zero, begun: nil))

    /// What the command has done, for the message if its output cannot be written.
    private static let effect = Mutex<String?>(nil)

    /// Says what the command has done, should its output not be written.
    static func note(effect: String) { self.effect.withLock { $0 = effect } }

    /// The time that writing has taken until now, most of it waits for a reader.
    static var waited: Duration {
        waits.withLock { $0.ended + ($0.begun.map { ContinuousClock.now - $0 } ?? .zero) }
    }

    static func write(_ bytes: [UInt8]) {
        let isFull = buffer.withLock { buffer in
            buffer.append(contentsOf: bytes)
            return buffer.count >= bufferBytesMax
        }
        if isFull { flush() }
    }

    /// Writes JSON text unchanged, on a terminal with unsafe characters as escapes.
    static func write(json: [UInt8]) {
        write(isTerminal ? Terminal.escaped(json: json) : json)
    }

    static func flush() {
        buffer.withLock { buffer in
            waits.withLock { $0.begun = ContinuousClock.now }
            let reason = StandardStream.output.write(buffer)
            let total = waited
            waits.withLock { $0 = (ended: total, begun: nil) }
            buffer.removeAll(keepingCapacity: true)
            if let reason { end(because: reason) }
        }
    }

    /// Ends the process if nothing can be written any more, also while there is nothing to write: for commands
    /// that wait.
    static func requireReader() {
        if let reason = StandardStream.output.closure { end(because: reason) }
    }

    private static func end(because reason: Int32) {
        // The reader has closed the pipe, as `head` does: end by SIGPIPE like other programs.
        if reason == EPIPE { StandardStream.endByBrokenPipe() }
        Message.error("standard output: \(String(cString: strerror(reason)))")
        if let done = effect.withLock({ $0 }) { Message.note(done) }
        exit(Exit.io.rawValue)
    }
}
