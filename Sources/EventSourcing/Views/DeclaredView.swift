// A view that is a declaration: its parts, and what each type of event does to them. Fold, retention, stored
// state and the keys of changed rows are derived. Spec/model/views.md, VIEW-31.

/// A view that lists its events and the parts of its state.
///
/// ```swift
/// struct Trips: DeclaredView {
///     static let name = "trips"
///     static let version = 1
///     static let events: ViewEvents<Trips> = [
///         .on(TripPlanned.self) { planned, view, change in
///             view.trips.update(planned.trip, &change) { $1.set(&$0.city, to: planned.city) }
///         },
///         .on(TripCancelled.self) { $1.trips.delete($0.trip, &$2) },
///     ]
///     private var trips = EntityTable<Trip>()
///     var ignored = 0
///     mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
///         try state.visit(&trips)
///     }
/// }
/// ```
///
/// Compaction removes an event once other events are the winners of all registers that it has set.
public protocol DeclaredView: CompactableView {
    /// What each type of event does.
    static var events: ViewEvents<Self> { get }
    /// The number of events whose data is invalid.
    var ignored: Int { get set }
    /// Visits every part of the state that is stored. The order is that of the bytes.
    ///
    /// - Throws: what the visitor throws.
    mutating func visitState(_ state: inout some StateVisitor) throws(EventError)
    /// Computes what is derived from the stored parts, such as indexes, after a state was read.
    mutating func computeIndexes()
    /// What is wrong with a state that no events give; nil for any other.
    var stateFault: String? { get }
}

/// What events of one type do to a view.
public struct ViewEvent<View: DeclaredView>: Sendable {
    /// The type, in its newest form.
    @usableFromInline let type: String
    @usableFromInline let apply: @Sendable (Event, inout View, inout ViewChange) throws -> Void

    @inlinable init(
        type: String,
        apply: @escaping @Sendable (Event, inout View, inout ViewChange) throws -> Void
    ) {
        self.type = type
        self.apply = apply
    }

    /// What events with these data do.
    ///
    /// - Parameters:
    ///   - payload: the type of the data.
    ///   - body: changes the view through the change. It must set the same registers for the same data,
    ///     whatever the state is. It throws before the first change, if at all; then the event is ignored.
    @inlinable public static func on<Payload: EventPayload>(
        _ payload: Payload.Type,
        _ body: @escaping @Sendable (Payload, inout View, inout ViewChange) throws -> Void
    ) -> ViewEvent {
        ViewEvent(type: Payload.type) { event, view, change in
            try body(try event.payload(as: Payload.self), &view, &change)
        }
    }
}

/// What each type of event does to a view.
public struct ViewEvents<View: DeclaredView>: ExpressibleByArrayLiteral, Sendable {
    @usableFromInline let events: [ViewEvent<View>]
    /// The types of the events.
    public let types: Set<String>

    /// Creates a list. Each type occurs once.
    public init(arrayLiteral events: ViewEvent<View>...) {
        self.events = events
        types = Set(events.map(\.type))
        precondition(types.count == events.count, "a view lists a type of event twice")
    }

    /// What an event of a type does; nil if nothing. O(types).
    @inlinable func event(of type: String) -> ViewEvent<View>? {
        events.first { $0.type == type }
    }
}

extension DeclaredView {
    /// The types of the declared events.
    public static var eventTypes: Set<String>? { events.types }

    /// Does nothing.
    @inlinable public mutating func computeIndexes() {}

    /// Nil: events can give every state.
    @inlinable public var stateFault: String? { nil }

    /// Applies the event as declared.
    @inlinable public mutating func fold(_ event: Event) {
        guard let declared = Self.events.event(of: event.type) else { return }
        var change = ViewChange(of: event, isFolding: true)
        do { try declared.apply(event, &self, &change) } catch { ignored += 1 }
    }

    /// The change of an event that is not applied; nil for an event of another type.
    @inlinable func change(by event: Event) throws -> ViewChange? {
        guard let declared = Self.events.event(of: event.type) else { return nil }
        var (view, change) = (self, ViewChange(of: event, isFolding: false))
        try declared.apply(event, &view, &change)
        return change
    }

    /// The event is needed while it is the winner of any register that it has set, or deletes an entity.
    @inlinable public func retention(of event: Event) -> Retention {
        do {
            return try change(by: event)?.retention ?? .unconcerned
        } catch { return .needed(.notUnderstood) }
    }

    /// The winners of the registers that the event sets, and the deletion of an entity that it would change.
    @inlinable public func holders(of event: Event) -> [LWWTimestamp?]? {
        (try? change(by: event))?.winners
    }

    /// The parts of the state as bytes.
    ///
    /// - Throws: `EventError` (`invalidData`) for a value that cannot be written.
    @inlinable public func encodedState() throws -> [UInt8]? {
        var (view, writer) = (self, StateWriter())
        writer.write(count: ignored)
        try view.visitState(&writer)
        return writer.bytes
    }

    /// Reads what `encodedState()` wrote.
    ///
    /// - Throws: `EventError` (`invalidData`) for invalid bytes.
    @inlinable public init(encodedState: [UInt8]) throws {
        self.init()
        var reader = StateReader(encodedState)
        ignored = try reader.tally()
        try visitState(&reader)
        try reader.finish()
        if let stateFault { throw reader.fault(stateFault) }
        computeIndexes()
    }
}

/// A declared view whose rows have one key, and are declared, too.
public protocol DeclaredRows: DeclaredView, KeyedView {
    /// The value of which a row shows the fields.
    associatedtype Row: Sendable
    /// The fields of a row. The first one is the key.
    static var fields: [ViewField<Row>] { get }
    /// The keys of all rows, in any order. O(n).
    var rowIDs: [EntityID] { get }
    /// The value of the row with a key; nil if there is none. O(1).
    func rowValue(_ id: EntityID) -> Row?
}

extension DeclaredRows {
    public static var keyNames: [String] { [fields[0].name] }
    /// The names of the fields, in their order.
    public static var columns: [String] { fields.map(\.name) }

    /// One row for each key.
    public func rows() -> ViewRows {
        ViewRows(ids: rowIDs) { id in
            guard let value = rowValue(id) else { preconditionFailure("each row id has a row") }
            return ViewRow(value, Self.fields)
        }
    }

    public func row(key: [String]) -> ViewRow? {
        rowValue(EntityID(key[0])).map { ViewRow($0, Self.fields) }
    }
}

extension DeclaredView where Self: KeyedView {
    /// The keys of the entities that the event changes.
    public func rowKeys(changedBy event: Event) -> [[String]]? {
        ((try? change(by: event))??.keys ?? []).map { [$0.string] }
    }
}
