// The text of a progress report: values in, a line or a bar out.

import Foundation

struct ProgressText {
    var verb: String
    /// The unit of `count`; nil for bytes.
    var unit: String?
    var count: Int
    /// The share that is done, from 0 to 1; nil if the total is unknown.
    var share: Double?
    var secondsElapsed: Double

    /// One plain line, for a file or a pipe.
    var line: String {
        ([verb + " " + amount] + (percent.map { [$0] } ?? []) + rateAndTimeLeft).joined(
            separator: ", ")
    }

    /// One line of at most `columns` columns, with a bar if the share is known and a bar fits.
    func bar(columns: Int, isUTF8: Bool) -> String {
        guard let share, let percent else { return String(line.prefix(columns)) }
        let tail = ([percent, amount] + rateAndTimeLeft).joined(separator: ", ")
        let width = min(columns - verb.count - tail.count - 2, Self.barColumnsMax)
        guard width >= Self.barColumnsMin else { return String(line.prefix(columns)) }
        let full = Int((Double(width) * min(max(share, 0), 1)).rounded(.down))
        let done = String(repeating: isUTF8 ? "█" : "#", count: full)
        let remaining = String(repeating: isUTF8 ? "░" : ".", count: width - full)
        return "\(verb) \(done)\(remaining) \(tail)"
    }

    private static let barColumnsMin = 8
    private static let barColumnsMax = 30

    private var amount: String {
        unit.map { "\(Self.grouped(count)) \($0)" } ?? Self.megabytes(Double(count))
    }

    /// At most 99 %: only the end of the work clears the line.
    private var percent: String? {
        share.map { "\(min(99, max(0, Int($0 * 100)))) %" }
    }

    /// The rate, and the time left if it can be estimated.
    private var rateAndTimeLeft: [String] {
        let rate = Double(count) / max(secondsElapsed, 0.001)
        let text = unit == nil ? Self.megabytes(rate) : Self.grouped(Int(min(rate, 1e15)))
        // Below 1 % the estimate is meaningless.
        guard let share, share >= 0.01, share < 1 else { return [text + "/s"] }
        return [text + "/s", Self.duration(secondsElapsed * (1 - share) / share) + " left"]
    }

    private static func megabytes(_ bytes: Double) -> String {
        let tenths = Int((min(bytes, 1e15) / 100_000).rounded())
        return "\(grouped(tenths / 10)).\(tenths % 10) MB"
    }

    static func grouped(_ number: Int) -> String {
        var text = String(number.magnitude)
        var index = text.count - 3
        while index > 0 {
            text.insert(",", at: text.index(text.startIndex, offsetBy: index))
            index -= 3
        }
        return (number < 0 ? "-" : "") + text
    }

    static func duration(_ seconds: Double) -> String {
        let seconds = Int(min(max(seconds, 0), 359_999).rounded(.up))
        if seconds < 60 { return "\(seconds) s" }
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60)
        func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return hours > 0
            ? "\(hours):\(padded(minutes)):\(padded(seconds % 60))"
            : "\(minutes):\(padded(seconds % 60))"
    }
}
