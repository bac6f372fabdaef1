// The failure of one run, before and while it is shrunk. Between Property and Shrinker.

/// A row of choices that made a property fail, and how.
struct Counterexample {
    var choices: [UInt64]
    /// What was drawn as one thing: by depth, then from left to right.
    var groups: [Choices.Group]
    var notes: [String]
    var cause: any Error

    init(_ choices: Choices, _ cause: any Error) {
        self.choices = choices.recorded
        groups = choices.groups.filter { !$0.range.isEmpty }
            .sorted { ($0.depth, $0.range.lowerBound) < ($1.depth, $1.range.lowerBound) }
        notes = choices.notes
        self.cause = cause
    }

    func isSimpler(than other: Counterexample) -> Bool {
        choices.isSimpler(than: other.choices)
    }
}

extension [UInt64] {
    /// Shorter is simpler; of the same length, the one with the smaller number where they differ
    /// first.
    func isSimpler(than other: [UInt64]) -> Bool {
        count == other.count ? lexicographicallyPrecedes(other) : count < other.count
    }
}
