// Which rows of choices a property is tried with, in which order, and what is told of a failure:
// what failed once comes first. Reads the environment. Between Property and Choices.

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// One check of a property.
package struct PropertyPlan {
    /// Where the choices of a run come from.
    package enum Start: Equatable {
        case seed(UInt64, run: Int)
        case regression([UInt64])
        case kept([UInt64])

        var choices: Choices {
            switch self {
            case .seed(let seed, _): Choices(seed: seed)
            case .regression(let row), .kept(let row): Choices(replaying: row)
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
            let begin = Self.number("DAYBOOK_EXPLORE", environment) ?? seed
            let known =
                regressions.map { Start.regression($0) }
                + (try corpus?.rows() ?? []).map { Start.kept($0) }
            let new = (0..<runs).lazy.map {
                Start.seed(SeededRandom.seed(ofRun: $0, from: begin), run: $0 + 1)
            }
            starts = [AnySequence(known), AnySequence(new)].joined()
        }
    }

    /// What is thrown for a failure that does not get simpler any more; keeps it, where the
    /// environment says so.
    func failure(
        _ start: Start, _ best: Counterexample, shrinkingRuns: Int
    ) throws -> PropertyFailure {
        try corpus?.keep(best.choices, of: name, cause: best.cause)
        var seed: UInt64?
        var run = 0
        var setting = ""
        switch start {
        case .seed(let value, let number):
            (seed, run) = (value, number)
            setting = "DAYBOOK_SEED=0x\(String(value, radix: 16)) "
        case .kept: setting = "DAYBOOK_CORPUS=\(Self.quoted(corpusFolder ?? "")) "
        case .regression: break
        }
        // The names of tests may hold spaces and quotes; their place in a file does not.
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
        // A seed that cannot be read would silently test something else.
        guard let number else { preconditionFailure("\(name)=\(text) is not a number") }
        return number
    }
}
