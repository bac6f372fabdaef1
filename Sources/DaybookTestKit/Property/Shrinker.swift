// Makes a counterexample simpler: delete runs of choices, zero them, then search each for a smaller
// value. A state machine that says what to try next, so that synchronous and asynchronous properties
// share it. Driven by Property.

/// Which row of choices to try next, given how the last one came out.
struct Shrinker {
    private(set) var best: Counterexample
    /// Rows tried so far.
    private(set) var runs = 0

    private enum Pass {
        case delete(size: Int, at: Int)
        case zero(size: Int, at: Int)
        /// Known to fail: the present value; known to pass: everything below `low`.
        case search(at: Int, low: UInt64)
    }
    private var pass: Pass
    private var improved = false
    private let runsMax: Int

    init(_ first: Counterexample, runsMax: Int) {
        best = first
        self.runsMax = runsMax
        pass = .delete(size: 16, at: first.choices.count)
    }

    /// The next row to try, or nil when nothing gets simpler any more.
    mutating func candidate() -> [UInt64]? {
        guard runs < runsMax else { return nil }
        while true {
            var row = best.choices
            switch pass {
            case .delete(let size, let at):
                if at >= size, size <= row.count {
                    let end = min(at, row.count)
                    row.removeSubrange(end - size..<end)
                    return row
                }
                pass =
                    size > 1
                    ? .delete(size: size / 2, at: row.count) : .zero(size: 8, at: row.count)
            case .zero(let size, let at):
                let end = min(at, row.count)
                if end >= size {
                    if row[end - size..<end].contains(where: { $0 != 0 }) {
                        for index in end - size..<end { row[index] = 0 }
                        return row
                    }
                    pass = .zero(size: size, at: end - 1)
                } else {
                    pass =
                        size > 1 ? .zero(size: size / 2, at: row.count) : .search(at: 0, low: 0)
                }
            case .search(let at, let low):
                if at < row.count {
                    if low < row[at] {
                        row[at] = low + (row[at] - low) / 2
                        return row
                    }
                    pass = .search(at: at + 1, low: 0)
                } else {
                    guard improved else { return nil }
                    improved = false
                    pass = .delete(size: 16, at: row.count)
                }
            }
        }
    }

    /// Takes in how the candidate came out: how it failed, or nil if it did not.
    mutating func report(_ failure: Counterexample?) {
        runs += 1
        let better = failure.flatMap { $0.isSimpler(than: best) ? $0 : nil }
        let before = best.choices
        if let better {
            best = better
            improved = true
        }
        switch pass {
        case .delete(let size, let at):
            pass = .delete(size: size, at: better == nil ? at - 1 : min(at, best.choices.count))
        case .zero(let size, let at):
            pass = .zero(size: size, at: min(at, before.count) - 1)
        case .search(let at, let low):
            let tried = low + (before[at] - low) / 2
            pass = .search(at: at, low: better == nil ? tried + 1 : low)
        }
    }
}
