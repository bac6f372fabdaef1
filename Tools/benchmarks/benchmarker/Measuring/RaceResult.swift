// The result of one row of the table, and its budgets.

/// A budget of a row.
enum Budget {
    /// Our cost is at most this factor times the peer's.
    case atMost(Double, of: String)
    /// Our processor time is at most this factor times the peer's.
    case processorAtMost(Double, of: String)
    /// The peer's cost is at least this factor times ours.
    case atLeast(Double, timesFasterThan: String)
    /// An entry is at most this value, plus another entry's if one is named.
    case within(Double, entry: String, and: String?)
}

/// The result of a race.
struct RaceResult {
    /// One contender's costs.
    struct Entry {
        let name: String
        var costs: [Double] = []
        /// The processor times, in the unit of a duration; empty if they are not measured.
        var processor: [Double] = []
        var median: Double { costs.median }
        /// The difference of the greatest and the least cost, as a part of the median.
        var spread: Double { ((costs.max() ?? 0) - (costs.min() ?? 0)) / median }

        /// The median of the ratios of paired turns.
        func ratio(to other: Entry) -> Double { zip(costs, other.costs).map { $0 / $1 }.median }

        /// The same of the processor times; nil if they are not measured.
        func processorRatio(to other: Entry) -> Double? {
            let ratios = zip(processor, other.processor).map { $0 / $1 }
            return ratios.isEmpty ? nil : ratios.median
        }
    }

    /// A budget and the measured value.
    struct BudgetResult {
        let budget: Budget
        /// The value that the budget limits: our cost by the peer's, the peer's by ours, or the entry's cost,
        /// less the other entry's if the budget names one.
        let measured: Double
        /// The used part of the budget.
        let share: Double
        var isMet: Bool { share <= 1 }
    }

    let name: String
    let unit: String
    let entries: [Entry]
    var budgets: [Budget] = []
    /// True if another process kept one core busy meanwhile.
    var hasBusyCore = false
    /// The name in tables, with the load.
    var title: String { hasBusyCore ? name + ", one core busy" : name }
    /// Our name in tables.
    static let ours = "Daybook"

    private func entry(_ name: String) -> Entry? { entries.first { $0.name == name } }

    /// The ratio of a contender's cost to ours; nil for our own entry, or if we do not take part.
    func ratio(of entry: Entry) -> Double? { ours(against: entry).map { entry.ratio(to: $0) } }

    /// The same of the processor time; nil also if it is not measured.
    func processorRatio(of entry: Entry) -> Double? {
        ours(against: entry).flatMap { entry.processorRatio(to: $0) }
    }

    private func ours(against entry: Entry) -> Entry? {
        guard let ours = entries.first, ours.name == Self.ours, entry.name != Self.ours else {
            return nil
        }
        return ours
    }

    /// The budgets whose contenders took part, with the measured values.
    var verdicts: [BudgetResult] {
        budgets.compactMap { budget in
            switch budget {
            case .atMost(let limit, let peer):
                guard let ours = entries.first, let peer = entry(peer) else { return nil }
                let ratio = ours.ratio(to: peer)
                return BudgetResult(budget: budget, measured: ratio, share: ratio / limit)
            case .processorAtMost(let limit, let peer):
                guard let ours = entries.first, let peer = entry(peer),
                    let ratio = ours.processorRatio(to: peer)
                else { return nil }
                return BudgetResult(budget: budget, measured: ratio, share: ratio / limit)
            case .atLeast(let factor, let peer):
                guard let ours = entries.first, let peer = entry(peer) else { return nil }
                let ratio = 1 / ours.ratio(to: peer)
                return BudgetResult(budget: budget, measured: ratio, share: factor / ratio)
            case .within(let limit, let name, let other):
                guard let cost = entry(name)?.median else { return nil }
                let value = cost - (other.flatMap(entry)?.median ?? 0)
                return BudgetResult(budget: budget, measured: value, share: value / limit)
            }
        }
    }
}
