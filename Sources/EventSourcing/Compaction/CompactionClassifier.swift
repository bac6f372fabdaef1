// Decides which events compaction may remove, from the retention that each view states. Pure.
// Spec/format/compaction.md.

import LogFormat

/// The verdict of compaction on an event.
package enum CompactionVerdict: Hashable, Sendable {
    /// No view needs it.
    case removed
    case kept(KeptReason)
    /// Only these views need it. They do not state which events they no longer need.
    case keptForViews([String])

    /// Why the event is kept; nil if it is removed.
    var keptReason: KeptReason? {
        switch self {
        case .removed: nil
        case .kept(let reason): reason
        case .keptForViews: .view
        }
    }
}

/// Classifies events by the states of views.
package struct CompactionClassifier: Sendable {
    private let limit: Position
    private let views: [any CompactableView]
    private let settlements: [any SettlementView]
    private let needs: ViewNeeds
    private let catalogue: EventCatalogue

    /// Creates a classifier.
    ///
    /// - Parameters:
    ///   - states: the states of all views at a position; views without a retention are ignored.
    ///   - limit: the last position that may be removed; at most the states' position.
    package init(states: [any Projection], limit: Position, catalogue: EventCatalogue) {
        self.init(states: states, limit: limit, needs: ViewNeeds(), catalogue: catalogue)
    }

    /// Creates a classifier for a horizon.
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

    /// The verdict on an event of the log. O(views · log state).
    package func verdict(on stored: Event) -> CompactionVerdict {
        guard stored.position <= limit else { return .kept(.afterCheckpoint) }
        // The views have folded its newest form.
        guard let event = try? catalogue.upcast(stored) else { return .kept(.notUnderstood) }
        var successors: [LWWTimestamp]?
        var reasons: Set<KeptReason> = []
        for view in views where type(of: view).folds(event.type) {
            switch view.retention(of: event) {
            case .unconcerned: continue
            case .needed(let reason): reasons.insert(reason)
            case .superseded(let lwwTimestamps): successors = (successors ?? []) + lwwTimestamps
            }
        }
        // `allCases` is ordered by how long a reason lasts, so the result does not depend on the views'
        // order.
        if let reason = KeptReason.allCases.first(where: reasons.contains) {
            return .kept(reason)
        }
        guard let successors else { return .kept(event.isKnownType ? .noRule : .unknownType) }
        guard isSettled(event.lwwTimestamp) else { return .kept(.unsettled) }
        guard successors.allSatisfy(isSettled) else { return .kept(.successorUnsettled) }
        let views = needs.views(needing: event.type)
        return views.isEmpty ? .removed : .keptForViews(views)
    }

    /// The verdict on an event of the log.
    ///
    /// - Parameter isExamined: false if its segment stays as it is.
    func verdict(on event: Event, isExamined: Bool) -> CompactionVerdict {
        isExamined ? verdict(on: event) : .kept(.liveSegment)
    }

    /// True if the event with an LWW timestamp is settled. Without a `SettlementView`, false if any type is
    /// shipped.
    private func isSettled(_ lwwTimestamp: LWWTimestamp) -> Bool {
        settlements.isEmpty
            ? !catalogue.shipsAnything : settlements.allSatisfy { $0.isSettled(lwwTimestamp) }
    }
}
