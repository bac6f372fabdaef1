// Checks the laws of a view in one call of a test. This file draws the histories; ProjectionCheck has the
// checks.

import Daybook
import EventSourcing
import Foundation

extension Property {
    /// Checks the laws of a view with random histories: see `ProjectionLaw`.
    ///
    /// ```swift
    /// @Test func tripsObeyTheLaws() throws {
    ///     try Property.checkProjection(Trips.self, rules: rules, upcasters: upcasters) { choices in
    ///         let trip = choices.element(of: ["spring", "summer"])
    ///         return choices.bool()
    ///             ? TripPlanned(trip: trip, stop: choices.element(of: ["lake", "forest"]))
    ///             : TripNamed(trip: trip, name: choices.element(of: ["North", "South"]))
    ///     }
    /// }
    /// ```
    ///
    /// The events come from three devices with clocks that go back and forth. Draw few different subjects and
    /// values, so that events affect each other. States are compared by `==` if the view is `Equatable`, and
    /// by their encoded bytes and their rows if it has them. Make the view `Equatable`: otherwise a member
    /// that is missing in the encoded state is detected only if it changes a later state.
    ///
    /// A law that does not apply to the view is not checked: `storedState` without an encoded state,
    /// `eventTypes` without `Projection.eventTypes`, `compaction` for a view that keeps all events,
    /// `upcasting` without upcasters.
    ///
    /// - Parameters:
    ///   - view: the view.
    ///   - rules: the rules of the app's event types. An event that they ship may be retracted.
    ///   - upcasters: the conversions of older event types to their successors.
    ///   - catalogue: the event types of a library, to which those of the app are added.
    ///   - others: views of the app that decide which events are superseded. A view that `allowsCompaction`
    ///     and is not a `CompactableView` needs them.
    ///   - exceptions: the laws that the app does not need.
    ///   - eventsMax: the highest number of events in a history.
    ///   - runs: the number of histories for each law. Nil: 100, and up to 1,000 until each ordered pair of event
    ///     types that change the view has met in ten of them.
    ///   - seed: the seed from which the seeds of the runs follow.
    ///   - regressions: the choices of fixed failures; they are tried first, with each law.
    ///   - fileID: the file of the test, for the failure report.
    ///   - events: draws one event. Must depend on nothing but its choices.
    /// - Returns: which event types changed the view, and which pairs of them met.
    /// - Throws: `PropertyFailure`, whose cause is a `ProjectionLaw.Violation` and whose notes are the shrunk
    ///   history. `ProjectionLaw.Violation` for a `CompactableView` whose retention calls events of a type
    ///   needed that never changed it. `CoverageFailure` if the histories could not break a law: no event
    ///   changed the view, none was of an old type, or compaction removed none. `EventError` (`refused`) for rules and upcasters
    ///   that `EventStore.open` refuses, and for a view whose states cannot be compared.
    @discardableResult
    public static func checkProjection<View: Projection>(
        _ view: View.Type, rules: [EventRule] = [], upcasters: [Upcaster] = [],
        extending catalogue: EventCatalogue = .ownTypes,
        alongside others: [any CompactableView.Type] = [],
        except exceptions: Set<ProjectionLaw> = [], eventsMax: Int = 20, runs: Int? = nil,
        seed: UInt64 = defaultSeed, regressions: [[UInt64]] = [], fileID: String = #fileID,
        events: (inout Choices) throws -> any EventPayload
    ) throws -> ProjectionReport {
        let extended = catalogue.adding(rules, upcasters: upcasters)
        return try checkProjection(
            view, rules: rules, upcasters: upcasters, extending: catalogue, alongside: others,
            except: exceptions, eventsMax: eventsMax, runs: runs, seed: seed,
            regressions: regressions, fileID: fileID,
            drafts: { choices in
                var draft = try EventDraft(events(&choices))
                try extended.normalise(&draft)
                return draft
            })
    }

    /// Checks the laws of a view with events that may break the rules of their types, as events of older
    /// releases and of other devices may; otherwise the same as the form with `events`. `drafts` draws one
    /// event, whose id and time are replaced.
    @discardableResult
    public static func checkProjection<View: Projection>(
        _ view: View.Type, rules: [EventRule] = [], upcasters: [Upcaster] = [],
        extending catalogue: EventCatalogue = .ownTypes,
        alongside others: [any CompactableView.Type] = [],
        except exceptions: Set<ProjectionLaw> = [], eventsMax: Int = 20, runs: Int? = nil,
        seed: UInt64 = defaultSeed, regressions: [[UInt64]] = [], fileID: String = #fileID,
        drafts: (inout Choices) throws -> EventDraft
    ) throws -> ProjectionReport {
        let empty = try SampleHistory(rules: rules, upcasters: upcasters, extending: catalogue)
        let check = try ProjectionCheck<View>(
            empty, hasUpcasters: !upcasters.isEmpty, alongside: others)
        var whole = ProjectionReport(of: view)
        // One property for each law, so that shrinking keeps to the broken one.
        for law in ProjectionLaw.allCases
        where try !exceptions.contains(law) && check.concerns(law) {
            var report = ProjectionReport(of: view)
            var needed: Set<String> = []
            try Property.check(
                "\(View.self): \(law.rawValue)", runs: runs ?? 1_000, seed: seed,
                regressions: regressions, covering: check.labels(of: law),
                while: { $0.runs < runs ?? 100 || !report.hasMetEachPair(inHistories: 10) },
                fileID: fileID
            ) { choices in
                let history = try DrawnHistory(
                    &choices, from: empty, eventsMax: eventsMax, drafts)
                try check.check(law, on: history, &choices, &report)
                if law == .compaction { needed.formUnion(check.typesNeeded(history)) }
            }
            if let type = needed.subtracting(report.changes.keys).min() {
                throw check.neededInVain(type, report)
            }
            whole.merge(report)
        }
        return whole
    }
}
