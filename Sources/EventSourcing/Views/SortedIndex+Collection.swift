// A sorted set as a collection: elements by offset, equality and differences. Equality and differences cost
// as much as the changed parts, since unchanged parts of two copies share their memory.

/// A collection whose copies share their structure, so that the difference of two copies is cheap to compute.
public protocol StructureSharing: RandomAccessCollection {
    /// The removals and insertions that turn `other` into this collection. An element that changed but kept
    /// its place in the order is a removal and an insertion that name each other's offset (`associatedWith`).
    func changes(since other: Self) -> CollectionDifference<Element>
}

extension SortedIndex: RandomAccessCollection {
    @inlinable public var startIndex: Int { 0 }
    @inlinable public var endIndex: Int { count }
    @inlinable public var isEmpty: Bool { count == 0 }

    /// The element at an offset. O(n / 2,048).
    @inlinable public subscript(offset: Int) -> Element {
        precondition(offset >= 0 && offset < count, "the offset is in the collection")
        var remaining = offset
        for group in groups {
            guard remaining >= group.count else {
                for chunk in group.chunks {
                    if remaining < chunk.count { return chunk[remaining] }
                    remaining -= chunk.count
                }
                break
            }
            remaining -= group.count
        }
        preconditionFailure("the groups have as many elements as the collection")
    }

    @inlinable public func makeIterator() -> Iterator { Iterator(groups, from: Place()) }

    /// The elements, ascending. O(1) each.
    public struct Iterator: IteratorProtocol {
        @usableFromInline let groups: [Group]
        @usableFromInline let upper: Element?
        @usableFromInline var chunk: [Element] = []
        /// The place of the next element, or the end of the current chunk.
        @usableFromInline var place: Place

        @inlinable init(_ groups: [Group], from place: Place, upTo upper: Element? = nil) {
            self.groups = groups
            self.upper = upper
            self.place = place
            if place.group < groups.count { chunk = groups[place.group].chunks[place.chunk] }
        }

        @inlinable public mutating func next() -> Element? {
            if place.index == chunk.count {
                guard place.group < groups.count else { return nil }
                (place.chunk, place.index) = (place.chunk + 1, 0)
                if place.chunk == groups[place.group].chunks.count {
                    (place.group, place.chunk) = (place.group + 1, 0)
                }
                guard place.group < groups.count else {
                    chunk = []
                    return nil
                }
                chunk = groups[place.group].chunks[place.chunk]
            }
            let element = chunk[place.index]
            if let upper, !(element < upper) { return nil }
            place.index += 1
            return element
        }
    }
}

extension SortedIndex: Equatable {
    /// True if all elements are equal. O(n / 2,048) for copies with few differences.
    @inlinable public static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.count == rhs.count && lhs.forEachChange(since: rhs) { _, _, _, _ in false }
    }
}

extension SortedIndex: StructureSharing {
    /// The changes since another state. O(n / 2,048 + changes) for copies with few differences.
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

    /// Calls the closure in order with each element that only one of two states has; with both, for an
    /// element that was replaced by an equivalent one. Skips groups and chunks that share their memory.
    ///
    /// - Returns: false if the closure returned false, which ends the iteration.
    @inlinable func forEachChange(
        since other: Self,
        _ body: (_ oldOffset: Int, _ old: Element?, _ newOffset: Int, _ new: Element?) -> Bool
    ) -> Bool {
        if Self.isSameMemory(groups, other.groups) { return true }
        var (old, new) = (Cursor(), Cursor())
        while true {
            skipSharedParts(other, &old, &new)
            guard let oldElement = other[old.place] else {
                guard let newElement = self[new.place] else { return true }
                guard body(old.offset, nil, new.offset, newElement) else { return false }
                new.advance(in: self)
                continue
            }
            guard let newElement = self[new.place] else {
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

    /// Moves both cursors past groups, then past chunks, that share their memory.
    @inlinable func skipSharedParts(_ other: Self, _ old: inout Cursor, _ new: inout Cursor) {
        while old.place.index == 0, new.place.index == 0,
            old.place.group < other.groups.count, new.place.group < groups.count
        {
            let (theirs, ours) = (other.groups[old.place.group], groups[new.place.group])
            if old.place.chunk == 0, new.place.chunk == 0,
                Self.isSameMemory(theirs.chunks, ours.chunks)
            {
                old.skipGroup(ours.count)
                new.skipGroup(ours.count)
                continue
            }
            let count = ours.chunks[new.place.chunk].count
            guard Self.isSameMemory(theirs.chunks[old.place.chunk], ours.chunks[new.place.chunk])
            else { return }
            old.skipChunk(count, in: theirs)
            new.skipChunk(count, in: ours)
        }
    }

    /// True if both arrays share one buffer: then they are equal, and no item need be compared.
    @inlinable static func isSameMemory<Item>(_ lhs: [Item], _ rhs: [Item]) -> Bool {
        lhs.count == rhs.count
            && lhs.withUnsafeBufferPointer { lhs in
                rhs.withUnsafeBufferPointer { lhs.baseAddress == $0.baseAddress }
            }
    }

    /// A place, and the number of elements before it.
    @usableFromInline struct Cursor {
        @usableFromInline var place = Place()
        @usableFromInline var offset = 0

        @inlinable init() {}

        @inlinable mutating func advance(in set: SortedIndex) {
            offset += 1
            set.advance(&place)
        }

        @inlinable mutating func skipGroup(_ count: Int) {
            offset += count
            place.group += 1
        }

        @inlinable mutating func skipChunk(_ count: Int, in group: Group) {
            offset += count
            place.chunk += 1
            if place.chunk == group.chunks.count {
                (place.group, place.chunk) = (place.group + 1, 0)
            }
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
    /// Decodes elements that are in ascending order, without duplicates.
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

extension SortedIndex: CustomStringConvertible {
    /// The elements, as an array shows them.
    public var description: String { Array(self).description }
}

extension SortedIndex: ExpressibleByArrayLiteral {
    /// Creates a set of elements in any order. Of equivalent ones, the first remains.
    public init(arrayLiteral elements: Element...) {
        self.init()
        for element in elements.reversed() { insert(element) }
    }
}
