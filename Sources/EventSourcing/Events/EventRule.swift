// The rule of one event type: its action, its checks, its payload type. Spec/model/events.md.

/// The rule of one event type.
public struct EventRule: Sendable {
    /// The type.
    public let type: String
    /// The name of the action if the type is shipped to the server; nil keeps it on the device.
    public let action: String?
    /// True if an event of the type begins an entity: later events of its lane are meaningless without it.
    public let beginsEntity: Bool
    /// True if an event of the type ends an entity for ever: all other events of its lane are without effect,
    /// whatever their order.
    public let endsEntity: Bool
    /// The payload type, if there is one.
    public let payload: (any EventPayload.Type)?
    /// The error of the payload type, for which a store refuses to open.
    var fault: EventError? { payload?.fault }
    /// Checks a draft and sets its subject and lane. Returns the decoded data, if it has decoded them.
    let normalise: @Sendable (inout EventDraft) throws(EventError) -> AnyDecoded?
    /// Returns why a new event of this device is refused, by the store's `ViewSet`; nil if it is not. Set by
    /// `refusing(by:_:)`, in a folder that knows views.
    var refusal: (@Sendable (EventDraft, any Sendable) -> String?)?
    /// How events of the type are undone. Set by `undoable(by:)`, in a folder that knows views.
    var undoing: (any Sendable)?
    /// Builds the requests for events of the type, if an app's own API gets them. Set in a target that knows requests.
    package var request: (any Sendable)?
    /// Decodes data; nil if they cannot be decoded, or there is no payload type.
    let decode: @Sendable ([UInt8]) -> AnyDecoded?

    /// Creates a rule.
    ///
    /// - Parameters:
    ///   - type: the type.
    ///   - action: the name of the action if the type is shipped to the server; nil keeps it on the
    ///     device.
    ///   - beginsEntity: true if later events of its lane are meaningless without it.
    ///   - endsEntity: true if all other events of its lane are without effect.
    ///   - normalise: throws `EventError` (`invalidData`) for data that violate the rules of the type;
    ///     sets the draft's subject and lane if they depend on the data.
    public init(
        type: String, action: String?, beginsEntity: Bool = false, endsEntity: Bool = false,
        normalise: @escaping @Sendable (inout EventDraft) throws(EventError) -> Void
    ) {
        self.init(type, action, (beginsEntity, endsEntity), decode: { _ in nil }) {
            (draft) throws(EventError) in
            try normalise(&draft)
            return nil
        }
    }

    @usableFromInline
    init(
        _ type: String, _ action: String?, _ entity: (begins: Bool, ends: Bool),
        payload: (any EventPayload.Type)? = nil,
        decode: @escaping @Sendable ([UInt8]) -> AnyDecoded?,
        normalise: @escaping @Sendable (inout EventDraft) throws(EventError) -> AnyDecoded?
    ) {
        self.type = type
        self.action = action
        beginsEntity = entity.begins
        endsEntity = entity.ends
        self.payload = payload
        self.normalise = normalise
        self.decode = decode
    }

    /// The rule of a type whose data a payload type decodes and checks. Data that it cannot decode are
    /// refused (`EventError`, `invalidData`). Subject and lane are the payload's; a draft's own subject must
    /// equal the payload's.
    ///
    /// ```swift
    /// let rules: [EventRule] = [.of(TripPlanned.self, action: "PLAN_TRIP")]
    /// ```
    ///
    /// - Parameters:
    ///   - payload: the type of the data.
    ///   - action: the name of the action if the type is shipped to the server; nil keeps it on the
    ///     device.
    ///   - beginsEntity: true if later events of its lane are meaningless without it.
    ///   - endsEntity: true if all other events of its lane are without effect.
    @inlinable
    public static func of<P: EventPayload>(
        _ payload: P.Type, action: String? = nil, beginsEntity: Bool = false,
        endsEntity: Bool = false
    ) -> EventRule {
        EventRule(
            P.type, action, (beginsEntity, endsEntity), payload: P.self,
            decode: { json in (try? P(json: json)).map(Decoded.init) }
        ) { (draft) throws(EventError) in
            guard let json = draft.json else {
                throw EventError(.invalidData, "\(P.type) has no data")
            }
            let payload: P
            do {
                payload = try P(json: json)
            } catch let error as EventError {
                throw EventError(error.code, "\(P.type): \(error.detail)")
            } catch {
                throw EventError(.invalidData, "\(P.type): \(error)")
            }
            let subject = payload.subjectText
            guard
                draft.subject == nil
                    || draft.subject.map(EntityID.init) == subject.map(EntityID.init)
            else {
                throw EventError(
                    .invalidData, "\(P.type): the subject is not the entity that the data name")
            }
            draft.subject = subject
            draft.lane = payload.laneText
            return Decoded(payload)
        }
    }

    /// The description of the data; nil if no payload type declares its members. O(members).
    public var schema: EventSchema? {
        func schema(_ type: (some DeclaredPayload).Type) -> EventSchema { EventSchema(of: type) }
        return (payload as? any DeclaredPayload.Type).map { schema($0) }
    }
}
