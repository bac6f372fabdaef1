// A small plot in characters: one line for a row of values, one bar for a value beside others. Shown
// by inspect.

/// Draws numbers from 0 on.
struct Plot {
    var isUTF8: Bool

    private static let blocks = Array("▁▂▃▄▅▆▇█")
    private static let signs = Array(".:-=+*%@")
    private static let eighths = Array("▏▎▍▌▋▊▉█")

    /// One column a value: nothing for 0, else the higher the more.
    func line(_ values: [Int]) -> String {
        let levels = isUTF8 ? Self.blocks : Self.signs
        let most = values.max() ?? 0
        return String(
            values.map { value in
                guard value > 0 else { return " " }
                let level = (Double(value) / Double(most) * Double(levels.count)).rounded(.up)
                return levels[min(levels.count, Int(level)) - 1]
            })
    }

    /// A bar of at most `columns` columns, as long as the value is a share of the greatest; never
    /// empty for a value over 0.
    func bar(_ value: Int, of most: Int, columns: Int) -> String {
        guard value > 0, most > 0 else { return "" }
        let share = min(1, Double(value) / Double(most))
        guard isUTF8 else {
            return String(repeating: "#", count: max(1, Int((share * Double(columns)).rounded())))
        }
        let parts = max(1, Int((share * Double(columns * 8)).rounded()))
        let rest = parts % 8 == 0 ? "" : String(Self.eighths[parts % 8 - 1])
        return String(repeating: "█", count: parts / 8) + rest
    }
}
