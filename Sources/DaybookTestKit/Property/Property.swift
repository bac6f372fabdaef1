// Runs a property many times with generated choices; on a failure, shrinks it and says how to see it
// again. Knows no test framework: it throws, and any framework shows what was thrown.
//
// Deterministic unless the environment says otherwise: DAYBOOK_SEED=<n> makes every property do the
// one run of that seed (what a failure report asks for); DAYBOOK_EXPLORE=<n> begins elsewhere;
// DAYBOOK_CORPUS=<folder> keeps failures there and tries those that are there first.

/// Checking of properties.
public enum Property {
    /// The seed properties begin with.
    public static let defaultSeed: UInt64 = 0xDA1B_00C5
    /// How many simpler inputs are tried after a failure.
    public static let shrinkingRunsMax = 2_000

    /// Runs `body` with `runs` different rows of choices.
    ///
    /// ```swift
    /// try Property.check("reversing twice changes nothing", runs: 100) { choices in
    ///     let bytes = choices.bytes(count: choices.int(in: 0...100))
    ///     try #require(Array(bytes.reversed().reversed()) == bytes)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - name: what holds, in words, for the failure report.
    ///   - runs: how many rows of choices are tried at most.
    ///   - seed: where the row of seeds begins.
    ///   - regressions: the choices of failures that were mended, as their reports showed them; they
    ///     are tried first. Whoever changes how `body` draws its choices draws other inputs from
    ///     them.
    ///   - labels: what must have happened, by `Choices.count(_:by:)`, at least once in all runs
    ///     together. Not asked where a seed from the environment makes it a single run.
    ///   - goOn: asked before each run, with what was done so far; false ends the check early.
    ///   - fileID: the file of the test, for the failure report.
    ///   - body: throws where the property does not hold. Must depend on nothing but its choices.
    /// - Returns: how many runs were done, and what was counted in them.
    /// - Throws: `PropertyFailure` with the shrunk counterexample; `CoverageFailure` if all runs went
    ///   well but a label was never counted; `CorpusError` for a file of kept failures that cannot
    ///   be read.
    @discardableResult
    public static func check(
        _ name: String, runs: Int = 100, seed: UInt64 = defaultSeed,
        regressions: [[UInt64]] = [], covering labels: [String] = [],
        while goOn: (PropertyReport) -> Bool = { _ in true }, fileID: String = #fileID,
        _ body: (inout Choices) throws -> Void
    ) throws -> PropertyReport {
        let plan = try PropertyPlan(name, runs, seed, regressions, fileID)
        var report = PropertyReport()
        func attempt(_ start: Choices) -> Counterexample? {
            var choices = start
            do {
                try IssueRecorder.run { try body(&choices) }
            } catch { return Counterexample(choices, error) }
            report.add(choices)
            return nil
        }
        for start in plan.starts {
            guard goOn(report) else { break }
            guard let first = attempt(start.choices) else { continue }
            var shrinker = Shrinker(first, runsMax: shrinkingRunsMax)
            while let row = shrinker.candidate() {
                shrinker.report(attempt(Choices(replaying: row)))
            }
            throw try plan.failure(start, shrinker.best, shrinkingRuns: shrinker.runs)
        }
        if !plan.isSingle { try report.requireCoverage(of: labels, name) }
        return report
    }

    /// Runs an asynchronous `body` with `runs` different rows of choices; otherwise as the form above.
    @discardableResult
    public static func check(
        _ name: String, runs: Int = 100, seed: UInt64 = defaultSeed,
        regressions: [[UInt64]] = [], covering labels: [String] = [],
        while goOn: (PropertyReport) -> Bool = { _ in true }, fileID: String = #fileID,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (inout Choices) async throws -> Void
    ) async throws -> PropertyReport {
        let plan = try PropertyPlan(name, runs, seed, regressions, fileID)
        var report = PropertyReport()
        func attempt(_ start: Choices) async -> Counterexample? {
            var choices = start
            do {
                try await IssueRecorder.run { try await body(&choices) }
            } catch { return Counterexample(choices, error) }
            report.add(choices)
            return nil
        }
        for start in plan.starts {
            guard goOn(report) else { break }
            guard let first = await attempt(start.choices) else { continue }
            var shrinker = Shrinker(first, runsMax: shrinkingRunsMax)
            while let row = shrinker.candidate() {
                shrinker.report(await attempt(Choices(replaying: row)))
            }
            throw try plan.failure(start, shrinker.best, shrinkingRuns: shrinker.runs)
        }
        if !plan.isSingle { try report.requireCoverage(of: labels, name) }
        return report
    }
}
