// The states by which compaction classifies events, and the last position that it may remove: every stored
// state of every view must have folded the removed events. Spec/format/compaction.md, CMP-27.

import LogFormat
import LogStorage

/// The states by which compaction classifies events.
struct CompactionHorizon: Sendable {
    /// The last position that may be removed.
    let limit: Position
    /// The position of the states: removed events are superseded at it.
    let position: Position
    let states: [any Projection]
    /// The views that limit the horizon, since their stored states end before `position`.
    let heldBackBy: [String]
    /// The views that need all events of their types.
    let needs: ViewNeeds

    /// The horizon of the stored states: those of the older of two checkpoints. With fewer than two
    /// checkpoints, nothing may be removed.
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
            try checkpoints.allSatisfy({ try log.sharesHistory(with: $0) })
        else { return none(heldBackBy: present) }
        let restored = views.fresh()
        restored.restore(oldest.states)
        let stored = checkpoints.map { checkpoint in
            Dictionary(
                checkpoint.states.filter { !$0.isOfStore }
                    .map { ($0.name, $0.position) }, uniquingKeysWith: min)
        }
        var limit = oldest.position
        for state in stored.joined() { limit = min(limit, state.value) }
        // A view without a stored state is folded from the first event at the next opening.
        let missing = present.filter { name in
            restored.throughs[name] != oldest.position || stored.contains { $0[name] == nil }
        }
        guard missing.isEmpty else { return none(heldBackBy: missing) }
        return CompactionHorizon(
            limit: limit, position: oldest.position, states: restored.projections,
            heldBackBy: Set(stored.joined().filter { $0.value < oldest.position }.map(\.key))
                .sorted(),
            needs: needs)
    }

    /// The horizon that the stored states would give if they were written now. For estimates only.
    ///
    /// - Parameter unknown: stored states of unknown views, at the positions they have.
    static func present(
        _ views: ViewSet, at position: Position, unknown: [StoredState], needs: ViewNeeds
    ) -> CompactionHorizon {
        let unstored = views.unstored
        guard unstored.isEmpty else { return none(heldBackBy: unstored) }
        return CompactionHorizon(
            limit: unknown.reduce(position) { min($0, $1.position) }, position: position,
            states: views.projections,
            heldBackBy: unknown.filter { $0.position < position }.map(\.name).sorted(),
            needs: needs)
    }

    private static func none(heldBackBy views: [String]) -> CompactionHorizon {
        CompactionHorizon(
            limit: .zero, position: .zero, states: [], heldBackBy: views, needs: ViewNeeds())
    }
}

extension Log {
    /// True if a checkpoint belongs to this log's history: the log has its last line, or compaction has
    /// removed it.
    func sharesHistory(with checkpoint: Checkpoint) throws -> Bool {
        guard checkpoint.position < next else { return false }
        guard checkpoint.position > .zero, let line = try line(at: checkpoint.position) else {
            return try checkpoint.position <= compactedThrough()
        }
        return try LinePrefix(line.span.bytes).id == checkpoint.lastID
    }
}
