// Checks the laws of one view on a random history, with the folds, stored states and compaction verdicts of
// EventSourcing. Property+Projection draws the histories.

import Daybook
import EventSourcing
import Foundation

/// The checks of one view.
struct ProjectionCheck<View: Projection> {
    /// A history without events.
    private let empty: SampleHistory
    private let hasUpcasters: Bool
    /// The views that decide which events are superseded.
    private let superseding: [any CompactableView.Type]

    private let changes = "an event changes the view"
    private let isConverted = "an event is of an old type"
    private let removes = "compaction removes an event"

    /// - Parameters:
    ///   - empty: a history without events.
    ///   - others: views of the app that decide which events are superseded.
    /// - Throws: `EventError` (`refused`) for a view whose states cannot be compared.
    init(
        _ empty: SampleHistory, hasUpcasters: Bool, alongside others: [any CompactableView.Type]
    ) throws {
        self.empty = empty
        self.hasUpcasters = hasUpcasters
        let own = View.self as? any CompactableView.Type
        superseding = (own.map { [$0] } ?? []) + others.filter { $0 != View.self }
        guard try View() is any Equatable || View() is any ListableView || isStored else {
            throw EventError(
                .refused,
                "the states of the view \(View.self) cannot be compared. Make it Equatable, or "
                    + "encode its state")
        }
    }

    private var catalogue: EventCatalogue { empty.catalogue }
    private var isStored: Bool { get throws { try View().encodedState() != nil } }

    /// Whether a law applies to the view.
    func concerns(_ law: ProjectionLaw) throws -> Bool {
        switch law {
        case .eventTypes: View.eventTypes != nil
        case .orderOfArrival, .repetition: true
        case .storedState: try isStored
        case .compaction: View.self is any CompactableView.Type || View.allowsCompaction
        case .upcasting: hasUpcasters
        }
    }

    /// The labels that must be counted in some run; without them the histories could not break the law.
    func labels(of law: ProjectionLaw) -> [String] {
        switch law {
        case .eventTypes, .orderOfArrival, .repetition, .storedState: [changes]
        case .compaction: [changes, removes]
        case .upcasting: [changes, isConverted]
        }
    }

    /// Checks a law on a history, and adds what the history shows of the view to a report.
    ///
    /// - Throws: `ProjectionLaw.Violation`; an error of the view's encoder.
    func check(
        _ law: ProjectionLaw, on history: DrawnHistory, _ choices: inout Choices,
        _ report: inout ProjectionReport
    ) throws {
        if try difference(View(), state(history.events)) != nil { choices.count(changes) }
        report.record(try typesOfChanges(history.events))
        switch law {
        case .eventTypes: try checkTypes(history.events)
        case .orderOfArrival: try checkOrder(history)
        case .repetition: try checkRepetition(history)
        case .storedState: try checkStoredState(history)
        case .compaction: try checkCompaction(history, &choices)
        case .upcasting: try checkUpcasting(history.events, &choices)
        }
    }

    /// The types, in their newest form, of the events that change the view, in order of arrival.
    private func typesOfChanges(_ events: [Event]) throws -> [String] {
        var state = View()
        return try events.compactMap { event in
            let before = state
            state.fold(CollectionOfOne(event), by: catalogue)
            let isSame =
                try areEqual(before, state) ?? (before.encodedState() == state.encodedState())
            return isSame ? nil : catalogue.newestType(of: event.type)
        }
    }

    // MARK: The laws

    private func checkTypes(_ events: [Event]) throws {
        for type in View.eventTypes?.sorted() ?? [] {
            let newest = catalogue.newestType(of: type)
            guard !View.folds(newest) else { continue }
            throw ProjectionLaw.Violation(
                law: .eventTypes,
                detail: "eventTypes has \(type), but not \(newest), its newest type, to which a "
                    + "store converts events before a view folds them")
        }
        var all = View()
        for event in events { all.fold(catalogue.newestForm(of: event)) }
        try require(.eventTypes, "with events of all types", state(events), all)
    }

    private func checkOrder(_ history: DrawnHistory) throws {
        let other = history.reordered
        try require(
            .orderOfArrival, "in the order \(positions(other))", state(history.events), state(other)
        )
    }

    private func checkRepetition(_ history: DrawnHistory) throws {
        try require(
            .repetition, "with \(positions(history.chosen)) folded again", state(history.events),
            state(history.events + history.chosen))
    }

    private func checkStoredState(_ history: DrawnHistory) throws {
        let circumstance = "stored after \(history.past.count) events"
        var state = state(history.past)
        guard let bytes = try state.encodedState() else {
            throw ProjectionLaw.Violation(
                law: .storedState, detail: "\(circumstance), the view encodes no state")
        }
        var restored: View
        do {
            restored = try View(encodedState: bytes)
        } catch {
            throw ProjectionLaw.Violation(
                law: .storedState, detail: "\(circumstance), the state cannot be decoded: \(error)")
        }
        try require(.storedState, circumstance, state, restored)
        state.fold(history.later, by: catalogue)
        restored.fold(history.later, by: catalogue)
        try require(.storedState, "\(circumstance) and folded further", state, restored)
        let other = self.state(history.reordered)
        if areEqual(state, other) == true {
            try require(
                .storedState, "in the order \(positions(history.reordered))", state, other)
        }
    }

    /// fold(L − D − R + X) = fold(L − D + X): Spec/format/compaction.md, CMP-1 and CMP-2.
    private func checkCompaction(_ history: DrawnHistory, _ choices: inout Choices) throws {
        let (past, retracted) = (history.past, history.retracted)
        let states: [any Projection] = superseding.map { $0.init(folding: past, by: catalogue) }
        let classifier = CompactionClassifier(
            states: states + [Settlement(unsettled: Set(retracted.map(\.lwwTimestamp)))],
            limit: past.last?.position ?? .zero, catalogue: catalogue)
        // Only the chosen ones, as by a compaction that was interrupted.
        let removed = history.chosen.filter { classifier.verdict(on: $0) == .removed }
        if !removed.isEmpty { choices.count(removes) }
        let counting = history.events.filter { !retracted.contains($0) }
        try require(
            .compaction,
            "with \(positions(removed)) removed after \(past.count) events"
                + (retracted.isEmpty ? "" : " and \(positions(retracted)) retracted"),
            state(counting), state(counting.filter { !removed.contains($0) }))
    }

    /// The types, in their newest form, of events that the view's retention calls needed.
    func typesNeeded(_ history: DrawnHistory) -> Set<String> {
        guard let state = state(history.past) as? any CompactableView else { return [] }
        let needed = history.past.map { catalogue.newestForm(of: $0) }.filter { event in
            if case .needed = state.retention(of: event) { View.folds(event.type) } else { false }
        }
        return Set(needed.map(\.type))
    }

    /// The violation of a view that calls events of a type needed that never change it.
    func neededInVain(_ type: String, _ report: ProjectionReport) -> ProjectionLaw.Violation {
        ProjectionLaw.Violation(
            law: .compaction,
            detail: "retention(of:) calls events of \(type) needed, but none changed the view in "
                + "\(report.histories) histories: no event of the type would ever be removed. Answer "
                + ".unconcerned, name in eventTypes only the types that the view folds, or draw "
                + "events of the type that change it")
    }

    private func checkUpcasting(_ events: [Event], _ choices: inout Choices) throws {
        var newest = empty
        for event in events {
            do {
                newest.record(try newestDraft(event, &choices), on: .init(of: event))
            } catch {
                throw ProjectionLaw.Violation(
                    law: .upcasting, detail: "\(event.position) cannot be converted: \(error)")
            }
        }
        try require(
            .upcasting, "recorded with the newest types", state(newest.events), state(events))
    }

    /// The draft that a release with an event's newest type would record.
    private func newestDraft(_ event: Event, _ choices: inout Choices) throws -> EventDraft {
        guard catalogue.newestType(of: event.type) != event.type else { return event.content }
        choices.count(isConverted)
        let content = try catalogue.upcast(event).content
        guard let payload = try catalogue[content.type]?.payload?.init(json: content.json ?? [])
        else { return content }
        var draft = try EventDraft(
            payload, id: content.id, time: content.time, extensions: content.extensions)
        try catalogue.normalise(&draft)
        return draft
    }

    // MARK: Comparing states

    private func state(_ events: some Sequence<Event>) -> View {
        View(folding: events, by: catalogue)
    }

    private func positions(_ events: some Sequence<Event>) -> String {
        events.map { "\($0.position)" }.joined(separator: ", ")
    }

    private func require(
        _ law: ProjectionLaw, _ circumstance: @autoclosure () -> String, _ expected: View,
        _ state: View
    ) throws {
        guard let difference = try difference(expected, state, withBytes: law == .storedState)
        else { return }
        // The first form that shows the difference. The description of some collections shows only their
        // nodes.
        let forms: [(View) -> String?] = [
            json, { rows($0)?.joined(separator: " ") }, { "\($0)" },
        ]
        let form = forms.first { $0(expected) != $0(state) } ?? json
        func text(_ state: View) -> String {
            let text = form(state) ?? "\(state)"
            return text.count > 500 ? "\(text.prefix(500))…" : text
        }
        throw ProjectionLaw.Violation(
            law: law,
            detail: "\(circumstance()): \(difference)\n    expected: \(text(expected))\n"
                + "    found: \(text(state))")
    }

    /// The JSON of a `Codable` state; nil for other views.
    private func json(_ state: View) -> String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return (state as? any Encodable).flatMap { try? encoder.encode($0) }
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// A description of the difference between two states; nil if they are the same.
    ///
    /// - Parameter withBytes: whether equal states must be encoded as equal bytes.
    private func difference(
        _ one: View, _ other: View, withBytes: Bool = false
    ) throws -> String? {
        let equal = areEqual(one, other)
        if equal == false { return "the states differ" }
        if equal == nil || withBytes, try one.encodedState() != other.encodedState() {
            return equal == nil ? "the states differ" : "equal states have different encoded bytes"
        }
        return rows(one) == rows(other) ? nil : "the rows differ"
    }

    /// Whether two states are equal; nil if the view is not `Equatable`.
    private func areEqual(_ one: View, _ other: View) -> Bool? {
        func equal<State: Equatable>(_ one: State) -> Bool { one == other as? State }
        return (one as? any Equatable).map { equal($0) }
    }

    private func rows(_ state: View) -> [String]? {
        (state as? any ListableView)?.rows().map { String(decoding: $0.json, as: UTF8.self) }
    }
}

/// A settlement view with a fixed set of unsettled events.
private struct Settlement: SettlementView {
    static let name = "settlement"
    static let version = 1
    var unsettled: Set<LWWTimestamp> = []

    mutating func fold(_ event: Event) {}

    func isSettled(_ lwwTimestamp: LWWTimestamp) -> Bool { !unsettled.contains(lwwTimestamp) }
}
