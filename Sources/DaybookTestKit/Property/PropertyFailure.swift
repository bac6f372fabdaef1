// What a property throws when it does not hold: everything one needs to see it fail again.
// Made by Property.

/// A property that does not hold, with its simplest known counterexample.
public struct PropertyFailure: Error, CustomStringConvertible {
    /// The property.
    public let name: String
    /// The seed of the failing run; nil for a known row of choices that fails again.
    public let seed: UInt64?
    /// Which run failed, from 1; 0 for a known row of choices.
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
        let first = seed == nil ? "a known failure" : "run \(run)"
        var lines = ["\(name): does not hold (\(first), shrunk in \(shrinkingRuns) runs)"]
        lines.append("  cause: \(cause)")
        lines += notes.map { "  note: \($0)" }
        // All of them, however many: they can be put among the regressions.
        lines.append("  choices: \(choices)")
        lines.append("  again: \(reproduction)")
        return lines.joined(separator: "\n")
    }
}
