// Converts events of a replaced type to the newer type. The stored line does not change; EventCatalogue
// applies upcasters to events for views and subscriptions. Spec/model/events.md, EVT-10.

/// A conversion from an event type to the newer type that replaces it.
///
/// An incompatible change of a type's data requires a new type. Events of the old type stay in the log,
/// byte for byte, and an upcaster converts them whenever they are read:
///
/// ```swift
/// Upcaster(from: TripPlanned.self, to: TripPlannedV2.self) { old in
///     TripPlannedV2(stops: [old.stop])
/// }
/// ```
///
/// Upcasters are chained: 1 to 2 and 2 to 3 give 1 to 3. Each knows only two versions, and never changes
/// after its release.
public struct Upcaster: Sendable {
    /// The type whose events are converted.
    public let oldType: String
    /// The type that they are converted to.
    public let newType: String
    let convert: @Sendable (_ json: [UInt8]) throws -> [UInt8]

    /// Creates an upcaster of JSON text.
    ///
    /// - Parameters:
    ///   - oldType: the type whose events are converted.
    ///   - newType: the type that they are converted to; not the same.
    ///   - convert: converts the data, and returns one JSON value. Must be pure: no clock, no randomness,
    ///     no I/O. If it throws for an event, views get the old form.
    public init(
        from oldType: String, to newType: String,
        _ convert: @escaping @Sendable (_ json: [UInt8]) throws -> [UInt8]
    ) {
        self.oldType = oldType
        self.newType = newType
        self.convert = convert
    }

    /// Creates an upcaster of typed data.
    ///
    /// - Parameters:
    ///   - oldType: the type whose events are converted.
    ///   - newType: the type that they are converted to; not the same.
    ///   - convert: converts the data. Must be pure; may throw, as above.
    public init<Old: EventPayload, New: EventPayload>(
        from oldType: Old.Type, to newType: New.Type,
        _ convert: @escaping @Sendable (Old) throws -> New
    ) {
        self.init(from: Old.type, to: New.type) { try convert(Old(json: $0)).json() }
    }
}
