// One row of the table: several contenders do the same work in turns, so that disturbances of the machine
// affect all of them. Spec/benchmarks.

/// The cost of a turn.
struct Cost {
    /// What the row compares, before `scale`; less is better.
    var value: Double
    /// The processor time of all threads in seconds, divided as `value` is; nil if it is not measured.
    var processor: Double?

    static func / (cost: Cost, divisor: Double) -> Cost {
        Cost(value: cost.value / divisor, processor: cost.processor.map { $0 / divisor })
    }
}

/// A program or library that does the work.
struct Contender {
    /// The name in the table.
    let name: String
    /// Does the work once.
    let turn: () async throws -> Cost
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
    func run(
        turns: Int, reportProgress: (String) -> Void
    ) async throws -> RaceResult {
        var entries = contenders.map { RaceResult.Entry(name: $0.name) }
        for turn in 1...turns {
            for (index, contender) in contenders.enumerated() {
                let cost = try await contender.turn() / (1 / scale)
                entries[index].costs.append(cost.value)
                if let processor = cost.processor { entries[index].processor.append(processor) }
                reportProgress("\(name): \(contender.name), turn \(turn) of \(turns)")
            }
        }
        return RaceResult(name: name, unit: unit, entries: entries, budgets: budgets)
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

/// Measures the duration and the processor time of a closure.
func measured(_ body: () async throws -> Void) async rethrows -> Cost {
    let begun = SystemCounters.processorSeconds()
    let value = try await seconds(body)
    return Cost(value: value, processor: SystemCounters.processorSeconds() - begun)
}

/// Measures the median duration of several calls, and the mean of their processor time.
func medianMeasured<Element>(
    _ elements: [Element], _ body: (Element) async throws -> Void
) async rethrows -> Cost {
    let begun = SystemCounters.processorSeconds()
    var durations: [Double] = []
    for element in elements {
        durations.append(try await seconds { try await body(element) })
    }
    let processor = SystemCounters.processorSeconds() - begun
    return Cost(value: durations.median, processor: processor / Double(elements.count))
}
