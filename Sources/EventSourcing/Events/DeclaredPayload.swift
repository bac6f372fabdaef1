// An event's data, declared once. Spec/model/events.md, EVT-18.

import Foundation

/// The data of an event type, with its members declared once.
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
    /// Reads the declared members. Ignores others.
    ///
    /// - Throws: `EventError` (`invalidData`) for anything but one object, and for a member that violates
    ///   its declaration, naming the member.
    @inlinable
    public init(json: [UInt8]) throws {
        var value = Self.example
        var reader = MemberReader(try JSONFields(json))
        try value.declareMembers(&reader)
        self = value
    }

    /// The data as JSON text. Equal values give equal bytes.
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
    /// The parts of the subject; nil if there is none.
    public let subject: [Part]?
    /// The parts of the lane; nil if it is the subject's.
    public let lane: [Part]?

    /// A part of a subject or a lane.
    public enum Part: Hashable, Sendable {
        /// This text.
        case text(String)
        /// The string of a member.
        case member(String)
    }

    /// The description of a payload type. O(members).
    ///
    /// Its subject and lane must be concatenations of literal texts and unchanged required members of the
    /// kinds `.identifier`, `.text` and `.nonEmptyText`, which must not be members of a nested object. A
    /// test checks this by comparing `subject(of:)` and `lane(of:)` with the payload's.
    public init<Payload: DeclaredPayload>(of type: Payload.Type) {
        self.type = Payload.type
        data = ObjectSchema(of: type)
        var payload = Payload.example
        var visitor = PlaceholderVisitor()
        // The visitor throws nothing.
        try? payload.declareMembers(&visitor)
        subject = payload.subjectText.map(Self.parts)
        lane = payload.laneText.map(Self.parts)
    }

    /// The subject of data by this description; nil if there is none.
    public func subject(of data: JSONFields) -> String? { subject.map { Self.joined($0, data) } }

    /// The lane of data by this description; nil if it is the subject's.
    public func lane(of data: JSONFields) -> String? { lane.map { Self.joined($0, data) } }

    private static func joined(_ parts: [Part], _ data: JSONFields) -> String {
        parts.map { part in
            switch part {
            case .text(let text): return text
            case .member(let name):
                guard let json = data.raw(named: name),
                    case .string(let value)? = try? JSONValue(json.span.bytes)
                else { return "" }
                return value
            }
        }.joined()
    }

    /// Splits a text at the marks: literal texts and members alternate.
    private static func parts(of text: String) -> [Part] {
        let pieces = text.split(
            separator: PlaceholderVisitor.mark, omittingEmptySubsequences: false)
        return pieces.enumerated().compactMap { index, piece in
            index % 2 == 1 ? .member(String(piece)) : piece.isEmpty ? nil : .text(String(piece))
        }
    }
}
