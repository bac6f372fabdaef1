// The passes that simplify a counterexample. A pass is a number of places and an edit for each; an edit that
// does not apply returns nil. Groups (elements of arrays, steps of state machines) are removed first and as a
// whole, since a part of one is seldom valid.

/// One way to simplify a row of choices.
enum ShrinkPass {
    /// Removes a number of adjacent groups, the last ones first.
    case deleteGroups(Int)
    /// Removes a number of adjacent choices, the last ones first.
    case deleteChoices(Int)
    /// Sets a number of adjacent choices to 0, the last ones first.
    case zero(Int)
    /// Searches for the smallest number of one choice.
    case lower
    /// Lowers all choices with the same number together, so that they stay equal.
    case lowerEqual
    /// Lowers one choice and raises another, `distance` later, by the same amount, so that their sum stays.
    case trade(distance: Int)
    /// Lowers one choice by 1 and removes a number of choices anywhere after it: a length and an element.
    case shorten(Int)
    /// Swaps two adjacent groups.
    case swapGroups

    static let all: [ShrinkPass] =
        [8, 4, 2, 1].map(deleteGroups) + [16, 8, 4, 2, 1].map(deleteChoices)
        + [8, 4, 2, 1].map(zero) + [.lower, .lowerEqual, .swapGroups]
        + [1, 2, 3].map(trade) + [1, 2, 3, 4].map(shorten)

    /// The length of the longest row of which `shorten` tries every pair of choices.
    private static let pairsMax = 64

    /// The number of edits.
    func places(in best: Counterexample) -> Int {
        let count = best.choices.count
        switch self {
        case .deleteGroups(let size): return max(0, best.groups.count - size + 1)
        case .deleteChoices(let size), .zero(let size): return max(0, count - size + 1)
        case .lower, .lowerEqual: return count
        case .trade(let distance): return max(0, count - distance)
        case .shorten: return count <= Self.pairsMax ? count * count : 0
        case .swapGroups: return max(0, best.groups.count - 1)
        }
    }

    /// The choice that a searching pass lowers; nil for other passes.
    func searched(in best: Counterexample, at place: Int) -> UInt64? {
        switch self {
        case .lower, .lowerEqual, .trade: best.choices[place]
        default: nil
        }
    }

    /// The row with the edit of a place; nil if the edit does not apply.
    ///
    /// - Parameter low: the lower end of a binary search; smaller numbers are known to pass.
    func edit(_ best: Counterexample, at place: Int, low: UInt64) -> [UInt64]? {
        var row = best.choices
        let last = places(in: best) - 1
        switch self {
        case .deleteGroups(let size):
            guard let range = Self.range(best, last - place, size) else { return nil }
            row.removeSubrange(range)
        case .deleteChoices(let size):
            row.removeSubrange(last - place..<last - place + size)
        case .zero(let size):
            let range = last - place..<last - place + size
            guard row[range].contains(where: { $0 != 0 }) else { return nil }
            for index in range { row[index] = 0 }
        case .lower, .lowerEqual, .trade:
            let top = row[place]
            guard low < top else { return nil }
            let new = low + (top - low) / 2
            if case .lowerEqual = self {
                guard row.firstIndex(of: top) == place, row.lastIndex(of: top) != place else {
                    return nil
                }
                for index in row.indices where row[index] == top { row[index] = new }
            } else {
                row[place] = new
                if case .trade(let distance) = self { row[place + distance] &+= top - new }
            }
        case .shorten(let size):
            let (length, at) = place.quotientAndRemainder(dividingBy: row.count)
            guard row[length] > 0, at > length, at + size <= row.count else { return nil }
            row[length] -= 1
            row.removeSubrange(at..<at + size)
        case .swapGroups:
            guard let first = Self.range(best, place, 1), let both = Self.range(best, place, 2)
            else { return nil }
            row.replaceSubrange(both, with: row[first.upperBound..<both.upperBound] + row[first])
        }
        return row
    }

    /// The range that `count` adjacent groups of the same depth cover; nil if they are not adjacent.
    private static func range(_ best: Counterexample, _ first: Int, _ count: Int) -> Range<Int>? {
        let groups = best.groups[first..<first + count]
        for (left, right) in zip(groups, groups.dropFirst())
        where left.depth != right.depth || left.range.upperBound != right.range.lowerBound {
            return nil
        }
        return best.groups[first].range.lowerBound..<best.groups[first + count - 1].range.upperBound
    }
}
