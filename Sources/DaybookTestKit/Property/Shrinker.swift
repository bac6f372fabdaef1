// Simplifies a counterexample, pass by pass, until a complete round of passes changes nothing. It is a state
// machine that returns the next row of choices to run, so that synchronous and asynchronous properties share it.
// ShrinkPass has the edits.

/// The search for a simpler counterexample.
struct Shrinker {
    private(set) var best: Counterexample
    /// The number of candidates that were run.
    private(set) var runs = 0

    private let runsMax: Int
    private var tried: Set<[UInt64]> = []
    private var pass = 0
    /// The index of the pass's next edit.
    private var place = 0
    /// The lower end of a binary search: with smaller numbers at `place` the property passes.
    private var low: UInt64 = 0
    private var hasImproved = false

    init(_ first: Counterexample, runsMax: Int) {
        best = first
        self.runsMax = runsMax
    }

    /// Finds the next row of choices to run; nil at the end of the search.
    mutating func candidate() -> [UInt64]? {
        while runs < runsMax {
            let pass = ShrinkPass.all[pass]
            guard place < pass.places(in: best) else {
                guard nextPass() else { return nil }
                continue
            }
            guard let row = pass.edit(best, at: place, low: low) else {
                nextPlace()
                continue
            }
            if row.isSimpler(than: best.choices), tried.insert(row).inserted { return row }
            advance(isBetter: false)
        }
        return nil
    }

    /// Processes the result of the last candidate: its failure, or nil if it passed.
    mutating func report(_ failure: Counterexample?) {
        runs += 1
        let better = failure.flatMap { $0.isSimpler(than: best) ? $0 : nil }
        let top = searched
        if let better {
            best = better
            hasImproved = true
        }
        advance(isBetter: better != nil, top)
    }

    /// The choice that a binary search lowers; nil for a pass that does not search.
    private var searched: UInt64? { ShrinkPass.all[pass].searched(in: best, at: place) }

    private mutating func advance(isBetter: Bool, _ top: UInt64? = nil) {
        guard let top = top ?? searched else {
            // After a success the same place has another edit.
            if !isBetter { nextPlace() }
            return
        }
        if !isBetter { low += (top - low) / 2 + 1 }
    }

    private mutating func nextPlace() {
        place += 1
        low = 0
    }

    /// Goes to the next pass.
    ///
    /// - Returns: false at the end of a round without success.
    private mutating func nextPass() -> Bool {
        (place, low) = (0, 0)
        pass += 1
        guard pass == ShrinkPass.all.count else { return true }
        pass = 0
        defer { hasImproved = false }
        return hasImproved
    }
}
