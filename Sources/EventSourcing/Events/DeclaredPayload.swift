// An event's data, declared once. Spec/model/events.md, EVT-18.

import Foundation

/// Data of an event type that declare their members once.
///
/// ```swift
/// struct TripPlanned: DeclaredPayload {
///     static let type = "com.example.trip.planned"
///     var trip: String
///     var nights: Int
///
///     static var example: TripPlanned { TripPlanned(trip: "-", nights: 1) }
///     mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
///         try members.required("trip", &trip, .identifier)
///         try members.required("nights", &nights, .count(1...365))
///     }
///     var subject: String? { trip }
/// }
/// ```
public protocol DeclaredPayload: EventPayload, DeclaredObject {}

extension DeclaredPayload {
    /// Reads the declared members. Others are passed over.
    ///
    /// - Throws: `EventError` (`invalidData`) for anything but one object, and for a member that breaks
    ///   its declaration; it names the member.
    @inlinable
    public init(json: [UInt8]) throws {
        var value = Self.example
        var reader = MemberReader(try JSONFields(json))
        try value.declareMembers(&reader)
        self = value
    }

    /// The data as JSON text: the same value always makes the same bytes.
    ///
    /// - Throws: `EventError` (`invalidData`) for a value that no member of its kind can have, such as an
    ///   infinite number.
    @inlinable
    public func json() throws -> [UInt8] { try memberJSON() }
}

/// The description of an event type as a value.
public struct EventSchema: Hashable, Sendable {
    /// The type.
    public let type: String
    /// The data.
    public let data: ObjectSchema
    /// How the subject follows from the data; nil if there is none.
    public let subject: [Part]?
    /// How the lane follows from the data; nil if it is the subject's.
    public let lane: [Part]?

    /// A part of a subject or a lane.
    public enum Part: Hashable, Sendable {
        /// This text.
        case text(String)
        /// The string of a member.
        case member(String)
    }

    /// The description of a payload type. Its subject and its lane must be made of texts and of whole
    /// members that are required strings. O(members).
    public init<Payload: DeclaredPayload>(of type: Payload.Type) {
        self.type = Payload.type
        data = ObjectSchema(of: type)
        var payload = Payload.example
        var visitor = PlaceholderVisitor()
        // The visitor throws nothing.
        try? payload.declareMembers(&visitor)
        subject = payload.subject.map(Self.parts)
        lane = payload.lane.map(Self.parts)
    }

    /// Divides a text at the marks: texts and members alternate.
    private static func parts(of text: String) -> [Part] {
        let pieces = text.split(
            separator: PlaceholderVisitor.mark, omittingEmptySubsequences: false)
        return pieces.enumerated().compactMap { index, piece in
            index % 2 == 1 ? .member(String(piece)) : piece.isEmpty ? nil : .text(String(piece))
        }
    }
}
