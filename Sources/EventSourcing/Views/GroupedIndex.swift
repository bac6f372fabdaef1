// The elements of a view in groups, each sorted: a city's notes, the jobs in a state. Copies share their
// structure. Spec/model/views.md, VIEW-31.

import HashTreeCollections

/// A `SortedIndex` for each group.
public struct GroupedIndex<Group: Hashable & Sendable, Element: Comparable & Sendable>: Sendable {
    @usableFromInline var groups: TreeDictionary<Group, SortedIndex<Element>> = [:]

    /// Creates an empty index.
    @inlinable public init() {}

    /// Creates an index of elements in any order. O(n log n).
    @inlinable public init(_ elements: some Sequence<Element>, by group: (Element) -> Group) {
        groups = TreeDictionary(
            uniqueKeysWithValues: Dictionary(grouping: elements, by: group).mapValues {
                SortedIndex(sorted: $0.sorted())
            })
    }

    /// The elements of a group, ascending. O(1).
    @inlinable public subscript(group: Group) -> SortedIndex<Element> {
        groups[group] ?? SortedIndex()
    }

    /// Replaces an element, which may change its group. Nil before inserts the new one, nil after removes the
    /// old one. O(log n).
    @inlinable public mutating func replace(
        _ old: Element?, with new: Element?, by group: (Element) -> Group
    ) {
        let (oldGroup, newGroup) = (old.map(group), new.map(group))
        if let old, let oldGroup, oldGroup != newGroup {
            groups[oldGroup]?.remove(old)
            if groups[oldGroup]?.isEmpty ?? false { groups[oldGroup] = nil }
        }
        guard let new, let newGroup else { return }
        groups[newGroup, default: SortedIndex()].replace(
            oldGroup == newGroup ? old : nil, with: new)
    }
}
