// The failure of one run, before and while it is shrunk. Between Property and Shrinker.

/// A row of choices that made a property fail, and how.
struct Counterexample {
    var choices: [UInt64]
    var notes: [String]
    var cause: any Error

    init(_ choices: Choices, _ cause: any Error) {
        self.choices = choices.recorded
        notes = choices.notes
        self.cause = cause
    }

    /// Shorter is simpler; of the same length, smaller numbers first are.
    func isSimpler(than other: Counterexample) -> Bool {
        if choices.count != other.choices.count { return choices.count < other.choices.count }
        return choices.lexicographicallyPrecedes(other.choices)
    }
}
