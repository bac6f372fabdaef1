// Registers of the small collections, each as the bytes that the stored state has of it: one
// allocation and one key for each. Part of DeviceMediaView. Spec/model/media.md, MED-9.

import Daybook
import HashTreeCollections

/// A value that a stored state holds behind its key.
protocol PackedValue: Sendable {
    func write(to writer: inout StateWriter)
    init(id: String, _ reader: inout StateReader) throws(EventError)
}

/// One register for each key: the value that the event with the greatest stamp has set, or its
/// removal.
struct PackedRegisters<Value: PackedValue>: Sendable {
    /// The stamp, whether there is a value, the value.
    private var entries: TreeDictionary<EntityID, [UInt8]> = [:]
    /// How many values there are.
    private(set) var count = 0

    /// Sets a value, or nil for its removal, if the event counts more than the one before. O(1).
    mutating func set(_ value: Value?, _ id: EntityID, _ stamp: Stamp) {
        if let last = self.stamp(of: id), last >= stamp { return }
        if has(id) { count -= 1 }
        if value != nil { count += 1 }
        var writer = StateWriter()
        writer.add(stamp)
        writer.add(value != nil)
        value?.write(to: &writer)
        entries[id] = writer.trimmedBytes
    }

    /// What the next event of a key must pass to count. O(1).
    func stamp(of id: EntityID) -> Stamp? {
        guard let bytes = entries[id] else { return nil }
        var reader = StateReader(bytes)
        return try? reader.stamp()
    }

    /// Whether there is a value. O(1).
    func has(_ id: EntityID) -> Bool {
        guard let bytes = entries[id] else { return false }
        var reader = StateReader(bytes)
        _ = try? reader.stamp()
        return (try? reader.bool()) ?? false
    }

    /// The value of a key. O(1).
    subscript(id: EntityID) -> Value? { entries[id].flatMap { Self.value(id, $0) } }

    private static func value(_ id: EntityID, _ bytes: [UInt8]) -> Value? {
        var reader = StateReader(bytes)
        // The bytes were checked when they were taken in.
        return try? read(id, &reader)
    }

    private static func read(
        _ id: EntityID, _ reader: inout StateReader
    ) throws(EventError) -> Value? {
        _ = try reader.stamp()
        return try reader.bool() ? try Value(id: id.string, &reader) : nil
    }

    /// All values, by key. O(n log n).
    var all: [Value] {
        entries.sorted { $0.key < $1.key }.compactMap { Self.value($0.key, $0.value) }
    }

    func encode(to writer: inout StateWriter) {
        var list = writer.entries(count: entries.count)
        for (id, bytes) in entries {
            writer.begin(id, of: &list)
            writer.add(written: bytes)
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
