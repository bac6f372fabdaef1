// One row of the table: the same work done by several, in turns, so that what disturbs the machine
// disturbs all. Races are run by the command; Report prints what comes of them. Spec/benchmarks.

/// Somebody who does the work.
struct Contender {
    /// What the table calls it.
    let name: String
    /// Does the work once.
    ///
    /// - Returns: what it cost, by the unit of the race; less is better.
    let turn: () async throws -> Double
}

/// What the project promises of a row.
enum Budget {
    /// Our cost is at most so many times the peer's.
    case atMost(Double, of: String)
    /// The peer's cost is at least so many times ours.
    case atLeast(Double, timesFasterThan: String)

    /// The peer that it names.
    var peer: String {
        switch self {
        case .atMost(_, let peer), .atLeast(_, let peer): peer
        }
    }
}

/// Several contenders for one piece of work.
struct Race {
    /// What the work is.
    let name: String
    /// What a cost is: `µs an append`.
    let unit: String
    /// What turns a cost into the unit.
    var scale = 1.0
    let budgets: [Budget]
    /// The first one is ours.
    let contenders: [Contender]
    /// What else is to be said, once it was run.
    var note: @Sendable () -> String? = { nil }

    /// Lets everybody have as many turns, one after the other.
    ///
    /// - Parameters:
    ///   - turns: of each.
    ///   - say: is told who has had a turn.
    func run(turns: Int, say: (String) -> Void) async throws -> RaceResult {
        var costs = Array(repeating: [Double](), count: contenders.count)
        for turn in 1...turns {
            for (index, contender) in contenders.enumerated() {
                costs[index].append(try await contender.turn() * scale)
                say("\(name): \(contender.name), turn \(turn) of \(turns)")
            }
        }
        return RaceResult(
            name: name, unit: unit,
            entries: zip(contenders, costs).map { .init(name: $0.name, costs: $1) },
            budgets: budgets, note: note())
    }
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
    }

    /// A promise beside what was measured.
    struct Verdict {
        let budget: Budget
        /// Our cost by the peer's, or the peer's by ours, as the budget says it.
        let ratio: Double
        let isMet: Bool
    }

    let name: String
    let unit: String
    let entries: [Entry]
    let budgets: [Budget]
    let note: String?

    /// The ratios: each the median of the ratios of turns that followed each other.
    var verdicts: [Verdict] {
        budgets.compactMap { budget in
            guard let ours = entries.first,
                let peer = entries.first(where: { $0.name == budget.peer })
            else { return nil }
            let ratio = zip(ours.costs, peer.costs).map { $0 / $1 }.median
            switch budget {
            case .atMost(let most, _):
                return Verdict(budget: budget, ratio: ratio, isMet: ratio <= most)
            case .atLeast(let least, _):
                return Verdict(budget: budget, ratio: 1 / ratio, isMet: 1 / ratio >= least)
            }
        }
    }
}

extension [Double] {
    /// The middle value; the mean of the middle two.
    var median: Double {
        let sorted = sorted()
        guard !sorted.isEmpty else { return .nan }
        return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }
}

/// How long something takes, in seconds.
func seconds(_ body: () async throws -> Void) async rethrows -> Double {
    let begun = ContinuousClock.now
    try await body()
    return (ContinuousClock.now - begun) / .seconds(1)
}
