// Finding a place in what is sorted: positions, frames, events of a queue.

extension RandomAccessCollection where Index == Int {
    /// The first index whose element, and all behind it, a condition holds for; `endIndex` if there
    /// is none. The elements must be sorted accordingly. O(log n).
    @inlinable
    package func partitioningIndex(where holds: (Element) -> Bool) -> Int {
        var low = startIndex
        var high = endIndex
        while low < high {
            let middle = low + (high - low) / 2
            if holds(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
