// One register for each member that an object declares: what RegisterView keeps for a key.
// Spec/model/views.md, VIEW-1.

/// The newest value of each member of an object, and which event has set it.
public struct MemberRegisters<Values: DeclaredObject>: Sendable {
    /// The values. An unset member has its initial value.
    public private(set) var values: Values
    /// The event that set each member, in the order of the declaration; nil for an unset one. Empty
    /// before the first event.
    private var stamps: [Stamp?] = []

    /// Registers without a set member.
    public init(initial: Values) { values = initial }

    /// The newest event that holds a member; nil if all are unset.
    public var newest: Stamp? { stamps.compactMap(\.self).max() }

    /// Sets the members that a change has, each if the event counts more than the one that set it.
    ///
    /// - Throws: what a declaration throws by itself; nothing is changed then.
    public mutating func set(_ change: Values, _ stamp: Stamp) throws(EventError) {
        var (change, values) = (change, values)
        var winners = WinnerVisitor(stamps: stamps, stamp: stamp)
        try change.declareMembers(&winners)
        var assignment = AssignmentVisitor(winners: winners.winners)
        try values.declareMembers(&assignment)
        stamps = winners.stamps
        self.values = values
    }

    /// The events that hold the members that a change has; nil for an unset member.
    ///
    /// - Throws: what a declaration throws by itself.
    public func stamps(of change: Values) throws(EventError) -> [Stamp?] {
        var change = change
        var presence = PresenceVisitor()
        try change.declareMembers(&presence)
        return presence.isPresent.enumerated().filter(\.element).map { index, _ in
            index < stamps.count ? stamps[index] : nil
        }
    }

    /// Adds the members that are set to a state: for each member whether it is, its value, its event.
    ///
    /// - Throws: `EventError` (`invalidData`) for a value that JSON cannot hold.
    public func add(to state: inout StateWriter) throws(EventError) {
        var values = values
        var visitor = StateAddition(stamps: stamps)
        // Two owners of the bytes would copy them with every entry.
        swap(&visitor.state, &state)
        defer { swap(&visitor.state, &state) }
        try values.declareMembers(&visitor)
    }

    /// Reads what `add(to:)` wrote.
    ///
    /// - Throws: `EventError` (`invalidData`) for bytes that are no such state, and where no member is set.
    public init(initial: Values, from state: inout StateReader) throws(EventError) {
        values = initial
        var visitor = StateExtraction(state: state)
        try values.declareMembers(&visitor)
        stamps = visitor.stamps
        state = visitor.state
        guard newest != nil else { throw state.fault("an entry has set nothing") }
    }

    /// The members as a row shows them: the JSON of each present value, `null` for others.
    func fields() throws(EventError) -> [(name: String, json: [UInt8])] {
        var values = values
        var visitor = RowVisitor()
        try values.declareMembers(&visitor)
        return visitor.fields
    }
}

/// A visitor for which a required member is one that is always there.
private protocol ValueVisitor: MemberVisitor {
    mutating func visit<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind) throws(EventError)
}

extension ValueVisitor {
    mutating func required<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind
    ) throws(EventError) {
        var present: Kind.Value? = value
        try visit(name, &present, kind)
        if let present { value = present }
    }

    mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) throws(EventError) {
        try visit(name, &value, kind)
    }

    mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind, missing: Kind.Value
    ) throws(EventError) where Kind.Value: Equatable {
        try required(name, &value, kind)
    }

    mutating func constraint(_ constraint: MemberConstraint, isMet: @autoclosure () -> Bool) {}
}

/// Records which members are present.
private struct PresenceVisitor: ValueVisitor {
    var isPresent: [Bool] = []

    mutating func visit<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) {
        isPresent.append(value != nil)
    }
}

/// Collects the values that win against those that are set.
private struct WinnerVisitor: ValueVisitor {
    var stamps: [Stamp?]
    let stamp: Stamp
    var winners: [(any Sendable)?] = []

    mutating func visit<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) {
        let index = winners.count
        if index == stamps.count { stamps.append(nil) }
        guard let value, stamps[index].map({ $0 < stamp }) ?? true else {
            return winners.append(nil)
        }
        stamps[index] = stamp
        winners.append(value)
    }
}

/// Sets the members that have a winner.
private struct AssignmentVisitor: ValueVisitor {
    let winners: [(any Sendable)?]
    var index = 0

    mutating func visit<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) {
        defer { index += 1 }
        guard index < winners.count, let winner = winners[index],
            let winner = winner as? Kind.Value
        else { return }
        value = winner
    }
}

/// Collects the members for a row.
private struct RowVisitor: ValueVisitor {
    var fields: [(name: String, json: [UInt8])] = []

    mutating func visit<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) throws(EventError) {
        let json = try value.map { (value) throws(EventError) in try kind.json(of: value, name) }
        fields.append((name.description, json ?? Array("null".utf8)))
    }
}

extension MemberKind {
    /// The JSON of a value.
    fileprivate func json(of value: Value, _ name: StaticString) throws(EventError) -> [UInt8] {
        var object = JSONObjectWriter()
        try write(value, name, to: &object)
        return try JSONFields(object.finished()).raw(name) ?? Array("null".utf8)
    }
}

/// Adds members to a state.
private struct StateAddition: ValueVisitor {
    let stamps: [Stamp?]
    var state = StateWriter()
    var index = 0

    init(stamps: [Stamp?]) { self.stamps = stamps }

    mutating func visit<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) throws(EventError) {
        defer { index += 1 }
        let stamp = index < stamps.count ? stamps[index] : nil
        state.add(stamp != nil && value != nil)
        guard let stamp, let value else { return }
        try state.add(value, name, kind)
        state.add(stamp)
    }
}

/// Reads members from a state.
private struct StateExtraction: ValueVisitor {
    var state: StateReader
    var stamps: [Stamp?] = []

    mutating func visit<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) throws(EventError) {
        guard try state.bool() else { return stamps.append(nil) }
        value = try state.value(name, kind)
        stamps.append(try state.stamp())
    }
}

extension StateWriter {
    /// Adds a value by its type; one of another type as the JSON text that its kind writes.
    fileprivate mutating func add<Kind: MemberKind>(
        _ value: Kind.Value, _ name: StaticString, _ kind: Kind
    ) throws(EventError) {
        if Kind.Value.self == Bool.self, let value = value as? Bool {
            add(value)
        } else if Kind.Value.self == Int.self, let value = value as? Int {
            add(UInt64(bitPattern: Int64(value)))
        } else if Kind.Value.self == Double.self, let value = value as? Double {
            add(value)
        } else if Kind.Value.self == String.self, let value = value as? String {
            add(value)
        } else {
            add(String(decoding: try kind.json(of: value, name), as: UTF8.self))
        }
    }
}

extension StateReader {
    /// Reads what `StateWriter` has written of a member.
    fileprivate mutating func value<Kind: MemberKind>(
        _ name: StaticString, _ kind: Kind
    ) throws(EventError) -> Kind.Value {
        let read: any Sendable
        if Kind.Value.self == Bool.self {
            read = try bool()
        } else if Kind.Value.self == Int.self {
            read = kind is CountKind ? try nonNegative() : Int(truncatingIfNeeded: try integer())
        } else if Kind.Value.self == Double.self {
            read = try double()
        } else if Kind.Value.self == String.self {
            read = try string()
        } else {
            let text = try string()
            var object = JSONObjectWriter()
            object.add(member: name, raw: Array(text.utf8))
            let value = try kind.read(name, in: try JSONFields(object.finished(), place: "state"))
            // Equal states have equal bytes, so a value has one spelling.
            guard try kind.json(of: value, name).elementsEqual(text.utf8) else {
                throw fault("a value is written in another way")
            }
            return value
        }
        guard let value = read as? Kind.Value else { throw fault("a value is of another type") }
        return value
    }
}
