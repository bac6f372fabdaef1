// Elements in order, as a value that is cheap to copy: what a view keeps beside its entries to answer
// "the oldest first" without sorting. Never stored; it follows from the entries.

/// A sorted set in chunks. Inlined into other modules, which give it elements of their own types.
public struct SortedIndex<Element: Comparable & Sendable>: Sendable {
    /// Ascending, none empty; within and between chunks.
    @usableFromInline var chunks: [[Element]] = []
    /// How many elements there are.
    @inlinable public var count: Int { stored }
    /// The number behind `count`, which nothing else may set.
    @usableFromInline var stored = 0

    @inlinable static var chunkMax: Int { 256 }

    /// Creates an empty set.
    @inlinable public init() {}

    /// Elements that are in ascending order, none twice. O(n).
    @inlinable public init(sorted: [Element]) {
        stored = sorted.count
        // Half full: the next ones find room.
        let size = Self.chunkMax / 2
        chunks = stride(from: 0, to: sorted.count, by: size).map {
            Array(sorted[$0..<Swift.min($0 + size, sorted.count)])
        }
    }

    /// Adds an element that is not there. O(log n) comparisons; moves at most 256 elements and n / 128 chunks.
    @inlinable public mutating func insert(_ element: Element) {
        stored += 1
        guard !chunks.isEmpty else {
            chunks = [[element]]
            return
        }
        let chunk = Swift.min(self.chunk(for: element), chunks.count - 1)
        let index = Self.index(of: element, in: chunks[chunk])
        chunks[chunk].insert(element, at: index)
        guard chunks[chunk].count > Self.chunkMax else { return }
        let half = chunks[chunk].count / 2
        let rest = Array(chunks[chunk][half...])
        chunks[chunk].removeSubrange(half...)
        chunks.insert(rest, at: chunk + 1)
    }

    /// Takes out an element that is there. O(log n) comparisons; moves at most 256 elements and n / 128 chunks.
    @inlinable public mutating func remove(_ element: Element) {
        let chunk = self.chunk(for: element)
        guard chunk < chunks.count else { return }
        let index = Self.index(of: element, in: chunks[chunk])
        guard index < chunks[chunk].count, chunks[chunk][index] == element else { return }
        chunks[chunk].remove(at: index)
        if chunks[chunk].isEmpty { chunks.remove(at: chunk) }
        stored -= 1
    }

    /// The least element. O(1).
    @inlinable public var first: Element? { chunks.first?.first }

    /// The greatest element. O(1).
    @inlinable public var last: Element? { chunks.last?.last }

    /// The least element that is greater than another. O(log n).
    @inlinable public func first(after element: Element) -> Element? {
        var chunk = self.chunk(for: element)
        guard chunk < chunks.count else { return nil }
        var index = Self.index(of: element, in: chunks[chunk])
        if chunks[chunk][index] == element { index += 1 }
        if index == chunks[chunk].count { (chunk, index) = (chunk + 1, 0) }
        return chunk < chunks.count ? chunks[chunk][index] : nil
    }

    /// An element from somewhere in the middle. O(1).
    @inlinable public var middle: Element? {
        chunks.isEmpty ? nil : chunks[chunks.count / 2].first
    }

    /// The elements, ascending. O(1) each.
    @inlinable public var ascending: some Sequence<Element> { chunks.lazy.joined() }

    /// The elements, descending. O(1) each.
    @inlinable public var descending: some Sequence<Element> {
        chunks.lazy.reversed().flatMap { $0.lazy.reversed() }
    }

    /// The elements that are not less than the one and less than the other, ascending. O(log n), and
    /// O(1) each.
    @inlinable public func elements(
        from lower: Element, upTo upper: Element
    ) -> some Sequence<Element> {
        let (first, end) = (chunk(for: lower), chunk(for: upper))
        return chunks[Swift.min(first, end)..<Swift.min(end + 1, chunks.count)].enumerated().lazy
            .flatMap {
                index, chunk -> ArraySlice<Element> in
                let isLast = first + index == end
                let start = index == 0 ? Self.index(of: lower, in: chunk) : 0
                let stop = isLast ? Self.index(of: upper, in: chunk) : chunk.count
                return chunk[Swift.min(start, stop)..<stop]
            }
    }

    /// The first chunk whose last element is not less.
    @inlinable func chunk(for element: Element) -> Int {
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
    @inlinable static func index(of element: Element, in chunk: [Element]) -> Int {
        var low = 0
        var high = chunk.count
        while low < high {
            let middle = (low + high) / 2
            if chunk[middle] < element { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
