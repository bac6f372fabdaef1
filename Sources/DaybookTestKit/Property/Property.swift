// Runs a property many times with generated choices; on a failure, shrinks it and says how to see it
// again. Knows no test framework: it throws, and any framework shows what was thrown.
//
// Deterministic unless the environment says otherwise: DAYBOOK_SEED=<n> makes every property do the
// one run of that seed (what a failure report asks for); DAYBOOK_EXPLORE=<n> begins elsewhere.

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Checking of properties.
public enum Property {
    /// The seed properties begin with.
    public static let defaultSeed: UInt64 = 0xDA1B_00C5
    /// How many simpler inputs are tried after a failure.
    public static let shrinkingRunsMax = 500

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
    ///   - labels: what must have happened, by `Choices.count(_:by:)`, at least once in all runs
    ///     together. Not asked where a seed from the environment makes it a single run.
    ///   - goOn: asked before each run, with what was done so far; false ends the check early.
    ///   - fileID: the file of the test, for the failure report.
    ///   - body: throws where the property does not hold. Must depend on nothing but its choices.
    /// - Returns: how many runs were done, and what was counted in them.
    /// - Throws: `PropertyFailure` with the shrunk counterexample; `CoverageFailure` if all runs went
    ///   well but a label was never counted.
    @discardableResult
    public static func check(
        _ name: String, runs: Int = 100, seed: UInt64 = defaultSeed, covering labels: [String] = [],
        while goOn: (PropertyReport) -> Bool = { _ in true }, fileID: String = #fileID,
        _ body: (inout Choices) throws -> Void
    ) throws -> PropertyReport {
        var report = PropertyReport()
        func attempt(_ start: Choices) -> Counterexample? {
            var choices = start
            do { try body(&choices) } catch { return Counterexample(choices, error) }
            report.add(choices)
            return nil
        }
        for (run, seed) in seeds(runs, seed) {
            guard goOn(report) else { break }
            guard let first = attempt(Choices(seed: seed)) else { continue }
            var shrinker = Shrinker(first, runsMax: shrinkingRunsMax)
            while let row = shrinker.candidate() {
                shrinker.report(attempt(Choices(replaying: row)))
            }
            throw failure(name, run, seed, shrinker, fileID)
        }
        try requireCoverage(of: labels, name, report)
        return report
    }

    /// Runs an asynchronous `body` with `runs` different rows of choices; otherwise as the form above.
    @discardableResult
    public static func check(
        _ name: String, runs: Int = 100, seed: UInt64 = defaultSeed, covering labels: [String] = [],
        while goOn: (PropertyReport) -> Bool = { _ in true }, fileID: String = #fileID,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (inout Choices) async throws -> Void
    ) async throws -> PropertyReport {
        var report = PropertyReport()
        func attempt(_ start: Choices) async -> Counterexample? {
            var choices = start
            do { try await body(&choices) } catch { return Counterexample(choices, error) }
            report.add(choices)
            return nil
        }
        for (run, seed) in seeds(runs, seed) {
            guard goOn(report) else { break }
            guard let first = await attempt(Choices(seed: seed)) else { continue }
            var shrinker = Shrinker(first, runsMax: shrinkingRunsMax)
            while let row = shrinker.candidate() {
                shrinker.report(await attempt(Choices(replaying: row)))
            }
            throw failure(name, run, seed, shrinker, fileID)
        }
        try requireCoverage(of: labels, name, report)
        return report
    }

    private static func requireCoverage(
        of labels: [String], _ name: String, _ report: PropertyReport
    ) throws {
        guard environment("DAYBOOK_SEED") == nil else { return }
        let missing = labels.filter { report.counts[$0] == nil }
        if !missing.isEmpty { throw CoverageFailure(name: name, missing: missing, report: report) }
    }

    private static func seeds(
        _ runs: Int, _ seed: UInt64
    ) -> some Sequence<(run: Int, seed: UInt64)> {
        let only = environment("DAYBOOK_SEED")
        let start = environment("DAYBOOK_EXPLORE") ?? seed
        return (0..<(only == nil ? runs : 1)).lazy.map {
            ($0 + 1, only ?? SeededRandom.seed(ofRun: $0, from: start))
        }
    }

    private static func environment(_ name: String) -> UInt64? {
        guard let value = getenv(name) else { return nil }
        let text = String(cString: value)
        let number =
            text.hasPrefix("0x") ? UInt64(text.dropFirst(2), radix: 16) : UInt64(text)
        // A seed that cannot be read would silently test something else.
        guard let number else { preconditionFailure("\(name)=\(text) is not a number") }
        return number
    }

    private static func failure(
        _ name: String, _ run: Int, _ seed: UInt64, _ shrinker: Shrinker, _ fileID: String
    ) -> PropertyFailure {
        let filter = fileID.replacing(".swift", with: "").replacing("/", with: ".")
        return PropertyFailure(
            name: name, seed: seed, run: run, choices: shrinker.best.choices,
            notes: shrinker.best.notes, cause: shrinker.best.cause, shrinkingRuns: shrinker.runs,
            reproduction: "DAYBOOK_SEED=0x\(String(seed, radix: 16)) swift test --filter \(filter)")
    }
}
