// A dictionary for states with many entries: it opens without decoding them, and shares its structure with its
// copies. Spec/model/views.md, VIEW-29; the measurements are in Spec/decisions/0046-states-open-without-decoding.md.

import HashTreeCollections

/// A dictionary for the state of a view that has many entries.
///
/// ```swift
/// struct Trips: Projection, Codable {
///     static let name = "trips", version = 1
///     private(set) var stops: StateDictionary<String, Stop> = [:]
///     mutating func fold(_ event: Event) { … stops[planned.stop] = Stop(…) }
/// }
/// ```
///
/// What a checkpoint has stored stays as bytes, sorted by key; an entry is decoded whenever it is read. What was
/// set since then is in a hash tree. So opening a store costs a few nanoseconds for each entry, a checkpoint
/// copies the bytes of what did not change, and a copy of the dictionary is O(1).
///
/// An entry whose stored bytes `Value` cannot decode reads as absent. Opening tries some entries, and folds the
/// view anew if one cannot be decoded; raise the view's `version` whenever `Key` or `Value` changes its meaning.
public struct StateDictionary<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>:
    Sendable
{
    /// The entries of the checkpoint.
    @usableFromInline var stored: StoredEntries<Key, Value>
    /// What was set since then; nil for a stored entry that was removed.
    @usableFromInline var changes: TreeDictionary<Key, Value?>
    /// How many entries there are. O(1).
    @inlinable public var count: Int { total }
    /// The number behind `count`, which nothing else may set.
    @usableFromInline var total: Int

    /// Creates an empty dictionary.
    @inlinable public init() { self.init(stored: StoredEntries()) }

    @usableFromInline init(stored: StoredEntries<Key, Value>) {
        self.stored = stored
        changes = [:]
        total = stored.count
    }

    /// True if there are no entries.
    @inlinable public var isEmpty: Bool { total == 0 }

    /// The value of a key; nil sets none.
    ///
    /// - Complexity: O(1) for an entry that was set since the store was opened; else O(log n), and decodes it.
    @inlinable public subscript(key: Key) -> Value? {
        get {
            if let change = changes[key] { return change }
            return stored.isEmpty ? nil : stored.value(of: key)
        }
        set {
            let isStored = !stored.isEmpty && stored.contains(key)
            let change = changes[key]
            let isPresent = change.map { $0 != nil } ?? isStored
            total += (newValue == nil ? 0 : 1) - (isPresent ? 1 : 0)
            if newValue == nil, !isStored {
                changes.removeValue(forKey: key)
            } else {
                changes.updateValue(newValue, forKey: key)
            }
        }
    }

    /// The value of a key, or a default for one without a value.
    @inlinable
    public subscript(
        key: Key, default defaultValue: @autoclosure () -> Value
    ) -> Value {
        get { self[key] ?? defaultValue() }
        set { self[key] = newValue }
    }

    /// Removes a key's entry.
    ///
    /// - Returns: its value; nil if there was none.
    @inlinable @discardableResult public mutating func removeValue(forKey key: Key) -> Value? {
        let value = self[key]
        self[key] = nil
        return value
    }
}

extension StateDictionary: ExpressibleByDictionaryLiteral {
    /// Creates a dictionary; of a key that occurs twice the last value counts.
    @inlinable public init(dictionaryLiteral elements: (Key, Value)...) {
        self.init()
        for (key, value) in elements { self[key] = value }
    }
}

extension StateDictionary: Sequence {
    /// The entries, in no order. Stored ones are decoded one by one.
    public struct Iterator: IteratorProtocol {
        private let changes: TreeDictionary<Key, Value?>
        private let stored: StoredEntries<Key, Value>
        private var changed: TreeDictionary<Key, Value?>.Iterator
        private var index = 0

        init(_ dictionary: StateDictionary) {
            changes = dictionary.changes
            stored = dictionary.stored
            changed = changes.makeIterator()
        }

        /// The next entry.
        public mutating func next() -> (key: Key, value: Value)? {
            while let (key, value) = changed.next() {
                if let value { return (key, value) }
            }
            while index < stored.count {
                index += 1
                if let entry = stored.entry(index - 1), changes[entry.key] == nil { return entry }
            }
            return nil
        }
    }

    /// Creates an iterator.
    public func makeIterator() -> Iterator { Iterator(self) }

    /// `count`.
    public var underestimatedCount: Int { count }

    /// The keys, in no order. Decodes no values.
    ///
    /// - Complexity: O(n)
    public var keys: [Key] {
        changes.compactMap { $1 == nil ? nil : $0 }
            + (0..<stored.count).lazy.compactMap { stored.key($0) }.filter { changes[$0] == nil }
    }
}

extension StateDictionary: Equatable where Value: Equatable {
    /// True if both have the same keys with equal values. O(n).
    public static func == (a: Self, b: Self) -> Bool {
        a.count == b.count && a.allSatisfy { b[$0.key] == $0.value }
    }
}

extension StateDictionary: CustomStringConvertible {
    /// The entries as those of a `Dictionary`. Decodes all. O(n).
    public var description: String {
        Dictionary(uniqueKeysWithValues: map { ($0.key, $0.value) }).description
    }
}

extension StateDictionary: Codable {
    /// Encodes as a `Dictionary` does; into a stored state, in its stored form.
    public func encode(to encoder: any Encoder) throws {
        try Dictionary(uniqueKeysWithValues: map { ($0.key, $0.value) }).encode(to: encoder)
    }

    /// Decodes what `encode` wrote.
    public init(from decoder: any Decoder) throws {
        self.init()
        for (key, value) in try [Key: Value](from: decoder) { self[key] = value }
    }
}
