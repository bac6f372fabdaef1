// A set of positions as runs of consecutive ones, because events of one type are often recorded together.
// Part of Outbox.

import LogFormat

/// A set of positions that grows at its end.
struct PositionSet: Hashable, Sendable {
    /// The runs in ascending order, with at least one position between two of them.
    private(set) var runs: [ClosedRange<UInt64>] = []

    /// The number of positions. O(runs).
    var count: Int { runs.reduce(0) { $0 + Int($1.upperBound - $1.lowerBound) + 1 } }

    /// Appends positions after all others. Does nothing if the range does not begin after them. O(1).
    mutating func append(_ range: ClosedRange<UInt64>) {
        guard let last = runs.last else { return runs = [range] }
        guard range.lowerBound > last.upperBound else { return }
        if range.lowerBound - last.upperBound == 1 {
            runs[runs.count - 1] = last.lowerBound...range.upperBound
        } else {
            runs.append(range)
        }
    }

    /// The index of the first run that ends at or after a position. O(log n).
    private func index(of position: UInt64) -> Int {
        runs.partitioningIndex { $0.upperBound >= position }
    }

    /// Whether any position of a range is in the set. O(log n).
    func intersects(_ range: ClosedRange<UInt64>) -> Bool {
        let index = index(of: range.lowerBound)
        return index < runs.count && runs[index].lowerBound <= range.upperBound
    }

    /// Removes the positions of a range. O(n) if the set has any of them, otherwise O(log n).
    mutating func subtract(_ range: ClosedRange<UInt64>) {
        let first = index(of: range.lowerBound)
        var end = first
        while end < runs.count, runs[end].lowerBound <= range.upperBound { end += 1 }
        guard first < end else { return }
        var remainders: [ClosedRange<UInt64>] = []
        if runs[first].lowerBound < range.lowerBound {
            remainders.append(runs[first].lowerBound...range.lowerBound - 1)
        }
        if runs[end - 1].upperBound > range.upperBound {
            remainders.append(range.upperBound + 1...runs[end - 1].upperBound)
        }
        runs.replaceSubrange(first..<end, with: remainders)
    }
}
