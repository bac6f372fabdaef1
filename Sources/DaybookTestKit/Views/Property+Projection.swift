// The laws of views in one line of a test. Draws the histories; what is checked of each is in
// ProjectionCheck.

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
    /// The events are made by three devices with clocks that go back and forth. Few different subjects and
    /// values make events that meet. States are compared by `==` where the view is `Equatable`, and by their
    /// stored bytes and their rows where it has them. Make the view `Equatable`: without it, a member that the
    /// stored state lacks is noticed only where it changes a later state.
    ///
    /// A law is not checked where it says nothing of the view: one whose state is not stored, one without
    /// `eventTypes`, one that keeps all events from compaction, no upcasters.
    ///
    /// - Parameters:
    ///   - view: the view.
    ///   - rules: the rules of the app's event types. An event that they ship may be retracted.
    ///   - upcasters: the ways from older event types to those that have replaced them.
    ///   - catalogue: the event types of a library, to which those of the app are added.
    ///   - others: views of the app that say which events were superseded. A view that `allowsCompaction`
    ///     and is no `CompactableView` needs them.
    ///   - exceptions: the laws that the app can do without.
    ///   - eventsMax: the most events of a history.
    ///   - runs: how many histories each law is checked with.
    ///   - seed: where the row of seeds begins.
    ///   - regressions: the choices of failures that are fixed; they are tried first, with each law.
    ///   - fileID: the file of the test, for the failure report.
    ///   - events: draws one event. Must depend on nothing but its choices.
    /// - Throws: `PropertyFailure`, whose cause is a `ProjectionLaw.Violation` and whose notes are the shrunk
    ///   history. `CoverageFailure` where the histories could not break a law: no event changed the view,
    ///   none was of an old type, or compaction removed none. `EventError` (`refused`) for rules and upcasters that
    ///   `EventStore.open` refuses, and for a view whose states cannot be compared.
    public static func checkProjection<View: Projection>(
        _ view: View.Type, rules: [EventRule] = [], upcasters: [Upcaster] = [],
        extending catalogue: EventCatalogue = .ownTypes,
        alongside others: [any CompactableView.Type] = [],
        except exceptions: Set<ProjectionLaw> = [], eventsMax: Int = 20, runs: Int = 100,
        seed: UInt64 = defaultSeed, regressions: [[UInt64]] = [], fileID: String = #fileID,
        events: (inout Choices) throws -> any EventPayload
    ) throws {
        let known = catalogue.adding(rules, upcasters: upcasters)
        try checkProjection(
            view, rules: rules, upcasters: upcasters, extending: catalogue, alongside: others,
            except: exceptions, eventsMax: eventsMax, runs: runs, seed: seed,
            regressions: regressions, fileID: fileID,
            drafts: { choices in
                var draft = try EventDraft(events(&choices))
                try known.normalise(&draft)
                return draft
            })
    }

    /// Checks the laws of a view with events that may break the rules of their types, as events of older
    /// releases and of other devices may; otherwise as the form above.
    /// `drafts` draws one event, whose id and time are replaced.
    public static func checkProjection<View: Projection>(
        _ view: View.Type, rules: [EventRule] = [], upcasters: [Upcaster] = [],
        extending catalogue: EventCatalogue = .ownTypes,
        alongside others: [any CompactableView.Type] = [],
        except exceptions: Set<ProjectionLaw> = [], eventsMax: Int = 20, runs: Int = 100,
        seed: UInt64 = defaultSeed, regressions: [[UInt64]] = [], fileID: String = #fileID,
        drafts: (inout Choices) throws -> EventDraft
    ) throws {
        let empty = try SampleHistory(rules: rules, upcasters: upcasters, extending: catalogue)
        let check = try ProjectionCheck<View>(
            empty, hasUpcasters: !upcasters.isEmpty, alongside: others)
        // A property for each law: shrinking stays with the law that is broken.
        for law in ProjectionLaw.allCases
        where try !exceptions.contains(law) && check.concerns(law) {
            try Property.check(
                "\(View.self): \(law.rawValue)", runs: runs, seed: seed, regressions: regressions,
                covering: check.labels(of: law), fileID: fileID
            ) { choices in
                let history = try DrawnHistory(
                    &choices, from: empty, eventsMax: eventsMax, drafts)
                try check.check(law, on: history, &choices)
            }
        }
    }
}
