// The typed data of an event, and how they become a draft.

import Foundation

/// The data of one event type.
///
/// An app's own events are `Codable` types with a `type` and, if there is one, a `subject`; all else has
/// a default. A `DeclaredPayload` declares its members and their kinds instead.
public protocol EventPayload: Sendable {
    /// The event type, dotted: `com.example.trip.planned`.
    static var type: String { get }
    /// `String` or `String?`. A store refuses to open with a type that has a subject of any other type.
    associatedtype Subject = String?
    /// `String` or `String?`, as `Subject`.
    associatedtype Lane = String?
    /// The entity that the event is about.
    var subject: Subject { get }
    /// The event's lane: events of one lane keep their order when shipped. If nil, the subject.
    var lane: Lane { get }
    /// Reads the data of an event.
    init(json: [UInt8]) throws
    /// The data as JSON text.
    func json() throws -> [UInt8]
}

extension EventPayload {
    /// No subject.
    public var subject: String? { nil }
    /// The subject's lane.
    public var lane: String? { nil }
}

extension EventPayload {
    /// The subject as an event stores it. Cast to `String?`, the type that nearly all have: such a cast is a copy.
    @inlinable
    package var subjectText: String? { subject as? String? ?? nil }
    /// The lane as an event stores it.
    @inlinable
    package var laneText: String? { lane as? String? ?? nil }

    /// The error of a subject or a lane that is no text. Without it, such a property would count as absent, and the
    /// events would have no subject or no order.
    static var fault: EventError? {
        fault(of: "subject", Subject.self) ?? fault(of: "lane", Lane.self)
    }

    private static func fault(of property: StaticString, _ type: Any.Type) -> EventError? {
        guard type != String?.self, type != String.self else { return nil }
        return EventError(
            .refused,
            "the \(property) of \(Self.self) (\(Self.type)) is of the type \(type). Declare it as "
                + "String or String?")
    }
}

extension EventPayload where Self: Codable {
    /// Decodes JSON; dates from ISO 8601.
    ///
    /// - Throws: `EventError` (`invalidData`), naming the member.
    public init(json: [UInt8]) throws {
        self = try PayloadCoding.decode(Self.self, json)
    }

    /// Encodes JSON with sorted members and dates in ISO 8601 with milliseconds; smaller fractions are lost.
    /// Equal values give equal bytes.
    ///
    /// - Throws: `EventError` (`invalidData`), naming a member that JSON cannot express, such as NaN.
    public func json() throws -> [UInt8] { try PayloadCoding.encode(self) }
}

/// Decoded data, shared by all views that fold the event. A class, since casting an object to its type is
/// cheap.
@usableFromInline
final class Decoded<Payload: EventPayload>: Sendable {
    @usableFromInline
    let payload: Payload
    @usableFromInline
    init(_ payload: Payload) { self.payload = payload }
}

/// A `Decoded` of any type.
@usableFromInline
typealias AnyDecoded = any AnyObject & Sendable

extension EventDraft {
    /// Creates a draft of a typed event.
    ///
    /// - Parameters:
    ///   - payload: the event's data.
    ///   - id: the event's identity.
    ///   - time: the time at which it happened; if nil, the time of recording.
    ///   - base: the id of the event that set the value which this one changes, for a server that reports
    ///     conflicts; `noBase` if no value was seen. With nil the event is never in conflict.
    ///   - extensions: other attributes.
    /// - Throws: what the payload's encoder throws; `EventError` (`refused`) for a subject or a lane that is neither
    ///   `String` nor `String?`.
    public init(
        _ payload: some EventPayload, id: UUID = UUID(), time: Timestamp? = nil,
        basedOn base: UUID? = nil, extensions: [Extension] = []
    ) throws {
        let type = Swift.type(of: payload).type
        if let fault = Swift.type(of: payload).fault { throw fault }
        let json: [UInt8]
        do { json = try payload.json() } catch let error as EventError { throw error.ofType(type) }
        self.init(
            id: id, type: type, subject: payload.subjectText, lane: payload.laneText, time: time,
            extensions: extensions, data: .json(json))
        if let base { baseID = base }
    }
}
