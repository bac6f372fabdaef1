// What is known of event types: which are shipped, which lane they take, which rules their data
// obey, which have been replaced. OfflineModel fills it; an app adds its own types. Spec/events.md.

import LogFormat

/// The known event types.
public struct EventCatalogue: Sendable {
    private var rules: [String: EventRule] = [:]
    private var upcasters: [String: Upcaster] = [:]
    private var refusesShipped = false
    /// All types that have a rule or an upcaster.
    private(set) var known = KnownTypes()

    /// Bytes of a line of a shipped type.
    package static let shippedBytesMax = 256 * 1024

    /// Creates a catalogue. Of two rules for one type the later counts.
    ///
    /// - Parameters:
    ///   - rules: one for each known type.
    ///   - upcasters: at most one from each type, and no way round in a circle: anything else is a
    ///     mistake in the program and stops it.
    public init(_ rules: [EventRule] = [], upcasters: [Upcaster] = []) {
        add(rules, upcasters)
    }

    /// This catalogue and more.
    ///
    /// - Parameters:
    ///   - rules: of more types, or other rules of known ones.
    ///   - upcasters: as in `init`, together with those that are there.
    public func adding(_ rules: [EventRule], upcasters: [Upcaster] = []) -> EventCatalogue {
        var result = self
        result.add(rules, upcasters)
        return result
    }

    private mutating func add(_ rules: [EventRule], _ upcasters: [Upcaster]) {
        for rule in rules { self.rules[rule.type] = rule }
        for upcaster in upcasters {
            let type = upcaster.oldType
            precondition(
                self.upcasters[type] == nil, "two upcasters lead from the event type \(type)")
            precondition(
                newestType(of: upcaster.newType) != type,
                "upcasters lead from the event type \(type) back to it")
            self.upcasters[type] = upcaster
        }
        let types = Set([String](self.rules.keys) + self.upcasters.keys).map(EntityID.init).sorted()
        known = KnownTypes(
            types.map { type in
                let rule = self.rules[type.string]
                return (type.string, rule, rule ?? self.rules[newestType(of: type.string)])
            })
    }

    /// This catalogue for a log that all accounts share: shipped types are refused there, since
    /// nobody could say for which account they are sent.
    package var withoutShipping: EventCatalogue {
        var result = self
        result.refusesShipped = true
        return result
    }

    /// Whether the log is shared by all accounts: it exchanges nothing with a server.
    package var isShared: Bool { refusesShipped }

    /// Whether events of a type are taken in from other logs: shipped ones, and those of types that
    /// are not known here. What is kept on the device is a fact about another device, and a record
    /// speaks of another log's positions.
    package func takesIn(_ type: String) -> Bool {
        guard !isShared, !LogRecord.isType(type) else { return false }
        let type = known[type]
        return !type.hasRule || type.action != nil
    }

    /// Whether events of any type are shipped to a server.
    package var shipsAnything: Bool { rules.values.contains { $0.action != nil } }

    /// Whether the actions of a name begin what later events of their lane are about.
    package func beginsEntity(action: String) -> Bool {
        rules.values.contains { $0.action == action && $0.beginsEntity }
    }

    /// The rule of a type, if it is known.
    public subscript(type: String) -> EventRule? { known.rule(of: known[type]) }

    /// The types that have a rule, sorted.
    public var types: [String] { rules.keys.sorted() }

    // MARK: Recording

    /// Checks a draft against the rule of its type and fills in subject and lane. A type without a
    /// rule takes its subject as lane.
    ///
    /// - Throws: `EventError` (`badAttribute`, `invalidData`; `refused` for a shipped type in a
    ///   shared log).
    package func normalise(_ draft: inout EventDraft) throws(EventError) {
        _ = try normalised(&draft)
    }

    /// As `normalise(_:)`.
    ///
    /// - Returns: the data, if the rule has read them.
    func normalised(_ draft: inout EventDraft) throws(EventError) -> AnyDecoded? {
        guard !draft.type.isEmpty else { throw EventError(.badAttribute, "type is empty") }
        guard let rule = self[draft.type] else { return nil }
        guard rule.action == nil || !refusesShipped else {
            throw EventError(
                .refused,
                "\(draft.type) is shipped to the server for an account, and this log is shared by "
                    + "all of them. Record it in the account's own log")
        }
        return try rule.normalise(&draft)
    }

    /// The lane of a draft that has been normalised.
    package func lane(of draft: EventDraft) -> String {
        draft.lane ?? draft.subject ?? draft.type
    }

    // MARK: Replaced types

    /// Whether any type was replaced.
    var hasUpcasters: Bool { !upcasters.isEmpty }

    /// The type that events of a type are read as: where its upcasters lead, or itself.
    public func newestType(of type: String) -> String {
        var newest = type
        while let upcaster = upcasters[newest] { newest = upcaster.newType }
        return newest
    }

    /// An event in its newest form, as views and subscriptions get it: type and data are converted,
    /// everything else stays. An event of a type that no upcaster leads from is returned as it is.
    /// O(bytes) for each upcaster.
    ///
    /// - Throws: what an upcaster throws; `EventError` (`invalidData`) where there are no JSON data
    ///   to convert or none came out.
    public func upcast(_ event: Event) throws -> Event {
        guard upcasters[event.type] != nil else { return event }
        var content = event.content
        while let upcaster = upcasters[content.type] {
            guard let json = content.json else {
                throw EventError(.invalidData, "\(content.type) has no JSON data to convert")
            }
            let converted = try upcaster.convert(json)
            do throws(JSONError) {
                var scanner = JSONScanner()
                try scanner.value(converted.span.bytes)
                try scanner.expectEnd(converted.span.bytes)
            } catch {
                throw EventError(
                    .invalidData,
                    "the upcaster from \(content.type) does not give JSON: \(error.detail)")
            }
            content.type = upcaster.newType
            content.data = .json(converted)
        }
        return event.with(content, by: self)
    }

    /// An event in its newest form, or as it was recorded where it cannot be converted.
    package func newestForm(of event: Event) -> Event { (try? upcast(event)) ?? event }

    /// Which types are replaced, and for views that depend on rules also which types are known and
    /// shipped. A stored state that was folded under another value is folded anew.
    func fingerprint(includingRules: Bool) -> UInt64 {
        var lines = upcasters.values.map { EntityID("from \($0.oldType) to \($0.newType)\n") }
            .sorted()
        if includingRules {
            lines += rules.values.map { EntityID("rule \($0.type) action \($0.action ?? "")\n") }
                .sorted()
        }
        guard !lines.isEmpty else { return 0 }
        return XXH64.hash(Array(lines.map(\.string).joined().utf8).span.bytes)
    }
}
