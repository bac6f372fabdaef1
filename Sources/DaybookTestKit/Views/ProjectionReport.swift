// How much of a view the histories of a check have met. Laws that hold for few pairs of event types say little.

import Daybook

/// What the histories of a check have shown of a view.
public struct ProjectionReport: Sendable, Equatable, CustomStringConvertible {
    /// Two event types, of which the second changed the view after the first.
    public struct Pair: Hashable, Sendable {
        /// The type of the earlier event.
        public let first: String
        /// The type of the later event.
        public let second: String
    }

    /// The view.
    public let view: String
    /// The number of histories, of all laws together.
    public private(set) var histories = 0
    /// The number of histories in which an event of a type changed the view, by the type in its newest form.
    public private(set) var changes: [String: Int] = [:]
    /// The number of histories in which an event of the first type changed the view, and later one of the second.
    public private(set) var pairs: [Pair: Int] = [:]
    /// The event types that the view names and that never changed it.
    public var missing: [String] { eventTypes.subtracting(changes.keys).sorted() }

    private let eventTypes: Set<String>

    /// Creates the report of a check that has drawn no history.
    init<View: Projection>(of view: View.Type) {
        self.view = "\(view)"
        eventTypes = view.eventTypes ?? []
    }

    /// Adds a history.
    ///
    /// - Parameter types: the types of the events that changed the view, in order of arrival.
    mutating func record(_ types: [String]) {
        histories += 1
        var earlier: Set<String> = []
        var met: Set<Pair> = []
        for type in types {
            for first in earlier { met.insert(Pair(first: first, second: type)) }
            earlier.insert(type)
        }
        for type in earlier { changes[type, default: 0] += 1 }
        for pair in met { pairs[pair, default: 0] += 1 }
    }

    /// Adds the histories of another law.
    mutating func merge(_ other: ProjectionReport) {
        histories += other.histories
        changes.merge(other.changes, uniquingKeysWith: +)
        pairs.merge(other.pairs, uniquingKeysWith: +)
    }

    /// Whether each ordered pair of types that changed the view was met in this many histories.
    func hasMetEachPair(inHistories count: Int) -> Bool {
        changes.keys.allSatisfy { first in
            changes.keys.allSatisfy { second in
                pairs[Pair(first: first, second: second), default: 0] >= count
            }
        }
    }

    /// The numbers of histories, of event types that changed the view, and of ordered pairs of them.
    public var description: String {
        let count = changes.count
        let missing = missing
        return "\(view): \(histories) histories; \(count) types changed it, and "
            + "\(pairs.count) of \(count * count) ordered pairs of them met"
            + (missing.isEmpty ? "" : "; never changed by \(missing.joined(separator: ", "))")
    }
}
