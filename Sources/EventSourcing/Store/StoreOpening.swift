// From an opened log to current views: restores states from the checkpoint, then folds the events after
// it. Spec/format/checkpoint.md.

import LogFormat
import LogStorage
import Telemetry

/// The initial state of a store.
struct StoreOpening {
    let views: ViewSet
    private(set) var floor = TimeFloor()
    private(set) var checkpointing = Checkpointing()
    /// Stored states of views that this program does not know, if they are kept.
    private(set) var unknown: [StoredState] = []
    /// The views whose fold was changed and whose version was not, in debug builds.
    private(set) var changedFolds: [String] = []
    /// The views that need every event of their types.
    let needs: ViewNeeds

    /// Restores the views' states and folds later events.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: O(states + events after the checkpoint); O(events) for a view without a stored
    ///   state.
    init(
        _ log: Log, _ catalogue: EventCatalogue, _ views: ViewSet, keepsUnknownStates: Bool,
        _ fileSystem: any FileSystem, _ instruments: Instruments,
        progress: (@Sendable (_ folded: Int, _ total: Int) -> Void)?
    ) throws {
        self.views = views
        let checkpoint = log.consumeCheckpoint()
        let states = checkpoint?.states ?? []
        needs =
            keepsUnknownStates
            ? views.needs.merging(storedIn: states, except: views.names)
            : views.needs.mergingRows(storedIn: states)
        views.discarded = DiscardedEvents(restoredFrom: states)
        instruments.measure(.restore) { views.restore(states) }
        #if DEBUG
            if let checkpoint {
                changedFolds =
                    (try? views.changedFolds(
                        since: checkpoint, log, catalogue, fileSystem)) ?? []
            }
        #endif
        var floorThrough = Position.zero
        if let (floor, position) = TimeFloor.restored(from: states) {
            self.floor = floor
            floorThrough = position
        }
        if keepsUnknownStates {
            unknown = states.filter {
                !$0.isOfStore && !views.names.contains($0.name)
            }
        }
        checkpointing.finish(stateBytes: states.reduce(0) { $0 + $1.bytes.count })
        checkpointing.areNeedsNew =
            needs != ViewNeeds(restoredFrom: states) ?? ViewNeeds()
            && catalogue.isConcerned(by: needs)
        let covered = checkpoint?.position ?? .zero
        let first = min(views.next, floorThrough.next)
        let total = Int(clamping: log.next.rawValue - first.rawValue)
        var count = 0
        try instruments.fold(log.runs(from: first, catalogue: catalogue)) { run in
            views.fold(run[...])
            for event in run {
                if event.position > floorThrough { floor.include(event.time) }
                if event.position > covered { checkpointing.countTail(event) }
            }
            let before = count / 10_000
            count += run.count
            if count / 10_000 > before { progress?(count / 10_000 * 10_000, total) }
        }
        if views.isStale {
            try instruments.measure(.fold) { try views.rebuild(from: states, log, catalogue) }
            checkpointing.makeDue()
        }
        if first <= covered { checkpointing.makeDue() }
    }
}

extension StoreOpening {
    /// Logs which views are not folded as their states were, and which events were not converted.
    func reportFaults(_ instruments: Instruments) {
        for view in changedFolds {
            instruments.logger.error(
                """
                the fold of the view \(view) gives another state than the one stored under the same version; raise the \
                version, so that the view is folded again
                """)
        }
        for (type, count) in views.upcastFailures.byType {
            instruments.logger.warning(
                """
                \(count) events of the type \(type) are folded as they were recorded, since an upcaster threw; correct \
                the upcaster, and raise the versions of the views that fold them
                """)
        }
    }
}

extension ViewSet {
    /// Folds all views again from a log, without retracted events. O(events).
    ///
    /// - Throws: `LogError`; the views then stay as they were.
    func rebuild(
        from states: [StoredState], _ log: Log, _ catalogue: EventCatalogue
    ) throws {
        try rebuild(from: states) { log.runs(from: $0, catalogue: catalogue) }
    }
}
