// Elements in order, as a value that is cheap to copy: what a view keeps beside its entries to answer
// "the oldest first" without sorting. Never stored; it follows from the entries.

/// A sorted set in chunks.
package struct SortedIndex<Element: Comparable & Sendable>: Sendable {
    /// Ascending, none empty; within and between chunks.
    private var chunks: [[Element]] = []
    /// How many elements there are.
    package private(set) var count = 0

    private static var chunkMax: Int { 256 }

    package init() {}

    /// Adds an element that is not there. O(log n) comparisons; moves at most 256 elements and n / 128 chunks.
    package mutating func insert(_ element: Element) {
        count += 1
        guard !chunks.isEmpty else {
            chunks = [[element]]
            return
        }
        let chunk = min(self.chunk(for: element), chunks.count - 1)
        let index = Self.index(of: element, in: chunks[chunk])
        chunks[chunk].insert(element, at: index)
        guard chunks[chunk].count > Self.chunkMax else { return }
        let half = chunks[chunk].count / 2
        let rest = Array(chunks[chunk][half...])
        chunks[chunk].removeSubrange(half...)
        chunks.insert(rest, at: chunk + 1)
    }

    /// Takes out an element that is there. O(log n) comparisons; moves at most 256 elements and n / 128 chunks.
    package mutating func remove(_ element: Element) {
        let chunk = self.chunk(for: element)
        guard chunk < chunks.count else { return }
        let index = Self.index(of: element, in: chunks[chunk])
        guard index < chunks[chunk].count, chunks[chunk][index] == element else { return }
        chunks[chunk].remove(at: index)
        if chunks[chunk].isEmpty { chunks.remove(at: chunk) }
        count -= 1
    }

    /// The elements, ascending. O(1) each.
    package var ascending: some Sequence<Element> { chunks.lazy.joined() }

    /// The elements, descending. O(1) each.
    package var descending: some Sequence<Element> {
        chunks.lazy.reversed().flatMap { $0.lazy.reversed() }
    }

    /// The first chunk whose last element is not less.
    private func chunk(for element: Element) -> Int {
        var low = 0
        var high = chunks.count
        while low < high {
            let middle = (low + high) / 2
            if let last = chunks[middle].last, last < element {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }

    /// Where an element stands in a chunk, or would stand.
    private static func index(of element: Element, in chunk: [Element]) -> Int {
        var low = 0
        var high = chunk.count
        while low < high {
            let middle = (low + high) / 2
            if chunk[middle] < element { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
