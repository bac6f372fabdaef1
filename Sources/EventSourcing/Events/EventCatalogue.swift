// The known event types: their rules, actions and lanes, and the upcasters from replaced types. An app
// lists its types; the store's own records are always known. Spec/model/events.md.

import LogFormat

/// The known event types.
public struct EventCatalogue: Sendable {
    private var rules: [String: EventRule] = [:]
    private var upcasters: [String: Upcaster] = [:]
    private var refusesShipped = false
    /// The rules that the log has recorded: they apply to types that have no rule here.
    private var recorded = RecordedRules()
    /// The prefixes of types that are reserved for libraries.
    private var reservedPrefixes: [String] = []
    /// The types that libraries have defined.
    private(set) var reservedTypes: Set<String>?
    /// The error of the first rule or upcaster that was left out.
    package private(set) var fault: EventError?
    /// All types that have a rule or an upcaster.
    private(set) var known = KnownTypes()

    /// The most bytes of a line of a shipped type when it is recorded. A server has its own limit. EVT-3.
    package static let shippedBytesMax = 256 * 1024

    /// Creates a catalogue.
    ///
    /// An invalid or conflicting rule or upcaster is left out, and `EventStore.open` refuses the
    /// catalogue, naming it (`EventError`, `refused`).
    ///
    /// - Parameters:
    ///   - rules: one for each known type.
    ///   - upcasters: at most one from each type, without a cycle.
    public init(_ rules: [EventRule] = [], upcasters: [Upcaster] = []) {
        for rule in LogRecord.rules { self.rules[rule.type] = rule }
        insert(rules, upcasters)
    }

    /// This catalogue with further rules and upcasters. Invalid ones are left out, as in `init`.
    ///
    /// - Parameters:
    ///   - rules: rules of types that have none yet.
    ///   - upcasters: as in `init`, together with the existing ones.
    public func adding(_ rules: [EventRule], upcasters: [Upcaster] = []) -> EventCatalogue {
        var result = self
        result.insert(rules, upcasters)
        return result
    }

    private mutating func insert(_ rules: [EventRule], _ upcasters: [Upcaster]) {
        for rule in rules {
            if let fault = fault(of: rule) {
                self.fault = self.fault ?? fault
            } else {
                self.rules[rule.type] = rule
            }
        }
        for upcaster in upcasters {
            if let fault = fault(of: upcaster) {
                self.fault = self.fault ?? fault
            } else {
                self.upcasters[upcaster.oldType] = upcaster
            }
        }
        updateKnown()
    }

    private mutating func updateKnown() {
        let names = [String](rules.keys) + upcasters.keys + recorded.rules.keys
        known = KnownTypes(
            Set(names).map(EntityID.init).sorted().map { type in
                (
                    type.string, rules[type.string], storedRule(of: type.string),
                    recorded.rules[type.string]
                )
            })
    }

    /// The rule of stored events: their type's own, or that of the type that has replaced it.
    private func storedRule(of type: String) -> EventRule? {
        rules[type] ?? rules[newestType(of: type)]
    }

    /// The rules of stored events, by type.
    var storedRules: [String: EventRule] {
        let types = [String](rules.keys) + upcasters.keys
        return Dictionary(
            types.map { ($0, storedRule(of: $0)) }, uniquingKeysWith: { first, _ in first }
        )
        .compactMapValues(\.self)
    }

    /// This catalogue with rules that the log has recorded. A type that has a rule here keeps it.
    func adding(_ recorded: RecordedRules) -> EventCatalogue {
        guard recorded != self.recorded else { return self }
        var result = self
        result.recorded = recorded
        result.updateKnown()
        return result
    }

    /// The recorded rules of types that have none here, by type.
    private var missingRules: [String: RecordedRules.Rule] {
        recorded.rules.filter { storedRule(of: $0.key) == nil }
    }

    /// The types that were shipped or replaced in this log, and have no rule here, sorted.
    var typesWithoutRule: [String] { missingRules.keys.map(EntityID.init).sorted().map(\.string) }

    /// True if types have been used in this log, or are declared here, that are not the library's.
    package var hasOwnTypes: Bool {
        !recorded.isEmpty || !RecordedRules(of: self).isEmpty
    }

    private func fault(of rule: EventRule) -> EventError? {
        if rule.type.isEmpty {
            return EventError(.refused, "a rule has an empty event type. Name the type")
        }
        if rule.action?.isEmpty ?? false {
            return EventError(
                .refused,
                "the rule of the event type \(rule.type) has an empty action. Name the action, or "
                    + "leave it out to keep the type on the device")
        }
        if isReserved(rule.type) || isBuiltIn(rule.type) {
            return Self.reserved(rule.type, "a rule")
        }
        if let fault = rule.fault { return fault }
        guard rules[rule.type] == nil else {
            return EventError(
                .refused, "two rules are for the event type \(rule.type). Leave one out")
        }
        return nil
    }

    private func fault(of upcaster: Upcaster) -> EventError? {
        let (old, new) = (upcaster.oldType, upcaster.newType)
        if old.isEmpty || new.isEmpty {
            return EventError(
                .refused, "the upcaster from '\(old)' to '\(new)' has an empty event type")
        }
        if isReserved(old) || isBuiltIn(old) { return Self.reserved(old, "an upcaster") }
        // An app must not write a record of the store's own through an upcaster.
        if isReserved(new) || LogRecord.isType(new) { return Self.reserved(new, "an upcaster") }
        if upcasters[old] != nil {
            return EventError(
                .refused, "two upcasters lead from the event type \(old). Leave one out")
        }
        guard newestType(of: new) != old else {
            return EventError(
                .refused,
                "the upcasters from the event type \(old) form a cycle. Leave one of them out")
        }
        return nil
    }

    // MARK: Reserved types

    /// This catalogue, with the types of the library reserved.
    package var reservingLibraryTypes: EventCatalogue {
        reserving(LibraryNames.prefix.description)
    }

    /// This catalogue with its types reserved, and every other type with the prefix: rules and upcasters
    /// added later must not name them. For a library whose apps add their own types.
    ///
    /// Reservations accumulate.
    ///
    /// - Parameter prefix: the prefix of the library's types, such as `com.example.`, also of those that
    ///   a later release defines. An empty one is ignored, and `EventStore.open` refuses the catalogue.
    public func reserving(_ prefix: String) -> EventCatalogue {
        var result = self
        guard !prefix.isEmpty else {
            result.fault =
                fault ?? EventError(.refused, "the prefix of reserved event types is empty")
            return result
        }
        result.reservedPrefixes.append(prefix)
        result.reservedTypes = Set(rules.keys)
        return result
    }

    /// True for a type that only a later release of the library may define.
    func isReserved(_ type: String) -> Bool {
        if LogRecord.isType(type) { return rules[type] == nil }
        guard let reservedTypes, !reservedTypes.contains(type) else { return false }
        return reservedPrefixes.contains { type.utf8.starts(with: $0.utf8) }
    }

    private func isBuiltIn(_ type: String) -> Bool {
        LogRecord.isType(type) || reservedTypes?.contains(type) ?? false
    }

    static func reserved(_ type: String, _ culprit: String) -> EventError {
        EventError(
            .refused,
            "\(culprit) is of the event type \(type), which belongs to the library. Use a type of "
                + "your own, such as com.example.\(type)")
    }

    /// This catalogue for a log that all accounts share: shipped types are refused, since no account is
    /// known for which they could be sent.
    package var withoutShipping: EventCatalogue {
        var result = self
        result.refusesShipped = true
        return result
    }

    /// True for a log that all accounts share: it exchanges nothing with a server.
    package var isShared: Bool { refusesShipped }

    /// True if events of a type are accepted from other logs: shipped types and unknown ones. An event of a
    /// type that is kept on the device is a fact about another device, and a record names positions of
    /// another log.
    package func acceptsForeign(_ type: String) -> Bool {
        guard !isShared, !LogRecord.isType(type) else { return false }
        let type = known[type]
        return !type.hasRule || type.action != nil
    }

    /// True if any type is shipped to a server.
    package var shipsAnything: Bool {
        rules.values.contains { $0.action != nil }
            || recorded.rules.values.contains { $0.action != nil }
    }

    /// True if events with the action begin an entity that later events of their lane are about.
    package func beginsEntity(action: String) -> Bool {
        rules.values.contains { $0.action == action && $0.beginsEntity }
            || missingRules.values.contains { $0.action == action && $0.beginsEntity }
    }

    /// The rule of a type; nil if it has none.
    public subscript(type: String) -> EventRule? { known.rule(of: known[type]) }

    /// The types that have a rule, sorted.
    public var types: [String] { rules.keys.sorted() }

    // MARK: Recording

    /// Checks a draft against the rule of its type, and sets its subject and lane. Without a rule, the
    /// draft is unchanged.
    ///
    /// - Throws: `EventError` (`badAttribute`, `invalidData`; `refused` for a shipped type in a
    ///   shared log).
    package func normalise(_ draft: inout EventDraft) throws(EventError) {
        _ = try normalised(&draft, as: known[draft.type])
    }

    /// Checks a draft as `normalise(_:)`, with its type looked up already.
    ///
    /// - Returns: the decoded data, if the rule has decoded them.
    func normalised(
        _ draft: inout EventDraft, as type: CataloguedType
    ) throws(EventError) -> AnyDecoded? {
        guard !draft.type.isEmpty else { throw EventError(.badAttribute, "type is empty") }
        guard let rule = known.rule(of: type) else { return nil }
        guard rule.action == nil || !refusesShipped else {
            throw EventError(
                .refused,
                "\(draft.type) is shipped to the server for an account, and this log is shared by "
                    + "all accounts. Record it in the account's own log")
        }
        return try rule.normalise(&draft)
    }

    /// The lane of a normalised draft.
    package func lane(of draft: EventDraft) -> String {
        draft.lane ?? draft.subject ?? draft.type
    }

    // MARK: Replaced types

    /// True if any type was replaced.
    var hasUpcasters: Bool { !upcasters.isEmpty }

    /// The newest form of a type: the end of its chain of upcasters, or the type itself.
    public func newestType(of type: String) -> String {
        var newest = type
        while let upcaster = upcasters[newest] { newest = upcaster.newType }
        return newest
    }

    /// Converts an event to its newest form, as views and subscriptions get it: type and data change, all
    /// else stays. An event whose type has no upcaster is returned unchanged. O(bytes) for each upcaster.
    ///
    /// - Throws: what an upcaster throws; `EventError` (`invalidData`) if the event has no JSON data, or an
    ///   upcaster does not return JSON.
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
                    "the upcaster from \(content.type) does not return JSON: \(error.detail)")
            }
            content.type = upcaster.newType
            content.data = .json(converted)
        }
        return event.with(content, by: self)
    }

    /// An event in its newest form, or as it was recorded if it cannot be converted.
    package func newestForm(of event: Event) -> Event { (try? upcast(event)) ?? event }

    /// A fingerprint of the upcasters, and for views that depend on rules also of the types with rules, recorded
    /// ones included, and their actions. A stored state that was folded under another fingerprint is folded again.
    package func fingerprint(includingRules: Bool) -> UInt64 {
        var lines = upcasters.values.map { EntityID("from \($0.oldType) to \($0.newType)\n") }
            .sorted()
        if includingRules {
            let recorded = missingRules.map { ($0.key, $0.value.action) }
            lines += (rules.values.map { ($0.type, $0.action) } + recorded)
                .map { EntityID("rule \($0) action \($1 ?? "")\n") }.sorted()
        }
        guard !lines.isEmpty else { return 0 }
        return XXH64.hash(Array(lines.map(\.string).joined().utf8).span.bytes)
    }
}
