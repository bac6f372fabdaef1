// What is known of event types: which are shipped, which lane they take, which rules their data
// obey. OfflineModel fills it; an app adds its own types.

/// The rule of one event type.
public struct EventRule: Sendable {
    /// The type.
    public let type: String
    /// The name of the action if the type is shipped to the server; nil keeps it on the device.
    public let action: String?
    /// Checks a draft, fills in its subject and lane.
    package let normalise: @Sendable (inout EventDraft) throws(EventError) -> Void

    /// Creates a rule.
    ///
    /// - Parameter normalise: throws `EventError` (`invalidData`) for data that break the rules of
    ///   the type; sets the draft's subject and lane where they follow from the data.
    public init(
        type: String, action: String?,
        normalise: @escaping @Sendable (inout EventDraft) throws(EventError) -> Void
    ) {
        self.type = type
        self.action = action
        self.normalise = normalise
    }
}

/// The known event types.
public struct EventCatalogue: Sendable {
    private var rules: [String: EventRule] = [:]
    private var refusesShipped = false

    /// Bytes of a line of a shipped type.
    package static let shippedBytesMax = 256 * 1024

    /// Creates a catalogue. Of two rules for one type the later counts.
    public init(_ rules: [EventRule] = []) {
        for rule in rules { self.rules[rule.type] = rule }
    }

    /// This catalogue and more.
    public func adding(_ more: [EventRule]) -> EventCatalogue {
        var result = self
        for rule in more { result.rules[rule.type] = rule }
        return result
    }

    /// This catalogue for a log that all accounts share: shipped types are refused there, since
    /// nobody could say for which account they are sent.
    package var withoutShipping: EventCatalogue {
        var result = self
        result.refusesShipped = true
        return result
    }

    /// Whether events of any type are shipped to a server.
    package var shipsAnything: Bool { rules.values.contains { $0.action != nil } }

    /// The rule of a type, if it is known.
    public subscript(type: String) -> EventRule? { rules[type] }

    /// Checks a draft against the rule of its type and fills in subject and lane. A type without a
    /// rule takes its subject as lane.
    ///
    /// - Throws: `EventError` (`badAttribute`, `invalidData`; `refused` for a shipped type in a
    ///   shared log).
    package func normalise(_ draft: inout EventDraft) throws(EventError) {
        guard !draft.type.isEmpty else { throw EventError(.badAttribute, "type is empty") }
        guard let rule = rules[draft.type] else { return }
        guard rule.action == nil || !refusesShipped else {
            throw EventError(
                .refused,
                "\(draft.type) is shipped to the server for an account, and this log is shared by "
                    + "all of them. Record it in the account's own log")
        }
        try rule.normalise(&draft)
    }

    /// The lane of a draft that has been normalised.
    package func lane(of draft: EventDraft) -> String {
        draft.lane ?? draft.subject ?? draft.type
    }
}
