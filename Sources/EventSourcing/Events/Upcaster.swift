// How an event of an old type is read as one of the type that has replaced it. The stored line stays
// as it is; EventCatalogue applies upcasters where events go to views and subscriptions.
// Spec/model/events.md, EVT-10.

/// The way from an event type to a newer one that replaces it.
///
/// A change of a type's data that old readers would not understand is a new type. Events of the old
/// type stay in the log, byte for byte, and an upcaster makes the new form of them whenever they are
/// read:
///
/// ```swift
/// Upcaster(from: TripPlanned.self, to: TripPlannedV2.self) { old in
///     TripPlannedV2(stops: [old.stop])
/// }
/// ```
///
/// Upcasters are chained: from version 1 to 2 and from 2 to 3 gives 1 to 3. So each knows two
/// versions, and none of them ever changes once it was released.
public struct Upcaster: Sendable {
    /// The type whose events are converted.
    public let oldType: String
    /// The type that they become.
    public let newType: String
    let convert: @Sendable (_ json: [UInt8]) throws -> [UInt8]

    /// Creates an upcaster of JSON text.
    ///
    /// - Parameters:
    ///   - oldType: the type whose events are converted.
    ///   - newType: the type that they become; not the same.
    ///   - convert: makes the new data of the old, as one JSON value. Must be pure: no clock, no
    ///     randomness, no I/O. For an event that it throws for, views get the old form.
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
    ///   - newType: the type that they become; not the same.
    ///   - convert: makes the new data of the old. Must be pure; may throw, as above.
    public init<Old: EventPayload, New: EventPayload>(
        from oldType: Old.Type, to newType: New.Type,
        _ convert: @escaping @Sendable (Old) throws -> New
    ) {
        self.init(from: Old.type, to: New.type) { try convert(Old(json: $0)).json() }
    }
}
