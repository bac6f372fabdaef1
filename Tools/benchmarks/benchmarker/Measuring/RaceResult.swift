// What came of one row of the table, beside what the project promises of it. Made by Race, printed by
// RaceReport.

/// What the project promises of a row.
enum Budget {
    /// Our cost is at most so many times the peer's.
    case atMost(Double, of: String)
    /// The peer's cost is at least so many times ours.
    case atLeast(Double, timesFasterThan: String)
    /// An entry is at most so much; with another entry's, if there is one.
    case within(Double, entry: String, and: String?)
}

/// What came of a race.
struct RaceResult {
    /// One contender's costs.
    struct Entry {
        let name: String
        let costs: [Double]
        var median: Double { costs.median }
        /// From the least to the greatest cost, as a part of the median.
        var spread: Double { ((costs.max() ?? 0) - (costs.min() ?? 0)) / median }

        /// The median of the ratios of turns that followed each other.
        func ratio(to other: Entry) -> Double { zip(costs, other.costs).map { $0 / $1 }.median }
    }

    /// A promise beside what was measured.
    struct Verdict {
        let budget: Budget
        /// As the budget says it: our cost by the peer's, the peer's by ours, or the entry's.
        let measured: Double
        /// The part of what is allowed that was taken.
        let share: Double
        var isMet: Bool { share <= 1 }
    }

    let name: String
    let unit: String
    let entries: [Entry]
    var budgets: [Budget] = []
    /// What tables call us.
    static let ours = "Daybook"

    private func entry(_ name: String) -> Entry? { entries.first { $0.name == name } }

    /// How a contender's cost stands to ours; nil for ours and where we are not one of several.
    func ratio(of entry: Entry) -> Double? {
        guard let ours = entries.first, ours.name == Self.ours, entry.name != Self.ours else {
            return nil
        }
        return entry.ratio(to: ours)
    }

    /// The promises, where those that they name took part.
    var verdicts: [Verdict] {
        budgets.compactMap { budget in
            switch budget {
            case .atMost(let most, let peer):
                guard let ours = entries.first, let peer = entry(peer) else { return nil }
                let ratio = ours.ratio(to: peer)
                return Verdict(budget: budget, measured: ratio, share: ratio / most)
            case .atLeast(let least, let peer):
                guard let ours = entries.first, let peer = entry(peer) else { return nil }
                let ratio = 1 / ours.ratio(to: peer)
                return Verdict(budget: budget, measured: ratio, share: least / ratio)
            case .within(let most, let name, let other):
                guard let cost = entry(name)?.median else { return nil }
                let allowed = most + (other.flatMap(entry)?.median ?? 0)
                return Verdict(budget: budget, measured: cost, share: cost / allowed)
            }
        }
    }
}
