// A view of registers: the newest value of each member, for each key. Fold, rows, stored state and retention
// are derived from the declaration of the members. Spec/model/views.md, VIEW-28.

import HashTreeCollections

/// A view that keeps the newest value of each member of an object, for each key.
///
/// ```swift
/// struct CityRatings: RegisterView {
///     static let name = "ratings"
///     static let version = 1
///     static let eventTypes: Set<String>? = [CityRated.type]
///     static let keyNames = ["userId", "cityId"]
///     var registers = RegisterTable(initial: CityRated.example)
///
///     static func change(in event: Event) throws -> RegisterChange<CityRated> {
///         let rated = try event.payload(as: CityRated.self)
///         return RegisterChange(of: [rated.userId, rated.cityId], to: rated)
///     }
/// }
/// ```
///
/// Compaction removes an event if later events have set all of its members. A row has the field
/// `updatedAt`; a member of that name would occur twice.
public protocol RegisterView: KeyedView, CompactableView {
    /// The object whose members the view keeps. A member that is nil in a change is not set; one that is
    /// declared with a value for `missing` is always set.
    associatedtype Values: DeclaredObject
    /// The registers of each key.
    var registers: RegisterTable<Values> { get set }
    /// The change that an event of one of the view's types makes.
    ///
    /// - Throws: any error for data that cannot be decoded; the event is counted as ignored, and kept.
    static func change(in event: Event) throws -> RegisterChange<Values>
}

/// A change of the registers of one key.
public struct RegisterChange<Values: DeclaredObject>: Sendable {
    /// The key's parts: as many as the view has key names.
    public let key: [String]
    /// The new values.
    public let values: Values

    /// Creates a change of the registers of a key.
    public init(of key: [String], to values: Values) {
        self.key = key
        self.values = values
    }
}

/// The registers of each key. Copies share their entries.
public struct RegisterTable<Values: DeclaredObject>: Sendable {
    /// The values before the first event.
    public let initial: Values
    /// The number of events whose data could not be decoded.
    public fileprivate(set) var ignored = 0
    fileprivate var entries: TreeDictionary<EntityID, MemberRegisters<Values>> = [:]

    /// Creates a table without keys.
    public init(initial: Values) { self.initial = initial }

    /// The number of keys. O(1).
    public var count: Int { entries.count }

    /// The registers of a key; nil if no event has set one. O(1).
    public subscript(key: String...) -> MemberRegisters<Values>? { self[key: key] }

    /// The registers of a key of several parts; nil if no event has set one. O(1).
    subscript(key key: [String]) -> MemberRegisters<Values>? { entries[Self.id(of: key)] }

    fileprivate mutating func set(_ values: Values, of id: EntityID, _ lwwTimestamp: LWWTimestamp)
        throws
    {
        guard entries[id] == nil else { return try entries[id]?.set(values, lwwTimestamp) ?? () }
        var entry = MemberRegisters(initial: initial)
        try entry.set(values, lwwTimestamp)
        // A change without a member sets nothing.
        if entry.newest != nil { entries[id] = entry }
    }

    /// The id of a key: the part itself if there is one, else a JSON array, which is unique for a list of
    /// parts.
    fileprivate static func id(of key: [String]) -> EntityID {
        guard key.count != 1 else { return EntityID(key[0]) }
        let array = JSONObjectWriter.array(key.map(JSONObjectWriter.string))
        return EntityID(String(decoding: array, as: UTF8.self))
    }

    fileprivate static func parts(of id: EntityID, _ count: Int) -> [String] {
        guard count != 1, case .array(let parts)? = try? JSONValue(Array(id.string.utf8).span.bytes)
        else { return [id.string] }
        return parts.compactMap { part in
            guard case .string(let text) = part else { return nil }
            return text
        }
    }
}

extension RegisterView {
    /// The keys, sorted by the bytes of one part, or of the JSON array of several. O(keys · log keys).
    public var keys: [[String]] {
        registers.entries.keys.sorted().map {
            RegisterTable<Values>.parts(of: $0, Self.keyNames.count)
        }
    }

    /// Sets the registers that the event changes, each if the event's LWW timestamp is greater.
    public mutating func fold(_ event: Event) {
        guard Self.folds(event.type) else { return }
        do {
            let change = try checkedChange(in: event)
            let id = RegisterTable<Values>.id(of: change.key)
            try registers.set(change.values, of: id, event.lwwTimestamp)
        } catch { registers.ignored += 1 }
    }

    private func checkedChange(in event: Event) throws -> RegisterChange<Values> {
        let change = try Self.change(in: event)
        guard change.key.count == Self.keyNames.count else {
            throw EventError(
                .invalidData,
                "a change in the view \(Self.name) has a key of \(change.key.count) parts, not of "
                    + "\(Self.keyNames.count)")
        }
        return change
    }

    /// The key's parts, the other members, the time of the newest change.
    public static var columns: [String] {
        let members = ObjectSchema(of: Values.self).members.map(\.name)
        return keyNames + members.filter { !keyNames.contains($0) } + ["updatedAt"]
    }

    /// One row for each key.
    public func rows() -> ViewRows {
        ViewRows(registers.entries.sorted(byID: \.key)) { id, entry in
            Self.row(RegisterTable<Values>.parts(of: id, Self.keyNames.count), entry)
        }
    }

    /// The key of the event's change.
    public func rowKeys(changedBy event: Event) -> [[String]]? {
        (try? checkedChange(in: event)).map { [$0.key] } ?? []
    }

    public func row(key: [String]) -> ViewRow? {
        registers.entries[RegisterTable<Values>.id(of: key)].map { Self.row(key, $0) }
    }

    private static func row(_ key: [String], _ entry: MemberRegisters<Values>) -> ViewRow {
        var row = ViewRow()
        for (name, part) in zip(keyNames, key) { row.appendField(name, part) }
        for (name, json) in (try? entry.fields()) ?? [] where !keyNames.contains(name) {
            row.appendField(name, raw: json)
        }
        row.appendField("updatedAt", entry.newest?.time.description)
        return row
    }

    /// The registers as bytes: the number of ignored events, then each key with its registers, in order.
    ///
    /// - Throws: `EventError` (`invalidData`) for a value that JSON cannot hold.
    public func encodedState() throws -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: registers.ignored)
        var entries = writer.entries(count: registers.entries.count)
        for (id, entry) in registers.entries {
            writer.begin(id, of: &entries)
            try entry.write(to: &writer)
        }
        writer.end(entries)
        return writer.bytes
    }

    /// Reads what `encodedState()` wrote.
    ///
    /// - Throws: `EventError` (`invalidData`) for invalid bytes.
    public init(encodedState: [UInt8]) throws {
        self.init()
        var reader = StateReader(encodedState)
        var table = RegisterTable(initial: registers.initial)
        table.ignored = try reader.tally()
        try reader.entries { (reader, id) throws(EventError) in
            table.entries[id] = try MemberRegisters(initial: table.initial, from: &reader)
        }
        try reader.finish()
        registers = table
    }

    /// The winners of the members that the event sets, but for those of the key, which all events of the key set.
    public func holders(of event: Event) -> [LWWTimestamp?]? {
        guard Self.folds(event.type), let change = try? checkedChange(in: event) else { return nil }
        return try? holders(of: change).map(\.holder)
    }

    /// The members that a change sets, but for those of the key, with their winners.
    func holders(
        of change: RegisterChange<Values>
    ) throws -> [(name: String, holder: LWWTimestamp?)] {
        let present = try MemberRegisters(initial: change.values).fields()
            .filter { !$0.json.elementsEqual("null".utf8) }.map(\.name)
        let entry = registers[key: change.key] ?? MemberRegisters(initial: registers.initial)
        return zip(present, try entry.lwwTimestamps(of: change.values))
            .filter { !Self.keyNames.contains($0.0) }.map { (name: $0.0, holder: $0.1) }
    }

    /// The event is needed while it is the winner of any member that it has set.
    public func retention(of event: Event) -> Retention {
        guard Self.folds(event.type) else { return .unconcerned }
        guard let change = try? checkedChange(in: event) else { return .needed(.notUnderstood) }
        let entry = registers.entries[RegisterTable<Values>.id(of: change.key)]
        let none = MemberRegisters(initial: registers.initial)
        return .of(event, heldBy: (try? (entry ?? none).lwwTimestamps(of: change.values)) ?? [])
    }
}
