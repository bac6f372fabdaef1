// Which events may go: what the views say of each, put together. Pure. Spec/compaction.md.

import LogFormat

/// What becomes of an event.
package enum CompactionVerdict: Hashable, Sendable {
    /// Nothing needs it.
    case goes
    case stays(KeptReason)
}

/// Judges events by the states of views.
package struct CompactionJudge: Sendable {
    private let limit: Position
    private let views: [any CompactableView]
    private let settlements: [any SettlementView]
    private let catalogue: EventCatalogue
    private let shipsAnything: Bool

    /// Creates a judge.
    ///
    /// - Parameters:
    ///   - states: the states of all views at a position; those that have no say are passed over.
    ///   - limit: only events up to here may go; at most the states' position.
    package init(states: [any Projection], limit: Position, catalogue: EventCatalogue) {
        self.limit = limit
        views = states.compactMap { $0 as? any CompactableView }
        settlements = states.compactMap { $0 as? any SettlementView }
        self.catalogue = catalogue
        shipsAnything = catalogue.shipsAnything
    }

    /// What becomes of an event of the log, given as it was recorded. O(views · log state).
    package func verdict(on event: Event) -> CompactionVerdict {
        guard event.position <= limit else { return .stays(.afterCheckpoint) }
        // As the views have folded it.
        let event = catalogue.newestForm(of: event)
        var successors: [Stamp]?
        for view in views {
            switch view.retention(of: event) {
            case .unconcerned: continue
            case .needed(let reason): return .stays(reason)
            case .superseded(let stamps): successors = (successors ?? []) + stamps
            }
        }
        guard let successors else { return .stays(event.isKnownType ? .noRule : .unknownType) }
        guard isSettled(event.stamp) else { return .stays(.unsettled) }
        guard successors.allSatisfy(isSettled) else { return .stays(.successorUnsettled) }
        return .goes
    }

    /// In doubt false: without a view that knows, nothing is settled that might be shipped.
    private func isSettled(_ stamp: Stamp) -> Bool {
        settlements.isEmpty ? !shipsAnything : settlements.allSatisfy { $0.isSettled(stamp) }
    }
}
