// The types of a catalogue, looked up by the bytes of their names. Events share the name and the entry, and
// each type is looked up once. Spec/model/events.md.

import LogFormat

/// A catalogue's entry for an event's type, as the event carries it. Not a class: threads that process
/// events of one type in parallel would contend for its reference count.
struct CataloguedType: Sendable {
    /// The id of the catalogue, and the type's number in it; -1 for an unknown type.
    fileprivate(set) var catalogue: UInt64 = 0
    fileprivate(set) var number = -1
    /// True if stored events of the type have a rule: its own, or that of the type that has replaced it.
    fileprivate(set) var hasRule = false
    /// True if they have no rule, and the log has recorded one.
    fileprivate(set) var hasRecordedRule = false
    /// The name of their action if they are shipped to the server.
    fileprivate(set) var action: String?
    /// True if a view may refuse new events of the type.
    fileprivate(set) var isRefusable = false

    /// An unknown type.
    init() {}

    /// The same type, with the rule under which an event was recorded.
    func recorded(as other: CataloguedType) -> CataloguedType {
        var result = self
        (result.hasRule, result.action) = (other.hasRule, other.action)
        result.hasRecordedRule = other.hasRecordedRule
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
    /// Type numbers by hash, with open addressing; -1 marks an empty slot. At least half are empty.
    private var slots: [Int] = Array(repeating: -1, count: 8)
    /// A random id of this catalogue.
    private let catalogue = UInt64.random(in: .min ... .max)

    /// - Parameter types: their names, their own rules, the rules that apply to stored events, and the rules that the
    ///   log has recorded.
    init(
        _ types: [(
            name: String, rule: EventRule?, storedRule: EventRule?, recorded: RecordedRules.Rule?
        )] = []
    ) {
        while slots.count < types.count * 2 { slots += slots }
        for (name, rule, storedRule, recorded) in types {
            var type = CataloguedType()
            type.catalogue = catalogue
            type.number = self.types.count
            type.hasRule = storedRule != nil
            type.hasRecordedRule = storedRule == nil && recorded != nil
            type.action = storedRule == nil ? recorded?.action : storedRule?.action
            type.isRefusable = rule?.refusal != nil
            slots[name.utf8.withBytes { slot(of: $0) }] = type.number
            self.types.append(KnownType(name: name, type: type, rule: rule))
        }
    }

    /// The names of all types, by number.
    var names: [String] { types.map(\.name) }

    /// The entry for a type's name. O(bytes).
    subscript(name: RawSpan) -> CataloguedType {
        let number = slots[slot(of: name)]
        return number < 0 ? CataloguedType() : types[number].type
    }

    /// The entry for a type's name. O(bytes).
    subscript(name: String) -> CataloguedType { name.utf8.withBytes { self[$0] } }

    /// True if a type is from this catalogue.
    func contains(_ type: CataloguedType) -> Bool {
        type.number >= 0 && type.catalogue == catalogue
    }

    /// The name of a type of this catalogue; nil for others.
    func name(of type: CataloguedType) -> String? {
        contains(type) ? types[type.number].name : nil
    }

    /// The own rule of a type of this catalogue; nil if it has none, and for other types.
    func rule(of type: CataloguedType) -> EventRule? {
        contains(type) ? types[type.number].rule : nil
    }

    /// The slot with the number of a name, or the empty slot for it.
    private func slot(of name: RawSpan) -> Int {
        var slot = Self.hash(name) & (slots.count - 1)
        while slots[slot] >= 0, !name.isEqual(to: types[slots[slot]].name) {
            slot = (slot + 1) & (slots.count - 1)
        }
        return slot
    }

    /// Hashes eight bytes at a time; the last word may overlap the one before.
    private static func hash(_ name: RawSpan) -> Int {
        var hash = UInt64(name.byteCount)
        func mix(_ word: UInt64) {
            hash = (hash ^ word) &* 0x9E37_79B9_7F4A_7C15
            hash ^= hash >> 32
        }
        if name.byteCount >= 8 {
            for offset in stride(from: 0, to: name.byteCount - 8, by: 8) {
                mix(name.integer(at: offset, as: UInt64.self))
            }
            mix(name.integer(at: name.byteCount - 8, as: UInt64.self))
        } else {
            for offset in 0..<name.byteCount { mix(UInt64(name.byte(at: offset))) }
        }
        return Int(truncatingIfNeeded: hash >> 1)
    }
}
