// One register for each member that an object declares: what RegisterView keeps for a key.
// Spec/model/views.md, VIEW-1.

/// The newest value of each member of an object, and which event has set it.
public struct MemberRegisters<Values: DeclaredObject>: Sendable {
    /// The values. A member that nothing has set has its initial value.
    public private(set) var values: Values
    /// The event that set each member, in the order of the declaration; nil for one that nothing has
    /// set. Empty before the first event.
    private var stamps: [Stamp?] = []

    /// Registers that nothing has set.
    public init(initial: Values) { values = initial }

    /// The newest event that holds a member; nil if nothing has set one.
    public var newest: Stamp? { stamps.compactMap(\.self).max() }

    /// Sets the members that a change has, each if the event counts more than the one that set it.
    public mutating func set(_ change: Values, _ stamp: Stamp) {
        var winners = WinnerVisitor(stamps: stamps, stamp: stamp)
        visit(change, &winners)
        stamps = winners.stamps
        var assignment = AssignmentVisitor(winners: winners.winners)
        visit(&values, &assignment)
    }

    /// The events that hold the members that a change has; nil for a member that nothing has set.
    public func stamps(of change: Values) -> [Stamp?] {
        var presence = PresenceVisitor()
        visit(change, &presence)
        return presence.isPresent.enumerated().filter(\.element).map { index, _ in
            index < stamps.count ? stamps[index] : nil
        }
    }

    /// Adds the members that are set to a state: for each member whether it is, its value, its event.
    public func add(to state: inout StateWriter) {
        var visitor = StateAddition(stamps: stamps, state: state)
        visit(values, &visitor)
        state = visitor.state
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
}

/// Shows the members to a visitor that throws nothing.
private func visit(_ object: some DeclaredObject, _ visitor: inout some MemberVisitor) {
    var copy = object
    visit(&copy, &visitor)
}

private func visit(_ object: inout some DeclaredObject, _ visitor: inout some MemberVisitor) {
    do throws(EventError) { try object.declareMembers(&visitor) } catch {
        preconditionFailure("\(error)")
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

/// Notes which members are there.
private struct PresenceVisitor: ValueVisitor {
    var isPresent: [Bool] = []

    mutating func visit<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) {
        isPresent.append(value != nil)
    }
}

/// Takes out the values that win against those that are set.
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
        if let winner = winners[index] as? Kind.Value { value = winner }
        index += 1
    }
}

/// Adds members to a state.
private struct StateAddition: ValueVisitor {
    let stamps: [Stamp?]
    var state: StateWriter
    var index = 0

    mutating func visit<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) throws(EventError) {
        defer { index += 1 }
        let stamp = index < stamps.count ? stamps[index] : nil
        state.add(stamp != nil)
        guard let stamp, let value else { return }
        switch value {
        case let value as Bool: state.add(value)
        case let value as Int: state.add(count: value)
        case let value as Double: state.add(value)
        case let value as String: state.add(value)
        default:
            var object = JSONObjectWriter()
            try kind.write(value, name, to: &object)
            state.add(String(decoding: object.finished(), as: UTF8.self))
        }
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
        let read: Any
        switch Kind.Value.self {
        case is Bool.Type: read = try state.bool()
        case is Int.Type: read = try state.nonNegative()
        case is Double.Type: read = try state.double()
        case is String.Type: read = try state.string()
        default:
            let object = try JSONFields(Array(try state.string().utf8), place: "state")
            read = try kind.read(name, in: object)
        }
        guard let read = read as? Kind.Value else {
            throw state.fault("a value is of another type")
        }
        value = read
        stamps.append(try state.stamp())
    }
}
