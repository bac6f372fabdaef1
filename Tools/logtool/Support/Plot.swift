// Small plots in characters: a line for a series of values, a bar for one value among others.

/// Draws numbers of at least 0.
struct Plot {
    var isUTF8: Bool

    private static let blocks = Array("▁▂▃▄▅▆▇█")
    private static let signs = Array(".:-=+*%@")
    private static let eighths = Array("▏▎▍▌▋▊▉█")

    /// Draws one column for each value: a space for 0, otherwise a block of proportional height.
    func line(_ values: [Int]) -> String {
        let levels = isUTF8 ? Self.blocks : Self.signs
        let maximum = values.max() ?? 0
        return String(
            values.map { value in
                guard value > 0 else { return " " }
                let level = (Double(value) / Double(maximum) * Double(levels.count)).rounded(.up)
                return levels[min(levels.count, Int(level)) - 1]
            })
    }

    /// Draws a bar of at most `columns` columns, proportional to the maximum; never empty for a value
    /// above 0.
    func bar(_ value: Int, of maximum: Int, columns: Int) -> String {
        guard value > 0, maximum > 0 else { return "" }
        let share = min(1, Double(value) / Double(maximum))
        guard isUTF8 else {
            return String(repeating: "#", count: max(1, Int((share * Double(columns)).rounded())))
        }
        let parts = max(1, Int((share * Double(columns * 8)).rounded()))
        let fraction = parts % 8 == 0 ? "" : String(Self.eighths[parts % 8 - 1])
        return String(repeating: "█", count: parts / 8) + fraction
    }
}
