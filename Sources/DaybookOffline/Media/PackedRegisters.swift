// Registers of the small collections, each as the bytes of its entry in the stored state: one key and one
// allocation per register. Part of DeviceMediaView. Spec/model/media.md, MED-9.

import Daybook
import HashTreeCollections

/// A value that is stored after its key in an encoded state.
protocol PackedValue: Sendable {
    func write(to writer: inout StateWriter)
    init(id: String, _ reader: inout StateReader) throws(EventError)
}

/// One register for each key: the value that the event with the greatest LWW timestamp has set, or its
/// removal.
struct PackedRegisters<Value: PackedValue>: StateValue {
    /// The bytes of each register: the LWW timestamp, a flag, and if the flag is set the value.
    private var entries: TreeDictionary<EntityID, [UInt8]> = [:]
    /// The number of values.
    private(set) var count = 0

    /// Sets a value, or nil for its removal. O(1).
    mutating func set(_ value: Value?, _ id: String, _ change: inout ViewChange) {
        let (id, lwwTimestamp) = (EntityID(id), change.lwwTimestamp)
        let last = self.lwwTimestamp(of: id)
        guard change.isFolding else { return change.list(last) }
        if let last, last >= lwwTimestamp { return }
        if contains(id) { count -= 1 }
        if value != nil { count += 1 }
        var writer = StateWriter()
        writer.write(lwwTimestamp)
        writer.write(value != nil)
        value?.write(to: &writer)
        entries[id] = writer.trimmedBytes
    }

    /// The LWW timestamp that the next event of a key must exceed to take effect. O(1).
    func lwwTimestamp(of id: EntityID) -> LWWTimestamp? {
        guard let bytes = entries[id] else { return nil }
        var reader = StateReader(bytes)
        return try? reader.lwwTimestamp()
    }

    /// True if the key has a value. O(1).
    func contains(_ id: EntityID) -> Bool {
        guard let bytes = entries[id] else { return false }
        var reader = StateReader(bytes)
        _ = try? reader.lwwTimestamp()
        return (try? reader.bool()) ?? false
    }

    /// The value of a key. O(1).
    subscript(id: EntityID) -> Value? { entries[id].flatMap { Self.value(id, $0) } }

    private static func value(_ id: EntityID, _ bytes: [UInt8]) -> Value? {
        var reader = StateReader(bytes)
        // Cannot fail: `set` wrote the bytes, or the initializer checked them.
        return try? read(id, &reader)
    }

    private static func read(
        _ id: EntityID, _ reader: inout StateReader
    ) throws(EventError) -> Value? {
        _ = try reader.lwwTimestamp()
        return try reader.bool() ? try Value(id: id.string, &reader) : nil
    }

    /// All values, by key. O(n log n).
    var all: [Value] {
        entries.sorted { $0.key < $1.key }.compactMap { Self.value($0.key, $0.value) }
    }

    func write(to writer: inout StateWriter) {
        var list = writer.entries(count: entries.count)
        for (id, bytes) in entries {
            writer.begin(id, of: &list)
            writer.write(written: bytes)
        }
        writer.end(list)
    }

    init() {}

    init(from reader: inout StateReader) throws(EventError) {
        var entries = self.entries
        var count = 0
        try reader.entries { (reader, id) throws(EventError) in
            entries[id] = Array(
                try reader.bytes { (reader) throws(EventError) in
                    if try Self.read(id, &reader) != nil { count += 1 }
                })
        }
        self.entries = entries
        self.count = count
    }
}
