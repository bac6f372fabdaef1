// Which events may go: what the views say of each, put together. Pure. Spec/format/compaction.md.

import LogFormat

/// What becomes of an event.
package enum CompactionVerdict: Hashable, Sendable {
    /// Nothing needs it.
    case goes
    case stays(KeptReason)
    /// Only these views need it, which do not say which events they no longer need.
    case staysForViews([String])
}

/// Judges events by the states of views.
package struct CompactionJudge: Sendable {
    private let limit: Position
    private let views: [any CompactableView]
    private let settlements: [any SettlementView]
    private let needs: ViewNeeds
    private let catalogue: EventCatalogue

    /// Creates a judge.
    ///
    /// - Parameters:
    ///   - states: the states of all views at a position; those that have no say are passed over.
    ///   - limit: only events up to here may go; at most the states' position.
    package init(states: [any Projection], limit: Position, catalogue: EventCatalogue) {
        self.init(states: states, limit: limit, needs: ViewNeeds(), catalogue: catalogue)
    }

    /// Creates a judge by a horizon.
    init(_ horizon: CompactionHorizon, catalogue: EventCatalogue) {
        self.init(
            states: horizon.states, limit: horizon.limit, needs: horizon.needs,
            catalogue: catalogue)
    }

    private init(
        states: [any Projection], limit: Position, needs: ViewNeeds, catalogue: EventCatalogue
    ) {
        self.limit = limit
        self.needs = needs
        views = states.compactMap { $0 as? any CompactableView }
        settlements = states.compactMap { $0 as? any SettlementView }
        self.catalogue = catalogue
    }

    /// What becomes of an event of the log. O(views · log state).
    package func verdict(on stored: Event) -> CompactionVerdict {
        guard stored.position <= limit else { return .stays(.afterCheckpoint) }
        // The views have folded its newest form.
        guard let event = try? catalogue.upcast(stored) else { return .stays(.notUnderstood) }
        var successors: [Stamp]?
        var reasons: Set<KeptReason> = []
        for view in views {
            switch view.retention(of: event) {
            case .unconcerned: continue
            case .needed(let reason): reasons.insert(reason)
            case .superseded(let stamps): successors = (successors ?? []) + stamps
            }
        }
        // What holds longest is said, whichever view was asked first.
        if let reason = KeptReason.allCases.first(where: reasons.contains) {
            return .stays(reason)
        }
        guard let successors else { return .stays(event.isKnownType ? .noRule : .unknownType) }
        guard isSettled(event.stamp) else { return .stays(.unsettled) }
        guard successors.allSatisfy(isSettled) else { return .stays(.successorUnsettled) }
        let views = needs.views(needing: event.type)
        return views.isEmpty ? .goes : .staysForViews(views)
    }

    /// In doubt false: without a view that knows, nothing is settled that might be shipped.
    private func isSettled(_ stamp: Stamp) -> Bool {
        settlements.isEmpty
            ? !catalogue.shipsAnything : settlements.allSatisfy { $0.isSettled(stamp) }
    }
}
