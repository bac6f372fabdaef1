// Runs a property many times with generated choices. On a failure, shrinks the choices and reports how to
// reproduce it. Depends on no test framework: it throws an error, which any framework shows.
//
// Runs are deterministic by default. DAYBOOK_SEED=<n> makes every property do only the run of that seed (a
// failure report asks for it); DAYBOOK_EXPLORE=<n> starts with another seed; DAYBOOK_CORPUS=<folder> saves
// failures in a folder and tries the saved ones first.

/// Functions that check properties.
public enum Property {
    /// The first seed of a property.
    public static let defaultSeed: UInt64 = 0xDA1B_00C5
    /// The highest number of simpler inputs that are tried after a failure.
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
    ///   - name: the property in words, for the failure report.
    ///   - runs: the highest number of rows of choices.
    ///   - seed: the seed from which the seeds of the runs follow.
    ///   - regressions: the choices of fixed failures, copied from their reports; they are tried first. If
    ///     `body` changes the way it draws its choices, they give other inputs.
    ///   - labels: the labels that must be counted with `Choices.count(_:by:)` at least once in all runs
    ///     together. Ignored for the single run of a seed from the environment.
    ///   - shouldContinue: called before each run with the report so far; false ends the check early.
    ///   - fileID: the file of the test, for the failure report.
    ///   - body: throws if the property does not hold. Must depend on nothing but its choices.
    /// - Returns: the number of runs, and the counts of labels.
    /// - Throws: `PropertyFailure` with the shrunk counterexample; `CoverageFailure` if all runs passed but a
    ///   label was never counted; `CorpusError` for a file of saved failures that cannot be parsed.
    @discardableResult
    public static func check(
        _ name: String, runs: Int = 100, seed: UInt64 = defaultSeed,
        regressions: [[UInt64]] = [], covering labels: [String] = [],
        while shouldContinue: (PropertyReport) -> Bool = { _ in true }, fileID: String = #fileID,
        _ body: (inout Choices) throws -> Void
    ) throws -> PropertyReport {
        let plan = try PropertyPlan(name, runs, seed, regressions, fileID)
        var report = PropertyReport()
        func attempt(_ start: Choices) -> Counterexample? {
            var choices = start
            do {
                try IssueRecorder.run { try body(&choices) }
            } catch { return Counterexample(choices, error) }
            report.recordRun(choices)
            return nil
        }
        for start in plan.starts {
            guard shouldContinue(report) else { break }
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

    /// Runs an asynchronous `body` with `runs` different rows of choices; otherwise the same as the
    /// synchronous form.
    @discardableResult
    public static func check(
        _ name: String, runs: Int = 100, seed: UInt64 = defaultSeed,
        regressions: [[UInt64]] = [], covering labels: [String] = [],
        while shouldContinue: (PropertyReport) -> Bool = { _ in true }, fileID: String = #fileID,
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
            report.recordRun(choices)
            return nil
        }
        for start in plan.starts {
            guard shouldContinue(report) else { break }
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
