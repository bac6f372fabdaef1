// The formatting of numbers and tables in all reports.

import Foundation

enum Markdown {
    /// Formats a number with three significant digits.
    static func number(_ value: Double?) -> String {
        guard let value, value.isFinite else { return "–" }
        let digits = max(0, 2 - Int(log10(max(abs(value), 1e-9)).rounded(.down)))
        return String(format: "%.\(min(digits, 4))f", value)
    }

    /// Formats a count with thousands separators.
    static func count(_ value: Int) -> String {
        value.formatted(.number.locale(Locale(identifier: "en_US")))
    }

    static func percent(_ share: Double) -> String { String(format: "%.0f %%", share * 100) }

    static func table(_ header: [String], _ rows: [[String]]) -> String {
        func line(_ cells: [String]) -> String { "| " + cells.joined(separator: " | ") + " |\n" }
        return line(header) + "|" + String(repeating: "---|", count: header.count) + "\n"
            + rows.map(line).joined()
    }

    /// Escapes text for an SVG.
    static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;")
            .replacingOccurrences(of: "<", with: "&lt;")
    }
}
