// The typed side of an event: what a Swift type must say to be recorded, and how it becomes a draft.

import Foundation

/// Data of one event type.
///
/// An app's own events are `Codable` types that name their `type` and, where there is one, their
/// `subject`; everything else has a default. A
/// `DeclaredPayload` names its members and their kinds instead.
public protocol EventPayload: Sendable {
    /// The event type, dotted: `com.example.trip.planned`.
    static var type: String { get }
    /// What the event is about.
    var subject: String? { get }
    /// The lane whose order the event keeps when shipped; nil takes the subject.
    var lane: String? { get }
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

extension EventPayload where Self: Codable {
    /// Decodes JSON; dates from ISO 8601, or from the seconds since 2001 that earlier releases wrote.
    ///
    /// - Throws: `EventError` (`invalidData`), naming the member.
    public init(json: [UInt8]) throws {
        self = try PayloadCoding.decode(Self.self, json)
    }

    /// Encodes JSON, members sorted, dates in ISO 8601 with milliseconds, so that a date loses what is below
    /// a millisecond: the same value always makes the same bytes. An event with a date that an earlier
    /// release has recorded has other bytes: the same id with it is refused (`idReused`).
    ///
    /// - Throws: `EventError` (`invalidData`), naming a member that JSON cannot hold, such as NaN.
    public func json() throws -> [UInt8] { try PayloadCoding.encode(self) }
}

/// Data that were read as a type says, so that nobody who gets the event reads them again. An object,
/// since asking an object for its type is cheap.
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
    /// A draft of a typed event.
    ///
    /// - Parameters:
    ///   - payload: the event's data.
    ///   - id: the event's identity.
    ///   - time: when it happened; nil: when it is recorded.
    ///   - base: the id of the event that set the value which this one changes, for a server that reports
    ///     conflicts.
    ///   - extensions: other attributes.
    /// - Throws: what the payload's encoder throws.
    public init(
        _ payload: some EventPayload, id: UUID = UUID(), time: Timestamp? = nil,
        basedOn base: UUID? = nil, extensions: [Extension] = []
    ) throws {
        self.init(
            id: id, type: Swift.type(of: payload).type, subject: payload.subject,
            lane: payload.lane,
            time: time, extensions: extensions, data: .json(try payload.json()))
        if let base { baseID = base }
    }
}
