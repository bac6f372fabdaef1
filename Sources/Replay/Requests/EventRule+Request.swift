// The request for the events of a type, declared with the type's rule. Before RequestTransport.
// Spec/protocol/requests.md, REQ-1.

import EventSourcing
import Foundation

/// How the events of a type become requests, and what the answers mean.
struct EventRequest: Sendable {
    let promise: RequestPromise?
    let build: @Sendable (RequestContext) throws -> APIRequest?
    let learn: @Sendable (APIAnswer, RequestContext) throws -> [any EventPayload]
    let verdict: @Sendable (APIAnswer, RequestContext) throws -> APIVerdict?
}

extension EventRule {
    /// The rule of a type whose events an app's own API gets: see `RequestTransport`. The type, its action and its
    /// request stand together.
    ///
    /// ```swift
    /// .of(NoteAdded.self, action: "ADD_NOTE") { note, _ in
    ///     try APIRequest(.post, "notes", json: note)
    /// } learning: { answer, note in
    ///     [NoteNumbered(note: note.note, number: try answer.decode(Created.self).id)]
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - payload: the type of the data.
    ///   - action: the name of the action.
    ///   - beginsEntity: true if later events of its lane are meaningless without it.
    ///   - endsEntity: true if all other events of its lane are without effect.
    ///   - promise: how often a change takes effect; nil for the promise of the transport.
    ///   - request: builds the request for an event, once, before its first attempt; nil if the event needs none.
    ///     If it throws, the event is parked with the reason; after `RequestNotReady` it is tried again, within a minute
    ///     each time and without a count.
    ///   - learning: the events that an answer teaches, such as an id that the server has made. They are recorded in
    ///     one commit with the verdict. Called for `applied` and `duplicate`, and for the answer of a confirmation.
    ///   - verdict: what an answer says of the change; nil for the transport's verdict. It gets no page in HTML, unless
    ///     that has the header which the transport takes as evidence.
    public static func of<P: EventPayload>(
        _ payload: P.Type, action: String, beginsEntity: Bool = false, endsEntity: Bool = false,
        promise: RequestPromise? = nil,
        request: @escaping @Sendable (P, RequestContext) throws -> APIRequest?,
        learning: (@Sendable (APIAnswer, P) throws -> [any EventPayload])? = nil,
        verdict: (@Sendable (APIAnswer, P) throws -> APIVerdict?)? = nil
    ) -> EventRule {
        var rule = EventRule.of(
            payload, action: action, beginsEntity: beginsEntity, endsEntity: endsEntity)
        rule.request = EventRequest(
            promise: promise,
            build: { try request($0.event.payload(as: payload), $0) },
            learn: { try learning?($0, $1.event.payload(as: payload)) ?? [] },
            verdict: { try verdict?($0, $1.event.payload(as: payload)) })
        return rule
    }
}
