// From an opened log to present views: states from the checkpoint, then the events behind it.
// Spec/format/checkpoint.md.

import LogFormat
import LogStorage
import Telemetry

/// What a store begins with.
struct StoreOpening {
    let views: ViewSet
    private(set) var floor = TimeFloor()
    private(set) var checkpointing = Checkpointing()
    /// Stored states of views that are not known here, if they are to be kept.
    private(set) var unknown: [StoredState] = []
    /// The views that need every event that they take in.
    let needs: ViewNeeds

    /// Restores and folds.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: O(states + events behind the checkpoint); O(events) for a view that no
    ///   checkpoint has.
    init(
        _ log: Log, _ catalogue: EventCatalogue, _ views: ViewSet, keepsUnknownStates: Bool,
        _ instruments: Instruments,
        progress: (@Sendable (_ folded: Int, _ total: Int) -> Void)?
    ) throws {
        self.views = views
        let checkpoint = log.takeCheckpoint()
        let states = checkpoint?.states ?? []
        needs =
            keepsUnknownStates
            ? views.needs.adding(storedIn: states, but: views.names) : views.needs
        views.discarded = DiscardedEvents(restoredFrom: states)
        instruments.measure(.restore) { views.restore(states) }
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
                if event.position > floorThrough { floor.add(event.time) }
                if event.position > covered { checkpointing.add(event) }
            }
            let before = count / 10_000
            count += run.count
            if count / 10_000 > before { progress?(count / 10_000 * 10_000, total) }
        }
        if views.isStale {
            try instruments.measure(.fold) { try views.rebuild(from: states, log, catalogue) }
            checkpointing.hasRebuilt()
        }
        if first <= covered { checkpointing.hasRebuilt() }
    }
}

extension ViewSet {
    /// Folds all views anew from a log, without what was taken back. O(events).
    ///
    /// - Throws: `LogError`; the views then stay as they were.
    func rebuild(
        from states: [StoredState], _ log: Log, _ catalogue: EventCatalogue
    ) throws {
        try rebuild(from: states) { log.runs(from: $0, catalogue: catalogue) }
    }
}
