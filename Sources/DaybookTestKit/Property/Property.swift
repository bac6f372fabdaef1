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
    ///   - runs: how many rows of choices are tried.
    ///   - seed: where the row of seeds begins.
    ///   - fileID: the file of the test, for the failure report.
    ///   - body: throws where the property does not hold. Must depend on nothing but its choices.
    /// - Throws: `PropertyFailure` with the shrunk counterexample.
    public static func check(
        _ name: String, runs: Int = 100, seed: UInt64 = defaultSeed, fileID: String = #fileID,
        _ body: (inout Choices) throws -> Void
    ) throws {
        func attempt(_ start: Choices) -> Counterexample? {
            var choices = start
            do { try body(&choices) } catch { return Counterexample(choices, error) }
            return nil
        }
        for (run, seed) in seeds(runs, seed) {
            guard let first = attempt(Choices(seed: seed)) else { continue }
            var shrinker = Shrinker(first, runsMax: shrinkingRunsMax)
            while let row = shrinker.candidate() {
                shrinker.report(attempt(Choices(replaying: row)))
            }
            throw failure(name, run, seed, shrinker, fileID)
        }
    }

    /// Runs an asynchronous `body` with `runs` different rows of choices; otherwise as
    /// `check(_:runs:seed:fileID:_:)`.
    public static func check(
        _ name: String, runs: Int = 100, seed: UInt64 = defaultSeed, fileID: String = #fileID,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (inout Choices) async throws -> Void
    ) async throws {
        func attempt(_ start: Choices) async -> Counterexample? {
            var choices = start
            do { try await body(&choices) } catch { return Counterexample(choices, error) }
            return nil
        }
        for (run, seed) in seeds(runs, seed) {
            guard let first = await attempt(Choices(seed: seed)) else { continue }
            var shrinker = Shrinker(first, runsMax: shrinkingRunsMax)
            while let row = shrinker.candidate() {
                shrinker.report(await attempt(Choices(replaying: row)))
            }
            throw failure(name, run, seed, shrinker, fileID)
        }
    }

    private static func seeds(_ runs: Int, _ seed: UInt64) -> [(run: Int, seed: UInt64)] {
        if let only = environment("DAYBOOK_SEED") { return [(1, only)] }
        let start = environment("DAYBOOK_EXPLORE") ?? seed
        return (0..<runs).map { ($0 + 1, SeededRandom.seed(ofRun: $0, from: start)) }
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
