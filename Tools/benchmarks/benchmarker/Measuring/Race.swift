// One row of the table: the same work done by several, in turns, so that what disturbs the machine
// disturbs all. Appending and Reading make races; RaceResult says what came of one. Spec/benchmarks.

/// Somebody who does the work.
struct Contender {
    /// What the table calls it.
    let name: String
    /// Does the work once.
    ///
    /// - Returns: what it cost, by the unit of the race; less is better.
    let turn: () async throws -> Double
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
            budgets: budgets)
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
