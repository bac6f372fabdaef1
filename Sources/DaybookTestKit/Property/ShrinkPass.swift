// The ways in which a counterexample is made simpler. Each is a number of places and an edit for each;
// an edit that does not apply gives nil. Groups (elements of arrays, steps of state machines) go
// first and as a whole, since a part of them seldom makes sense. Used by Shrinker.

/// One way of making a row of choices simpler.
enum ShrinkPass {
    /// Leaves out so many neighbouring groups, the last ones first.
    case deleteGroups(Int)
    /// Leaves out so many neighbouring choices, the last ones first.
    case deleteChoices(Int)
    /// Makes so many neighbouring choices 0, the last ones first.
    case zero(Int)
    /// Searches a smaller number for one choice.
    case lower
    /// The same for all choices with the same number: what must be equal stays so.
    case lowerEqual
    /// The same for one choice, giving what it loses to one so many places behind: a sum stays.
    case trade(distance: Int)
    /// Makes a choice smaller by 1 and leaves out so many somewhere behind it: a length and an
    /// element.
    case shorten(Int)
    /// Puts two neighbouring groups the other way round.
    case swapGroups

    static let all: [ShrinkPass] =
        [8, 4, 2, 1].map(deleteGroups) + [16, 8, 4, 2, 1].map(deleteChoices)
        + [8, 4, 2, 1].map(zero) + [.lower, .lowerEqual, .swapGroups]
        + [1, 2, 3].map(trade) + [1, 2, 3, 4].map(shorten)

    /// Rows longer than this are not tried for every pair of places.
    private static let pairsMax = 64

    /// How many edits there are to try.
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

    /// For a pass that searches: the number that is made smaller.
    func searched(in best: Counterexample, at place: Int) -> UInt64? {
        switch self {
        case .lower, .lowerEqual, .trade: best.choices[place]
        default: nil
        }
    }

    /// The row to try at a place; nil if there is nothing to try any more.
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

    /// What some groups of one depth that follow each other cover.
    private static func range(_ best: Counterexample, _ first: Int, _ count: Int) -> Range<Int>? {
        let groups = best.groups[first..<first + count]
        for (left, right) in zip(groups, groups.dropFirst())
        where left.depth != right.depth || left.range.upperBound != right.range.lowerBound {
            return nil
        }
        return best.groups[first].range.lowerBound..<best.groups[first + count - 1].range.upperBound
    }
}
