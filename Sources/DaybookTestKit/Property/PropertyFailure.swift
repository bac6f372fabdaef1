// What a property throws when it does not hold: everything one needs to see it fail again.
// Made by Property.

/// A property that does not hold, with its simplest known counterexample.
public struct PropertyFailure: Error, CustomStringConvertible {
    /// The property.
    public let name: String
    /// The seed of the failing run.
    public let seed: UInt64
    /// Which run failed, from 1.
    public let run: Int
    /// The choices of the shrunk counterexample; `Choices(replaying:)` takes them.
    public let choices: [UInt64]
    /// What the property noted about the shrunk counterexample.
    public let notes: [String]
    /// The error of the shrunk counterexample.
    public let cause: any Error
    /// Runs spent on shrinking.
    public let shrinkingRuns: Int
    /// A shell line that runs exactly this again.
    public let reproduction: String

    /// All of it, in several lines.
    public var description: String {
        var shown = choices.prefix(64).map(String.init).joined(separator: ", ")
        if choices.count > 64 { shown += ", … (\(choices.count) in all)" }
        var lines = ["\(name): does not hold (run \(run), shrunk in \(shrinkingRuns) runs)"]
        lines.append("  cause: \(cause)")
        lines += notes.map { "  note: \($0)" }
        lines.append("  choices: [\(shown)]")
        lines.append("  again: \(reproduction)")
        return lines.joined(separator: "\n")
    }
}
