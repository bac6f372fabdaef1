// The plots of inspect's summary: events and bytes over time, and by type.

import DaybookOffline
import Foundation

struct LogPlot {
    private var histogram = TimeHistogram()

    private static let labelColumns = 8
    private static let nameColumnsMax = 40
    private static let barColumnsMin = 5

    mutating func add(_ event: Event) {
        histogram.add(event.time.milliseconds, bytes: event.lineBytes + 1)
    }

    /// The lines of both plots, none longer than `columns`.
    func lines(
        types: [String: LogStatistics.Amount], columns: Int, isUTF8: Bool
    ) -> [String] {
        guard !types.isEmpty else { return [] }
        let plot = Plot(isUTF8: isUTF8)
        return overTime(plot, columns) + [""] + byType(types, plot, columns)
    }

    private func overTime(_ plot: Plot, _ columns: Int) -> [String] {
        let values = histogram.columns(max(1, min(60, columns - 32)))
        func line(_ name: String, _ values: [Int]) -> String {
            let label = name.padding(toLength: Self.labelColumns, withPad: " ", startingAt: 0)
            let maximum = ProgressText.grouped(values.max() ?? 0)
            return String((label + plot.line(values) + "  at most " + maximum).prefix(columns))
        }
        return [
            "over time", line("events", values.map(\.events)), line("bytes", values.map(\.bytes)),
        ]
    }

    private func byType(
        _ types: [String: LogStatistics.Amount], _ plot: Plot, _ columns: Int
    ) -> [String] {
        let rows = types.sorted { $0.key < $1.key }
        let names = rows.map { Self.shortened(Table.printable($0.key), isUTF8: plot.isUTF8) }
        let events = rows.map { ProgressText.grouped($0.value.events) }
        let bytes = rows.map { ProgressText.grouped($0.value.lineBytes) }
        let name = max("by type".count, names.map(\.count).max() ?? 0)
        let eventColumns = max("events".count, events.map(\.count).max() ?? 0)
        let byteColumns = max("bytes".count, bytes.map(\.count).max() ?? 0)
        // Two gaps of two columns, two of one.
        let available = (columns - name - eventColumns - byteColumns - 6) / 2
        let bar = available < Self.barColumnsMin ? 0 : min(20, available)
        func line(_ cells: [String], _ bars: [String]) -> String {
            var text = cells[0].padding(toLength: name, withPad: " ", startingAt: 0) + "  "
            text += Self.right(cells[1], eventColumns) + " "
            text += bars[0].padding(toLength: bar, withPad: " ", startingAt: 0) + "  "
            text += Self.right(cells[2], byteColumns) + " " + bars[1]
            while text.last == " " { text.removeLast() }
            return text
        }
        let maxEvents = rows.map(\.value.events).max() ?? 0
        let maxBytes = rows.map(\.value.lineBytes).max() ?? 0
        var lines = [line(["by type", "events", "bytes"], ["", ""])]
        for (index, row) in rows.enumerated() {
            let bars =
                bar == 0
                ? ["", ""]
                : [
                    plot.bar(row.value.events, of: maxEvents, columns: bar),
                    plot.bar(row.value.lineBytes, of: maxBytes, columns: bar),
                ]
            lines.append(line([names[index], events[index], bytes[index]], bars))
        }
        return lines
    }

    private static func right(_ text: String, _ columns: Int) -> String {
        String(repeating: " ", count: max(0, columns - text.count)) + text
    }

    private static func shortened(_ name: String, isUTF8: Bool) -> String {
        guard name.count > nameColumnsMax else { return name }
        return String(name.prefix(nameColumnsMax - 1)) + (isUTF8 ? "…" : "~")
    }
}
