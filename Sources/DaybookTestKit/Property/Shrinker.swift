// Makes a counterexample simpler, pass by pass, until a whole round of passes changes nothing. A state
// machine that says what to try next, so that synchronous and asynchronous properties share it. What
// a pass tries is in ShrinkPass. Driven by Property.

/// Which row of choices to try next, given how the last one came out.
struct Shrinker {
    private(set) var best: Counterexample
    /// Rows tried so far.
    private(set) var runs = 0

    private let runsMax: Int
    private var tried: Set<[UInt64]> = []
    private var pass = 0
    /// Which of the pass's edits is next.
    private var place = 0
    /// Where a pass searches: below this, the number at the place is known to pass.
    private var low: UInt64 = 0
    private var hasImproved = false

    init(_ first: Counterexample, runsMax: Int) {
        best = first
        self.runsMax = runsMax
    }

    /// The next row to try, or nil when nothing gets simpler any more.
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
            goOn(isBetter: false)
        }
        return nil
    }

    /// Takes in how the candidate came out: how it failed, or nil if it did not.
    mutating func report(_ failure: Counterexample?) {
        runs += 1
        let better = failure.flatMap { $0.isSimpler(than: best) ? $0 : nil }
        let top = searched
        if let better {
            best = better
            hasImproved = true
        }
        goOn(isBetter: better != nil, top)
    }

    /// The number that a search makes smaller.
    private var searched: UInt64? { ShrinkPass.all[pass].searched(in: best, at: place) }

    private mutating func goOn(isBetter: Bool, _ top: UInt64? = nil) {
        guard let top = top ?? searched else {
            // After a success the same place holds something else.
            if !isBetter { nextPlace() }
            return
        }
        if !isBetter { low += (top - low) / 2 + 1 }
    }

    private mutating func nextPlace() {
        place += 1
        low = 0
    }

    /// False at the end of a round without success.
    private mutating func nextPass() -> Bool {
        (place, low) = (0, 0)
        pass += 1
        guard pass == ShrinkPass.all.count else { return true }
        pass = 0
        defer { hasImproved = false }
        return hasImproved
    }
}
