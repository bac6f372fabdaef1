// The types that a catalogue has something to say of, found by the bytes of their names: events share
// the name and what is known, and nobody looks a type up a second time. Spec/events.md.

import LogFormat

/// A type with a rule or an upcaster. An object, so that an event can carry it.
final class KnownType: Sendable {
    let name: String
    /// Its place among the catalogue's types.
    let number: Int
    /// The rule of the type itself.
    let rule: EventRule?
    /// The rule that says what becomes of stored events: its own, or that of the type that has
    /// replaced it.
    let storedRule: EventRule?

    init(_ name: String, number: Int, rule: EventRule?, storedRule: EventRule?) {
        self.name = name
        self.number = number
        self.rule = rule
        self.storedRule = storedRule
    }
}

/// A catalogue's types.
struct KnownTypes: Sendable {
    /// By number.
    let all: [KnownType]
    /// Numbers by hash, with open addressing; -1 where there is none. More than half are.
    private let slots: [Int]

    init(_ all: [KnownType] = []) {
        self.all = all
        var size = 8
        while size < all.count * 2 + 1 { size *= 2 }
        var slots = [Int](repeating: -1, count: size)
        for type in all {
            var slot = Self.hash(type.name.utf8.span.bytes) & (size - 1)
            while slots[slot] >= 0 { slot = (slot + 1) & (size - 1) }
            slots[slot] = type.number
        }
        self.slots = slots
    }

    /// The type of a name, or nil.
    func type(named name: RawSpan) -> KnownType? {
        var slot = Self.hash(name) & (slots.count - 1)
        while slots[slot] >= 0 {
            let type = all[slots[slot]]
            if name.isEqual(to: type.name) { return type }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    /// The type of a name, or nil.
    func type(named name: String) -> KnownType? { type(named: name.utf8.span.bytes) }

    /// Eight bytes at a time, the last eight perhaps twice.
    private static func hash(_ name: RawSpan) -> Int {
        var hash = UInt64(name.byteCount)
        func add(_ word: UInt64) {
            hash = (hash ^ word) &* 0x9E37_79B9_7F4A_7C15
            hash ^= hash >> 32
        }
        if name.byteCount >= 8 {
            for offset in stride(from: 0, to: name.byteCount - 8, by: 8) {
                add(name.integer(at: offset, as: UInt64.self))
            }
            add(name.integer(at: name.byteCount - 8, as: UInt64.self))
        } else {
            for offset in 0..<name.byteCount { add(UInt64(name.byte(at: offset))) }
        }
        return Int(truncatingIfNeeded: hash >> 1)
    }
}
