// The error of a property that does not hold, with everything that is needed to reproduce it.

/// A property that does not hold, with its simplest known counterexample.
public struct PropertyFailure: Error, CustomStringConvertible {
    /// The property.
    public let name: String
    /// The seed of the failing run; nil for a regression or a saved failure.
    public let seed: UInt64?
    /// The number of the failing run, from 1; 0 for a regression or a saved failure.
    public let run: Int
    /// The choices of the shrunk counterexample, for `Choices(replaying:)`.
    public let choices: [UInt64]
    /// The notes of the shrunk counterexample.
    public let notes: [String]
    /// The error of the shrunk counterexample.
    public let cause: any Error
    /// The number of runs of shrinking.
    public let shrinkingRuns: Int
    /// A shell command that repeats the failing run.
    public let reproduction: String

    /// The property, the cause, the notes, the choices and the command, one a line.
    public var description: String {
        let first = seed == nil ? "a known failure" : "run \(run)"
        var lines = ["\(name): does not hold (\(first), shrunk in \(shrinkingRuns) runs)"]
        lines.append("  cause: \(cause)")
        lines += notes.map { "  note: \($0)" }
        // Never shortened, so that they can be copied into `regressions`.
        lines.append("  choices: \(choices)")
        lines.append("  again: \(reproduction)")
        return lines.joined(separator: "\n")
    }
}
