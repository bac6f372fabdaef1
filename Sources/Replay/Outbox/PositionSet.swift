// Positions as runs of consecutive ones: events of one kind tend to come together. Part of Outbox.

import LogFormat

/// A set of positions that grows at its end.
struct PositionSet: Hashable, Sendable {
    /// Ascending, with at least one position between two of them.
    private(set) var runs: [ClosedRange<UInt64>] = []

    /// Adds positions behind all others; if they are not, nothing. O(1).
    mutating func append(_ range: ClosedRange<UInt64>) {
        guard let last = runs.last else { return runs = [range] }
        guard range.lowerBound > last.upperBound else { return }
        if range.lowerBound - last.upperBound == 1 {
            runs[runs.count - 1] = last.lowerBound...range.upperBound
        } else {
            runs.append(range)
        }
    }

    /// The index of the first run that ends at or behind a position. O(log n).
    private func index(of position: UInt64) -> Int {
        runs.partitioningIndex { $0.upperBound >= position }
    }

    /// Whether any position of a range is in the set. O(log n).
    func intersects(_ range: ClosedRange<UInt64>) -> Bool {
        let index = index(of: range.lowerBound)
        return index < runs.count && runs[index].lowerBound <= range.upperBound
    }

    /// Takes out all positions of a range. O(n) where it holds any, else O(log n).
    mutating func subtract(_ range: ClosedRange<UInt64>) {
        let first = index(of: range.lowerBound)
        var end = first
        while end < runs.count, runs[end].lowerBound <= range.upperBound { end += 1 }
        guard first < end else { return }
        var rest: [ClosedRange<UInt64>] = []
        if runs[first].lowerBound < range.lowerBound {
            rest.append(runs[first].lowerBound...range.lowerBound - 1)
        }
        if runs[end - 1].upperBound > range.upperBound {
            rest.append(range.upperBound + 1...runs[end - 1].upperBound)
        }
        runs.replaceSubrange(first..<end, with: rest)
    }
}
