// Finds folds that were changed without their version: their states would be a mixture of old and new. Only in debug
// builds. Between opening and the views. Spec/model/views.md, VIEW-33.

import LogFormat
import LogStorage

extension ViewSet {
    /// The most events that are folded for the comparison.
    private static let comparedMax: UInt64 = 4_096

    /// The names of the views whose fold, applied to the events before a checkpoint, gives another state than the
    /// checkpoint has. The fold begins at the checkpoint before it, or at the first event.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: O(states + events); nothing is compared if there are more than 4,096 events.
    func changedFolds(
        since checkpoint: Checkpoint, _ log: Log, _ catalogue: EventCatalogue,
        _ fileSystem: any FileSystem
    ) throws -> [String] {
        let older = CheckpointSlots(log.directory, fileSystem: fileSystem).usable().first {
            $0.logID == log.id && $0.position < checkpoint.position
        }
        if let older {
            guard try log.sharesHistory(with: older) else { return [] }
        } else {
            guard try log.compactedThrough() == .zero else { return [] }
        }
        let anew = fresh()
        anew.restore(older?.states ?? [])
        let stored = checkpoint.states.filter {
            $0.position == checkpoint.position && canRestore($0)
        }
        guard !stored.isEmpty, anew.next <= checkpoint.position.next,
            checkpoint.position.next.rawValue - anew.next.rawValue <= Self.comparedMax
        else { return [] }
        try log.runs(from: anew.next, through: checkpoint.position, catalogue: catalogue)
            .forEach { anew.fold($0[...]) }
        let states = Dictionary(
            anew.capture().map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        return stored.filter { state in
            guard let bytes = try? states[state.name]?.encode() else { return false }
            return bytes != state.bytes
        }.map(\.name).sorted()
    }
}
