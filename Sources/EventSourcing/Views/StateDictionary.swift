// A dictionary for states with many entries: opening does not decode them, and copies share their structure.
// Spec/model/views.md, VIEW-29; the measurements are in Spec/decisions/0046-states-open-without-decoding.md.

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
/// The entries of the checkpoint stay encoded, sorted by key; an entry is decoded at each read. Later
/// changes are in a hash tree. So opening a store costs a few nanoseconds per entry, a checkpoint copies
/// the bytes of unchanged entries, and copying the dictionary is O(1).
///
/// An entry that `Value` cannot decode reads as absent. Opening decodes some entries, and the view is
/// folded again if one cannot be decoded. Raise the view's `version` whenever the meaning of `Key` or
/// `Value` changes.
public struct StateDictionary<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>:
    Sendable
{
    /// The entries of the checkpoint.
    @usableFromInline var stored: StoredEntries<Key, Value>
    /// The entries set since the checkpoint; nil for a stored entry that was removed.
    @usableFromInline var changes: TreeDictionary<Key, Value?>
    /// The number of entries. O(1).
    @inlinable public var count: Int { total }
    /// The storage of `count`.
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

    /// The value of a key. Setting nil removes the entry.
    ///
    /// - Complexity: O(1) for an entry that was set since the store was opened; else O(log n), and the
    ///   entry is decoded.
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

    /// The value of a key, or a default value if there is none.
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
    /// Creates a dictionary. For a duplicate key, the last value is used.
    @inlinable public init(dictionaryLiteral elements: (Key, Value)...) {
        self.init()
        for (key, value) in elements { self[key] = value }
    }
}

extension StateDictionary: Sequence {
    /// The entries, in no particular order. Stored entries are decoded one at a time.
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

    /// The keys, in no particular order. Decodes no values.
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
    /// The description of a `Dictionary` with the same entries. Decodes all entries. O(n).
    public var description: String {
        Dictionary(uniqueKeysWithValues: map { ($0.key, $0.value) }).description
    }
}

extension StateDictionary: Codable {
    /// Encodes like a `Dictionary`. `StateEncoder` writes the stored form instead.
    public func encode(to encoder: any Encoder) throws {
        try Dictionary(uniqueKeysWithValues: map { ($0.key, $0.value) }).encode(to: encoder)
    }

    /// Decodes what `encode` wrote.
    public init(from decoder: any Decoder) throws {
        self.init()
        for (key, value) in try [Key: Value](from: decoder) { self[key] = value }
    }
}
