// What proves that the end of a log is missing: a checkpoint names a position only once it is durable.
// Opening, readers and verification ask here; repair has a plan of its own (RepairPlan). Spec/format/checkpoint.md, CHK-5.

import LogFormat

/// The positions that stored checkpoints name, as they were when this was made.
///
/// A reader makes this before it reads the log: what a checkpoint names then can be read from that
/// moment on, whatever a writer does meanwhile. So a log that ends before is damaged.
struct EndClaims {
    let directory: String
    /// The slots' headers, the newest first. The files are held open: a slot may get another one.
    let slots: [(file: any File, header: Checkpoint.Header)]

    /// The whole checkpoints, the newest first, each read when it is asked for.
    func heads() -> some Sequence<CheckpointSlots.Head> {
        slots.lazy.compactMap { file, header in CheckpointSlots.head(of: file, header) }
    }

    /// The last position that a whole checkpoint of a log names, if it is not before a position.
    ///
    /// - Parameter logID: the log's id; nil where no segment says it: then each checkpoint counts.
    func position(notBefore next: Position, of logID: UInt128?) -> Position? {
        for (file, header) in slots
        where header.position >= next && header.logID == logID ?? header.logID {
            if CheckpointSlots.head(of: file, header) != nil { return header.position }
        }
        return nil
    }

    /// Checks that the log reaches as far as its checkpoints say.
    ///
    /// - Parameters:
    ///   - next: the position after the last one.
    ///   - place: where the log ends: the last segment, and the offset where that is known.
    /// - Throws: `corrupt` where the end is missing.
    func check(
        next: Position, of logID: UInt128?, place: (path: String, offset: Int?)? = nil
    ) throws(LogError) {
        guard let named = position(notBefore: next, of: logID) else { return }
        throw LogError(
            .corrupt, path: place?.path ?? directory, offset: place?.offset,
            positions: next...named,
            "the log ends at position \(next.rawValue - 1), but a checkpoint names \(named), which "
                + "was synced: the end of the log is missing. Nothing was changed")
    }
}
