// The failure of one run, which Property reports and Shrinker simplifies.

/// A row of choices with which a property failed, and the failure.
struct Counterexample {
    var choices: [UInt64]
    /// The groups of choices, by depth, then by position.
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
    /// True if the row is shorter, or of equal length and lexicographically smaller.
    func isSimpler(than other: [UInt64]) -> Bool {
        count == other.count ? lexicographicallyPrecedes(other) : count < other.count
    }
}
