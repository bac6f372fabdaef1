// The laws that a view obeys for every history. ProjectionCheck checks them. Spec/model/views.md.

/// A law that a view of an app obeys, unless the app does not need it.
public enum ProjectionLaw: String, CaseIterable, Sendable {
    /// Events of types that `Projection.eventTypes` does not name change nothing: a store does not fold them.
    case eventTypes = "events of types that are not named change nothing"
    /// The same events in any order give the same state, so devices that have exchanged their events show the
    /// same. A view that depends on positions does not obey it.
    case orderOfArrival = "the order of arrival does not matter"
    /// Folding an event twice gives the same state as folding it once. A store folds each event once, so a
    /// view that counts events does not need this law.
    case repetition = "an event folded twice counts once"
    /// A decoded state is equal to the encoded one, and folds later events to the same state. Equal states
    /// are encoded as equal bytes.
    case storedState = "a stored state is restored as it was"
    /// Without the events that compaction removes, the view has the same state, also after later events and
    /// after the retraction of any events that the server had not settled.
    case compaction = "what compaction removes is not missed"
    /// An event of an old type has the same effect as one that was recorded with the upcaster's data.
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
