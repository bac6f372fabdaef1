// A sorted set that is cheap to copy. A view keeps it beside its entries, to list them in order without
// sorting.

/// A sorted set whose copies share their structure. Inlinable, so that other modules specialise it for their
/// own element types.
///
/// A tree of three levels: chunks of elements, groups of chunks, and the list of groups. A change to a copy
/// copies one chunk, one group and the list of groups. Removals merge no chunks or groups: costs in groups
/// depend on the greatest number of elements that the set has had. To visit all elements, iterate; do not
/// index.
public struct SortedIndex<Element: Comparable & Sendable>: Sendable {
    /// A run of at most 64 adjacent chunks.
    @usableFromInline struct Group: Sendable {
        /// The chunks, none empty. The elements ascend within and across chunks.
        @usableFromInline var chunks: [[Element]]
        /// The number of elements in the chunks.
        @usableFromInline var count: Int

        @inlinable init(_ chunks: [[Element]]) {
            self.chunks = chunks
            count = chunks.reduce(0) { $0 + $1.count }
        }
    }

    /// The location of an element.
    @usableFromInline struct Place: Equatable {
        @usableFromInline var group = 0
        @usableFromInline var chunk = 0
        @usableFromInline var index = 0

        @inlinable init() {}
    }

    /// The groups, none empty. The elements ascend across groups.
    @usableFromInline var groups: [Group] = []
    /// The number of elements.
    @inlinable public var count: Int { stored }
    /// The storage of `count`.
    @usableFromInline var stored = 0

    @inlinable static var chunkMax: Int { 128 }
    @inlinable static var groupMax: Int { 64 }

    /// Creates an empty set.
    @inlinable public init() {}

    /// Creates a set of elements in ascending order, without duplicates. O(n).
    @inlinable public init(sorted: [Element]) {
        stored = sorted.count
        // Half full, to leave space for insertions.
        func parts<Item>(_ items: [Item], _ size: Int) -> [[Item]] {
            stride(from: 0, to: items.count, by: size).map {
                Array(items[$0..<Swift.min($0 + size, items.count)])
            }
        }
        groups = parts(parts(sorted, Self.chunkMax / 2), Self.groupMax / 2).map { Group($0) }
    }

    /// Inserts an element, or replaces the equivalent one: the one that is neither less nor greater.
    ///
    /// - Complexity: O(log n) comparisons; moves at most 128 elements, 64 chunks and n / 2,048 groups.
    @inlinable public mutating func insert(_ element: Element) {
        guard !groups.isEmpty else {
            stored = 1
            groups = [Group([[element]])]
            return
        }
        var place = place(of: element)
        if let existing = self[place], !(element < existing) {
            groups[place.group].chunks[place.chunk][place.index] = element
            return
        }
        stored += 1
        if place.group == groups.count {
            place.group -= 1
            place.chunk = groups[place.group].chunks.count - 1
            place.index = groups[place.group].chunks[place.chunk].count
        }
        groups[place.group].chunks[place.chunk].insert(element, at: place.index)
        groups[place.group].count += 1
        Self.splitIfFull(&groups[place.group].chunks, place.chunk)
        guard groups[place.group].chunks.count > Self.groupMax else { return }
        let chunks = groups[place.group].chunks
        let half = chunks.count / 2
        groups[place.group] = Group(Array(chunks[..<half]))
        groups.insert(Group(Array(chunks[half...])), at: place.group + 1)
    }

    /// Splits a chunk that has more than `chunkMax` elements into two.
    @inlinable static func splitIfFull(_ chunks: inout [[Element]], _ chunk: Int) {
        let count = chunks[chunk].count
        guard count > chunkMax else { return }
        let upper = Array(chunks[chunk][(count / 2)...])
        chunks[chunk].removeSubrange((count / 2)...)
        chunks.insert(upper, at: chunk + 1)
    }

    /// Removes an element. Does nothing if the set does not contain it.
    ///
    /// - Complexity: as `insert`.
    @inlinable public mutating func remove(_ element: Element) {
        let place = place(of: element)
        guard self[place] == element else { return }
        groups[place.group].chunks[place.chunk].remove(at: place.index)
        groups[place.group].count -= 1
        stored -= 1
        guard groups[place.group].chunks[place.chunk].isEmpty else { return }
        groups[place.group].chunks.remove(at: place.chunk)
        if groups[place.group].chunks.isEmpty { groups.remove(at: place.group) }
    }

    /// Replaces an element. Nil for the old one inserts the new one, nil for the new one removes the old one.
    ///
    /// - Complexity: as `insert`, twice if the two are at different places.
    @inlinable public mutating func replace(_ old: Element?, with new: Element?) {
        guard let new else { return old.map { remove($0) } ?? () }
        guard let old else { return insert(new) }
        let place = place(of: old)
        if !(old < new), !(new < old), self[place] == old {
            groups[place.group].chunks[place.chunk][place.index] = new
        } else {
            remove(old)
            insert(new)
        }
    }

    /// The least element. O(1).
    @inlinable public var first: Element? { groups.first?.chunks.first?.first }

    /// The greatest element. O(1).
    @inlinable public var last: Element? { groups.last?.chunks.last?.last }

    /// The least element that is greater than `element`. O(log n).
    @inlinable public func first(after element: Element) -> Element? {
        self[place(after: element)]
    }

    /// An element near the middle. O(1).
    @inlinable public var middle: Element? {
        guard !groups.isEmpty else { return nil }
        let chunks = groups[groups.count / 2].chunks
        return chunks[chunks.count / 2].first
    }

    /// The elements, ascending. O(1) each.
    @inlinable public var ascending: some Sequence<Element> { self }

    /// The elements, descending. O(1) each.
    @inlinable public var descending: some Sequence<Element> {
        groups.lazy.reversed().flatMap { group in
            group.chunks.lazy.reversed().flatMap { $0.lazy.reversed() }
        }
    }

    /// The elements of the range `lower..<upper`, ascending. O(log n), and O(1) each.
    @inlinable public func elements(
        from lower: Element, upTo upper: Element
    ) -> some Sequence<Element> {
        IteratorSequence(Iterator(groups, from: place(of: lower), upTo: upper))
    }

    /// At most `limit` elements after `element`, which need not be in the set; for nil, the first ones.
    ///
    /// - Complexity: O(log n + limit).
    @inlinable public func page(after element: Element?, limit: Int) -> [Element] {
        let start = element.map { place(after: $0) } ?? Place()
        return Array(IteratorSequence(Iterator(groups, from: start)).prefix(Swift.max(0, limit)))
    }

    /// The element at a place; nil at the end.
    @inlinable subscript(place: Place) -> Element? {
        place.group < groups.count ? groups[place.group].chunks[place.chunk][place.index] : nil
    }

    /// The place of the first element that is not less than `element`.
    @inlinable func place(of element: Element) -> Place {
        var place = Place()
        place.group = Self.first(groups) { ($0.chunks.last?.last).map { $0 < element } ?? false }
        guard place.group < groups.count else { return place }
        let chunks = groups[place.group].chunks
        place.chunk = Self.first(chunks) { $0.last.map { $0 < element } ?? false }
        place.index = Self.first(chunks[place.chunk]) { $0 < element }
        return place
    }

    /// The place of the first element that is greater than `element`.
    @inlinable func place(after element: Element) -> Place {
        var place = place(of: element)
        if let existing = self[place], !(element < existing) { advance(&place) }
        return place
    }

    /// Moves a place to the next element, or to the end.
    @inlinable func advance(_ place: inout Place) {
        place.index += 1
        guard place.index == groups[place.group].chunks[place.chunk].count else { return }
        (place.chunk, place.index) = (place.chunk + 1, 0)
        guard place.chunk == groups[place.group].chunks.count else { return }
        (place.group, place.chunk) = (place.group + 1, 0)
    }

    /// The index of the first item for which `isBefore` is false; `items.count` if there is none. Binary
    /// search.
    @inlinable static func first<Item>(_ items: [Item], _ isBefore: (Item) -> Bool) -> Int {
        var low = 0
        var high = items.count
        while low < high {
            let middle = (low + high) / 2
            if isBefore(items[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
