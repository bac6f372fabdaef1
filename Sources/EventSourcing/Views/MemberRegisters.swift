// One register for each declared member of an object: the value of a key in a RegisterView.
// Spec/model/views.md, VIEW-1.

/// The newest value of each member of an object, with the LWW timestamp of the event that set it.
public struct MemberRegisters<Values: DeclaredObject>: Sendable {
    /// The values. An unset member has its initial value.
    public private(set) var values: Values
    /// The LWW timestamp of each member, in the order of declaration; nil for an unset one. Empty before
    /// the first event.
    private var lwwTimestamps: [LWWTimestamp?] = []

    /// Creates registers in which no member is set.
    public init(initial: Values) { values = initial }

    /// The greatest LWW timestamp of a member; nil if all are unset.
    public var newest: LWWTimestamp? { lwwTimestamps.compactMap(\.self).max() }

    /// Sets the members that are present in a change, each if `lwwTimestamp` is greater than the member's.
    ///
    /// - Throws: what the object's `declareMembers` throws; then nothing changes.
    public mutating func set(_ change: Values, _ lwwTimestamp: LWWTimestamp) throws(EventError) {
        var (change, values) = (change, values)
        var winners = WinnerVisitor(lwwTimestamps: lwwTimestamps, lwwTimestamp: lwwTimestamp)
        try change.declareMembers(&winners)
        var assignment = AssignmentVisitor(winners: winners.winners)
        try values.declareMembers(&assignment)
        lwwTimestamps = winners.lwwTimestamps
        self.values = values
    }

    /// The LWW timestamps of the members that are present in a change; nil for an unset member.
    ///
    /// - Throws: what the object's `declareMembers` throws.
    public func lwwTimestamps(of change: Values) throws(EventError) -> [LWWTimestamp?] {
        var change = change
        var presence = PresenceVisitor()
        try change.declareMembers(&presence)
        return presence.isPresent.enumerated().filter(\.element).map { index, _ in
            index < lwwTimestamps.count ? lwwTimestamps[index] : nil
        }
    }

    /// Writes the registers to a state: for each member whether it is set, its value, its LWW timestamp.
    ///
    /// - Throws: `EventError` (`invalidData`) for a value that JSON cannot hold.
    public func write(to state: inout StateWriter) throws(EventError) {
        var values = values
        var visitor = StateMemberWriter(lwwTimestamps: lwwTimestamps)
        // Swapped, not copied: a second reference would copy all bytes at the next write.
        swap(&visitor.state, &state)
        defer { swap(&visitor.state, &state) }
        try values.declareMembers(&visitor)
    }

    /// Reads what `write(to:)` wrote.
    ///
    /// - Throws: `EventError` (`invalidData`) for invalid bytes, and if no member is set.
    public init(initial: Values, from state: inout StateReader) throws(EventError) {
        values = initial
        var visitor = StateMemberReader(state: state)
        try values.declareMembers(&visitor)
        lwwTimestamps = visitor.lwwTimestamps
        state = visitor.state
        guard newest != nil else { throw state.fault("an entry has set nothing") }
    }

    /// The fields of a row: the JSON of each present member, `null` for others.
    func fields() throws(EventError) -> [(name: String, json: [UInt8])] {
        var values = values
        var visitor = RowVisitor()
        try values.declareMembers(&visitor)
        return visitor.fields
    }
}

/// A visitor that treats required members as optional ones that are always present.
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

/// Collects the values of a change that win over the current ones.
private struct WinnerVisitor: ValueVisitor {
    var lwwTimestamps: [LWWTimestamp?]
    let lwwTimestamp: LWWTimestamp
    var winners: [(any Sendable)?] = []

    mutating func visit<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) {
        let index = winners.count
        if index == lwwTimestamps.count { lwwTimestamps.append(nil) }
        guard let value, lwwTimestamps[index].map({ $0 < lwwTimestamp }) ?? true else {
            return winners.append(nil)
        }
        lwwTimestamps[index] = lwwTimestamp
        winners.append(value)
    }
}

/// Assigns the collected values to the members.
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

/// Writes members to a state.
private struct StateMemberWriter: ValueVisitor {
    let lwwTimestamps: [LWWTimestamp?]
    var state = StateWriter()
    var index = 0

    init(lwwTimestamps: [LWWTimestamp?]) { self.lwwTimestamps = lwwTimestamps }

    mutating func visit<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) throws(EventError) {
        defer { index += 1 }
        let lwwTimestamp = index < lwwTimestamps.count ? lwwTimestamps[index] : nil
        state.write(lwwTimestamp != nil && value != nil)
        guard let lwwTimestamp, let value else { return }
        try state.write(value, name, kind)
        state.write(lwwTimestamp)
    }
}

/// Reads members from a state.
private struct StateMemberReader: ValueVisitor {
    var state: StateReader
    var lwwTimestamps: [LWWTimestamp?] = []

    mutating func visit<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) throws(EventError) {
        guard try state.bool() else { return lwwTimestamps.append(nil) }
        value = try state.value(name, kind)
        lwwTimestamps.append(try state.lwwTimestamp())
    }
}

extension StateWriter {
    /// Writes a value in the form of its type; a value of another type as the JSON text of its kind.
    fileprivate mutating func write<Kind: MemberKind>(
        _ value: Kind.Value, _ name: StaticString, _ kind: Kind
    ) throws(EventError) {
        if Kind.Value.self == Bool.self, let value = value as? Bool {
            write(value)
        } else if Kind.Value.self == Int.self, let value = value as? Int {
            write(UInt64(bitPattern: Int64(value)))
        } else if Kind.Value.self == Double.self, let value = value as? Double {
            write(value)
        } else if Kind.Value.self == String.self, let value = value as? String {
            write(value)
        } else {
            write(String(decoding: try kind.json(of: value, name), as: UTF8.self))
        }
    }
}

extension StateReader {
    /// Reads a member's value that `StateWriter` wrote.
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
            object.appendMember(literal: name, raw: Array(text.utf8))
            let value = try kind.read(name, in: try JSONFields(object.finished(), path: "state"))
            // Equal states must have equal bytes, so a value has only one form.
            guard try kind.json(of: value, name).elementsEqual(text.utf8) else {
                throw fault("a value is not in its canonical form")
            }
            return value
        }
        guard let value = read as? Kind.Value else { throw fault("a value is of another type") }
        return value
    }
}
