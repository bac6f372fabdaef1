// The types that a catalogue has something to say of, found by the bytes of their names: events share
// the name and what is known, and no type is looked up a second time. Spec/model/events.md.

import LogFormat

/// What an event carries of what a catalogue says of its type. No object: threads that work on events
/// of one type at the same time would all count references to it.
struct CataloguedType: Sendable {
    /// Which catalogue's types it is one of, and its number among them; -1 for one that is not known.
    fileprivate(set) var catalogue: UInt64 = 0
    fileprivate(set) var number = -1
    /// Whether a rule says what becomes of stored events, its own or that of the type that has
    /// replaced it.
    fileprivate(set) var hasRule = false
    /// The name of their action if they are shipped to the server.
    fileprivate(set) var action: String?

    /// A type of which nothing is known.
    init() {}

    /// The same number, with the rule by which an event was recorded.
    func recorded(as other: CataloguedType) -> CataloguedType {
        var result = self
        (result.hasRule, result.action) = (other.hasRule, other.action)
        return result
    }
}

/// A catalogue's types.
struct KnownTypes: Sendable {
    /// A type with a rule or an upcaster.
    private struct KnownType {
        let name: String
        let type: CataloguedType
        let rule: EventRule?
    }

    private var types: [KnownType] = []
    /// Numbers by hash, with open addressing; -1 where there is none. At least half are.
    private var slots: [Int] = Array(repeating: -1, count: 8)
    /// Nobody else's types have it.
    private let catalogue = UInt64.random(in: .min ... .max)

    /// - Parameter types: their names, the rules of their own, and those that say what becomes of
    ///   stored events.
    init(_ types: [(name: String, rule: EventRule?, storedRule: EventRule?)] = []) {
        while slots.count < types.count * 2 { slots += slots }
        for (name, rule, storedRule) in types {
            var type = CataloguedType()
            type.catalogue = catalogue
            type.number = self.types.count
            type.hasRule = storedRule != nil
            type.action = storedRule?.action
            slots[name.utf8.withBytes { slot(of: $0) }] = type.number
            self.types.append(KnownType(name: name, type: type, rule: rule))
        }
    }

    /// The names of all, by number.
    var names: [String] { types.map(\.name) }

    /// What is known of the type of a name. O(bytes).
    subscript(name: RawSpan) -> CataloguedType {
        let number = slots[slot(of: name)]
        return number < 0 ? CataloguedType() : types[number].type
    }

    /// What is known of the type of a name. O(bytes).
    subscript(name: String) -> CataloguedType { name.utf8.withBytes { self[$0] } }

    /// Whether a type is one of these.
    func contains(_ type: CataloguedType) -> Bool {
        type.number >= 0 && type.catalogue == catalogue
    }

    /// The name of one of these types; nil for others.
    func name(of type: CataloguedType) -> String? {
        contains(type) ? types[type.number].name : nil
    }

    /// The rule of one of these types, if it has one of its own; nil for others.
    func rule(of type: CataloguedType) -> EventRule? {
        contains(type) ? types[type.number].rule : nil
    }

    /// The slot that has the number of a name, or the empty one where it belongs.
    private func slot(of name: RawSpan) -> Int {
        var slot = Self.hash(name) & (slots.count - 1)
        while slots[slot] >= 0, !name.isEqual(to: types[slots[slot]].name) {
            slot = (slot + 1) & (slots.count - 1)
        }
        return slot
    }

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
