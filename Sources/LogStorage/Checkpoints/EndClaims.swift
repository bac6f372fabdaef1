// Detects that the end of a log is missing: a checkpoint names a position only once it is durable.
// For opening, readers and verification; repair compares the positions in RepairPlan. In a folder that was
// copied file by file, such a checkpoint proves only that the copy lacks lines.
// Spec/format/checkpoint.md, CHK-5 and CHK-8.

import LogFormat

/// The positions that the stored checkpoints named at the moment of creation.
///
/// A reader creates this value before it reads the log. Every position that a checkpoint names then was
/// synced, so a log that ends before it is damaged, whatever a writer appends meanwhile.
struct EndClaims {
    let directory: String
    /// True if the folder is the copy of a log's folder, as it was before the slots were read.
    let isCopy: Bool
    /// The slots' headers, newest first. The files stay open, since a writer may replace a slot's file.
    let slots: [(slot: String, file: any File, header: Checkpoint.Header)]

    /// The valid checkpoints, newest first, each read on demand.
    func heads() -> some Sequence<CheckpointSlots.Head> {
        slots.lazy.compactMap { CheckpointSlots.head(of: $0.file, $0.header) }
    }

    /// The last position that a valid checkpoint of the log names, or nil if it is before `next`.
    ///
    /// - Parameter logID: the log's id; nil if no segment has it, so that every checkpoint counts.
    func position(notBefore next: Position, of logID: UInt128?) -> Position? {
        for (_, file, header) in slots
        where header.position >= next && header.logID == logID ?? header.logID {
            if CheckpointSlots.head(of: file, header) != nil { return header.position }
        }
        return nil
    }

    /// The positions after the end of a copied folder that a checkpoint of its log names; nil if there are
    /// none, or the folder is no copy.
    ///
    /// - Parameter next: the position after the last line.
    func missing(from next: Position, of logID: UInt128?) -> ClosedRange<Position>? {
        guard isCopy, let logID, let named = position(notBefore: next, of: logID) else {
            return nil
        }
        return next...named
    }

    /// Checks that the log contains every position that its checkpoints name, unless the folder is a copy of
    /// which at least one segment says the log's id.
    ///
    /// - Parameters:
    ///   - next: the position after the last line.
    ///   - location: the end of the log: the path of the last segment, and the offset if it is known.
    /// - Throws: `corrupt` if the end of the log is missing.
    func check(
        next: Position, of logID: UInt128?, location: (path: String, offset: Int?)? = nil
    ) throws(LogError) {
        guard !isCopy || logID == nil, let named = position(notBefore: next, of: logID) else {
            return
        }
        throw LogError(
            .corrupt, path: location?.path ?? directory, offset: location?.offset,
            positions: next...named,
            "the log ends at position \(next.rawValue - 1), but a checkpoint names \(named), which "
                + "was synced: the end of the log is missing. Nothing was changed")
    }
}
