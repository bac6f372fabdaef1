// What must hold of a view, whatever the history is. Checked by ProjectionCheck. Spec/model/views.md.

/// A law that a view of an app obeys, unless the app can do without it.
public enum ProjectionLaw: String, CaseIterable, Sendable {
    /// Events of types that `Projection.eventTypes` does not name change nothing: a store does not hand them
    /// on.
    case eventTypes = "events of types that are not named change nothing"
    /// The same events in any order come to the same state, so devices that have exchanged their events show
    /// the same. A view that follows positions does not obey it.
    case orderOfArrival = "the order of arrival does not matter"
    /// Folding an event twice is folding it once. A store folds each event once, so a view that counts events
    /// can do without.
    case repetition = "an event folded twice counts once"
    /// A state that was stored and restored is the same, folds on the same way and is stored as the same bytes,
    /// as are all equal states.
    case storedState = "a stored state is restored as it was"
    /// Without the events that compaction removes, the view comes to the same, whatever is recorded later and
    /// whichever events are retracted that the server had not settled.
    case compaction = "what compaction removes is not missed"
    /// An event of an old type counts as one that was recorded with the data that the upcaster makes.
    case upcasting = "an event of an old type counts as one of the newest"

    /// A view that breaks a law: the cause of a `PropertyFailure`.
    public struct Violation: Error, CustomStringConvertible {
        /// The law.
        public let law: ProjectionLaw
        /// What the view did with the history that the failure's notes show.
        public let detail: String

        /// The detail.
        public var description: String { ".\(law): \(detail)" }
    }
}
