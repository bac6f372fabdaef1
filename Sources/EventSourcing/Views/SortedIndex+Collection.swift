// A sorted set as a collection: elements by offset, pages, equality and differences that cost what changed,
// since chunks that nobody touched are the same memory in both values.

/// A collection whose copies share what they have in common, so that it is quick to tell what changed
/// between two of them.
public protocol StructureSharing: RandomAccessCollection {
    /// What must be removed from `other` and inserted to get this collection. An element that changed and
    /// kept its place is removed and inserted at one offset.
    func changes(since other: Self) -> CollectionDifference<Element>
}

extension SortedIndex: RandomAccessCollection {
    @inlinable public var startIndex: Int { 0 }
    @inlinable public var endIndex: Int { count }
    @inlinable public var isEmpty: Bool { count == 0 }

    /// The element at an offset. O(n / 128).
    @inlinable public subscript(offset: Int) -> Element {
        precondition(offset >= 0 && offset < count, "the offset is in the collection")
        var rest = offset
        for chunk in chunks {
            if rest < chunk.count { return chunk[rest] }
            rest -= chunk.count
        }
        preconditionFailure("the chunks have as many elements as the collection")
    }

    @inlinable public func makeIterator() -> Iterator { Iterator(chunks) }

    /// The elements, ascending. O(1) each.
    public struct Iterator: IteratorProtocol {
        @usableFromInline let chunks: [[Element]]
        @usableFromInline var chunk = 0
        @usableFromInline var index = 0

        @inlinable init(_ chunks: [[Element]]) { self.chunks = chunks }

        @inlinable public mutating func next() -> Element? {
            guard chunk < chunks.count else { return nil }
            let element = chunks[chunk][index]
            index += 1
            if index == chunks[chunk].count { (chunk, index) = (chunk + 1, 0) }
            return element
        }
    }

    /// At most `limit` elements behind another, which need not be there; the first ones for nil.
    ///
    /// - Complexity: O(log n + limit).
    @inlinable public func page(after element: Element?, limit: Int) -> [Element] {
        var page: [Element] = []
        var chunk = element.map { self.chunk(for: $0) } ?? 0
        guard chunk < chunks.count else { return page }
        var index = element.map { Self.index(of: $0, in: chunks[chunk]) } ?? 0
        if let element, index < chunks[chunk].count, !(element < chunks[chunk][index]) {
            index += 1
        }
        while page.count < limit, chunk < chunks.count {
            page += chunks[chunk][index...].prefix(limit - page.count)
            (chunk, index) = (chunk + 1, 0)
        }
        return page
    }

    /// Puts an element in the place of one that is there, or inserts it.
    ///
    /// - Complexity: O(log n) comparisons where both have one place in the order; otherwise that of
    ///   `remove` and `insert`.
    @inlinable public mutating func replace(_ old: Element?, with new: Element) {
        guard let old else { return insert(new) }
        if !(old < new), !(new < old) {
            let chunk = self.chunk(for: old)
            if chunk < chunks.count {
                let index = Self.index(of: old, in: chunks[chunk])
                if index < chunks[chunk].count, chunks[chunk][index] == old {
                    chunks[chunk][index] = new
                    return
                }
            }
        }
        remove(old)
        insert(new)
    }
}

extension SortedIndex: Equatable {
    /// Equal if all elements are. O(n / 128) for copies that differ in little.
    @inlinable public static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.count == rhs.count && lhs.forEachChange(since: rhs) { _, _, _, _ in false }
    }
}

extension SortedIndex: StructureSharing {
    /// What changed since another state. O(n / 128) for copies that differ in little, and the changes.
    @inlinable public func changes(since other: Self) -> CollectionDifference<Element> {
        var changes: [CollectionDifference<Element>.Change] = []
        _ = forEachChange(since: other) { oldOffset, old, newOffset, new in
            let isReplaced = old != nil && new != nil
            if let old {
                changes.append(
                    .remove(
                        offset: oldOffset, element: old,
                        associatedWith: isReplaced ? newOffset : nil))
            }
            if let new {
                changes.append(
                    .insert(
                        offset: newOffset, element: new,
                        associatedWith: isReplaced ? oldOffset : nil))
            }
            return true
        }
        guard let difference = CollectionDifference(changes) else {
            preconditionFailure("each offset is removed or inserted once")
        }
        return difference
    }

    /// Calls the closure with each element that one of two states has and the other has not, in order: an
    /// element that was replaced at its place as both. Chunks that are the same memory are passed over.
    ///
    /// - Returns: false if the closure returned false, which ends the walk.
    @inlinable func forEachChange(
        since other: Self,
        _ body: (_ oldOffset: Int, _ old: Element?, _ newOffset: Int, _ new: Element?) -> Bool
    ) -> Bool {
        if Self.isSameMemory(chunks, other.chunks) { return true }
        var (old, new) = (Cursor(), Cursor())
        while true {
            skipSharedChunks(other, &old, &new)
            let (oldElement, newElement) = (old.element(in: other), new.element(in: self))
            guard let oldElement else {
                guard let newElement else { return true }
                guard body(old.offset, nil, new.offset, newElement) else { return false }
                new.advance(in: self)
                continue
            }
            guard let newElement else {
                guard body(old.offset, oldElement, new.offset, nil) else { return false }
                old.advance(in: other)
                continue
            }
            if oldElement < newElement {
                guard body(old.offset, oldElement, new.offset, nil) else { return false }
                old.advance(in: other)
            } else if newElement < oldElement {
                guard body(old.offset, nil, new.offset, newElement) else { return false }
                new.advance(in: self)
            } else {
                if oldElement != newElement {
                    guard body(old.offset, oldElement, new.offset, newElement) else { return false }
                }
                old.advance(in: other)
                new.advance(in: self)
            }
        }
    }

    /// Moves both cursors over the chunks that are the same memory, where both stand at a chunk's beginning.
    @inlinable func skipSharedChunks(_ other: Self, _ old: inout Cursor, _ new: inout Cursor) {
        guard old.index == 0, new.index == 0 else { return }
        // Pointers, so that no chunk is retained for a look at its address.
        chunks.withUnsafeBufferPointer { chunks in
            other.chunks.withUnsafeBufferPointer { others in
                while old.chunk < others.count, new.chunk < chunks.count,
                    Self.isSameMemory(others[old.chunk], chunks[new.chunk])
                {
                    let count = chunks[new.chunk].count
                    (old.chunk, old.offset) = (old.chunk + 1, old.offset + count)
                    (new.chunk, new.offset) = (new.chunk + 1, new.offset + count)
                }
            }
        }
    }

    @inlinable static func isSameMemory<Item>(_ lhs: [Item], _ rhs: [Item]) -> Bool {
        lhs.count == rhs.count
            && lhs.withUnsafeBufferPointer { lhs in
                rhs.withUnsafeBufferPointer { lhs.baseAddress == $0.baseAddress }
            }
    }

    /// A place in the chunks.
    @usableFromInline struct Cursor {
        @usableFromInline var chunk = 0
        @usableFromInline var index = 0
        @usableFromInline var offset = 0

        @inlinable init() {}

        @inlinable func element(in set: SortedIndex) -> Element? {
            chunk < set.chunks.count ? set.chunks[chunk][index] : nil
        }

        @inlinable mutating func advance(in set: SortedIndex) {
            offset += 1
            index += 1
            if index == set.chunks[chunk].count { (chunk, index) = (chunk + 1, 0) }
        }
    }
}

extension SortedIndex: Encodable where Element: Encodable {
    /// Encodes the elements, ascending.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for element in self { try container.encode(element) }
    }
}

extension SortedIndex: Decodable where Element: Decodable {
    /// Decodes elements that are in ascending order, none twice.
    ///
    /// - Throws: `DecodingError` (`dataCorrupted`) for any other order.
    public init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        var elements: [Element] = []
        while !container.isAtEnd {
            let element = try container.decode(Element.self)
            if let last = elements.last, !(last < element) {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "the elements are not in ascending order")
            }
            elements.append(element)
        }
        self.init(sorted: elements)
    }
}
