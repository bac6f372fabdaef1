// By which states compaction judges, and how far it may go. Every stored state of any view must have
// folded what goes.
// Spec/format/compaction.md, CMP-27.

import LogFormat
import LogStorage

/// The states that compaction judges by.
struct CompactionHorizon: Sendable {
    /// Only events up to here may go.
    let limit: Position
    /// Where the states stand: what goes is superseded there.
    let position: Position
    let states: [any Projection]
    /// Views that keep the limit back, since no stored state of theirs reaches further.
    let heldBackBy: [String]
    /// The views that need events which no other view needs.
    let needs: ViewNeeds

    /// The horizon of the stored states: those of the older of two checkpoints. With fewer, nothing
    /// may go yet.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: O(states).
    static func stored(
        _ log: Log, _ views: ViewSet, _ needs: ViewNeeds, _ environment: LogEnvironment
    ) throws -> CompactionHorizon {
        let checkpoints = CheckpointSlots(log.directory, fileSystem: environment.fileSystem)
            .usable().filter { $0.logID == log.id }
        let present = views.names.sorted()
        guard let oldest = checkpoints.last, checkpoints.count > 1,
            try checkpoints.allSatisfy({ try log.holds($0) })
        else { return none(heldBackBy: present) }
        let judges = views.fresh()
        judges.restore(oldest.states)
        let stored = checkpoints.map { checkpoint in
            Dictionary(
                checkpoint.states.filter { !$0.isOfStore }
                    .map { ($0.name, $0.position) }, uniquingKeysWith: min)
        }
        var limit = oldest.position
        for state in stored.joined() { limit = min(limit, state.value) }
        // A view without a stored state here is folded from the beginning when the log is opened.
        let missing = present.filter { name in
            judges.throughs[name] != oldest.position || stored.contains { $0[name] == nil }
        }
        guard missing.isEmpty else { return none(heldBackBy: missing) }
        return CompactionHorizon(
            limit: limit, position: oldest.position, states: judges.projections,
            heldBackBy: Set(stored.joined().filter { $0.value < oldest.position }.map(\.key))
                .sorted(),
            needs: needs)
    }

    /// The horizon that the stored states would come to if they were written now: for looking only.
    ///
    /// - Parameter others: states of views that are not known here; they stay where they are.
    static func present(
        _ views: ViewSet, at position: Position, others: [StoredState], needs: ViewNeeds
    ) -> CompactionHorizon {
        let unstored = views.unstored
        guard unstored.isEmpty else { return none(heldBackBy: unstored) }
        return CompactionHorizon(
            limit: others.reduce(position) { min($0, $1.position) }, position: position,
            states: views.projections,
            heldBackBy: others.filter { $0.position < position }.map(\.name).sorted(),
            needs: needs)
    }

    private static func none(heldBackBy views: [String]) -> CompactionHorizon {
        CompactionHorizon(
            limit: .zero, position: .zero, states: [], heldBackBy: views, needs: ViewNeeds())
    }
}

extension Log {
    /// Whether a checkpoint is of this log's history: its last line is here, or has gone.
    fileprivate func holds(_ checkpoint: Checkpoint) throws -> Bool {
        guard checkpoint.position < next else { return false }
        guard checkpoint.position > .zero, let line = try line(at: checkpoint.position) else {
            return try checkpoint.position <= compactedThrough()
        }
        return try LinePrefix(line.span.bytes).id == checkpoint.lastID
    }
}
