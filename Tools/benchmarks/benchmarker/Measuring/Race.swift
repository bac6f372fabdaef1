// One row of the table: several contenders do the same work in turns, so that disturbances of the machine
// affect all of them. Spec/benchmarks.

/// A program or library that does the work.
struct Contender {
    /// The name in the table.
    let name: String
    /// Does the work once.
    ///
    /// - Returns: the cost, before `scale`; less is better.
    let turn: () async throws -> Double
}

/// Several contenders for one work.
struct Race {
    /// The name of the work.
    let name: String
    /// The unit of a cost, for example `µs an append`.
    let unit: String
    /// The factor that converts a cost into the unit.
    var scale = 1.0
    let budgets: [Budget]
    /// The first one is ours.
    let contenders: [Contender]

    /// Runs the turns of all contenders, alternating between them.
    ///
    /// - Parameters:
    ///   - turns: the number of turns of each contender.
    ///   - reportProgress: called after each turn.
    func run(turns: Int, reportProgress: (String) -> Void) async throws -> RaceResult {
        var costs = Array(repeating: [Double](), count: contenders.count)
        for turn in 1...turns {
            for (index, contender) in contenders.enumerated() {
                costs[index].append(try await contender.turn() * scale)
                reportProgress("\(name): \(contender.name), turn \(turn) of \(turns)")
            }
        }
        return RaceResult(
            name: name, unit: unit,
            entries: zip(contenders, costs).map { .init(name: $0.name, costs: $1) },
            budgets: budgets)
    }
}

extension [Double] {
    /// The middle value, or the mean of the two middle values.
    var median: Double {
        let sorted = sorted()
        guard !sorted.isEmpty else { return .nan }
        return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }
}

/// Measures the duration of a closure, in seconds.
func seconds(_ body: () async throws -> Void) async rethrows -> Double {
    let begun = ContinuousClock.now
    try await body()
    return (ContinuousClock.now - begun) / .seconds(1)
}
