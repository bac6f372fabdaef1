// The rows of choices of a property in the order in which they are tried, earlier failures first, and the
// report of a failure. Reads the environment.

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The plan of one check of a property.
package struct PropertyPlan {
    /// The source of the choices of a run.
    package enum Start: Equatable {
        case seed(UInt64, run: Int)
        case regression([UInt64])
        case saved([UInt64])

        var choices: Choices {
            switch self {
            case .seed(let seed, _): Choices(seed: seed)
            case .regression(let row), .saved(let row): Choices(replaying: row)
            }
        }
    }

    private let name: String
    private let fileID: String
    private let corpus: Corpus?
    private let corpusFolder: String?
    /// The runs, in order.
    package let starts: any Sequence<Start>
    /// Whether the environment asks for a single run.
    let isSingle: Bool

    package init(
        _ name: String, _ runs: Int, _ seed: UInt64, _ regressions: [[UInt64]], _ fileID: String,
        environment: (String) -> String? = Self.environment
    ) throws {
        self.name = name
        self.fileID = fileID
        corpusFolder = environment("DAYBOOK_CORPUS")
        corpus = corpusFolder.map { Corpus(folder: $0, fileID: fileID, name: name) }
        let only = Self.number("DAYBOOK_SEED", environment)
        isSingle = only != nil
        if let only {
            starts = [.seed(only, run: 1)]
        } else {
            let firstSeed = Self.number("DAYBOOK_EXPLORE", environment) ?? seed
            let earlierFailures =
                regressions.map { Start.regression($0) }
                + (try corpus?.rows() ?? []).map { Start.saved($0) }
            let new = (0..<runs).lazy.map {
                Start.seed(SeededRandom.seed(ofRun: $0, from: firstSeed), run: $0 + 1)
            }
            starts = [AnySequence(earlierFailures), AnySequence(new)].joined()
        }
    }

    /// Makes the error of a shrunk failure, and saves its choices if the environment names a corpus.
    func failure(
        _ start: Start, _ best: Counterexample, shrinkingRuns: Int
    ) throws -> PropertyFailure {
        try corpus?.save(best.choices, of: name, cause: best.cause)
        var seed: UInt64?
        var run = 0
        var setting = ""
        switch start {
        case .seed(let value, let number):
            (seed, run) = (value, number)
            setting = "DAYBOOK_SEED=0x\(String(value, radix: 16)) "
        case .saved: setting = "DAYBOOK_CORPUS=\(Self.quoted(corpusFolder ?? "")) "
        case .regression: break
        }
        // The filter uses the file, because names of tests may contain spaces and quotes.
        let parts = fileID.split(separator: "/", maxSplits: 1)
        let filter = "^\(parts[0])\\..*/\(parts.last ?? "")".replacing(".swift", with: "\\.swift:")
        return PropertyFailure(
            name: name, seed: seed, run: run, choices: best.choices, notes: best.notes,
            cause: best.cause, shrinkingRuns: shrinkingRuns,
            reproduction: "\(setting)swift test --filter \(Self.quoted(filter))")
    }

    private static func quoted(_ word: String) -> String {
        "'" + word.replacing("'", with: "'\\''") + "'"
    }

    package static func environment(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    private static func number(
        _ name: String, _ environment: (String) -> String?
    ) -> UInt64? {
        guard let text = environment(name) else { return nil }
        let number =
            text.hasPrefix("0x") ? UInt64(text.dropFirst(2), radix: 16) : UInt64(text)
        // If an invalid seed were ignored, the wrong run would be tested silently.
        guard let number else { preconditionFailure("\(name)=\(text) is not a number") }
        return number
    }
}
