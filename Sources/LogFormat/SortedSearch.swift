// Binary search in sorted collections: positions, frames, events of a queue.

extension RandomAccessCollection where Index == Int {
    /// The index of the first element that satisfies `holds`; `endIndex` if none does. No element that
    /// satisfies `holds` may come before one that does not. O(log n).
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
