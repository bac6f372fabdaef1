// Detects that the end of a log is missing: a checkpoint names a position only once it is durable, and so does
// the file `lock`. For opening, readers, verification and repair. In a folder that was copied file by file, such a
// position proves only that the copy lacks lines. Spec/format/checkpoint.md, CHK-5, CHK-8 and CHK-9.

import LogFormat

/// The positions that the stored checkpoints and `lock` named at the moment of creation.
///
/// A reader creates this value before it reads the log. Every position that they name then was synced, so a log
/// that ends before it is damaged, whatever a writer appends meanwhile.
struct EndClaims {
    let directory: String
    /// The content of `lock`; nil if it cannot be read, or another folder has the same file.
    let lock: LockMarker?
    /// True if the folder is the copy of a log's folder, as it was before the slots were read.
    let isCopy: Bool
    /// The slots' headers, newest first. The files stay open, since a writer may replace a slot's file.
    let slots: [(slot: String, file: any File, header: Checkpoint.Header)]

    /// The valid checkpoints, newest first, each read on demand.
    func heads() -> some Sequence<CheckpointSlots.Head> {
        slots.lazy.compactMap { CheckpointSlots.head(of: $0.file, $0.header) }
    }

    /// The last position that a valid checkpoint of the log or its `lock` names, and the file that names it; nil if
    /// it is before `next`.
    ///
    /// - Parameter logID: the log's id; nil if no segment has it, so that every checkpoint counts, and `lock` does
    ///   not.
    func end(
        notBefore next: Position, of logID: UInt128?
    ) -> (position: Position, source: String)? {
        let stored = slots.first { _, file, header in
            header.position >= next && header.logID == logID ?? header.logID
                && CheckpointSlots.head(of: file, header) != nil
        }
        let marked = markedEnd(notBefore: next, of: logID)
        if let stored, stored.header.position >= marked ?? .zero {
            return (stored.header.position, "a checkpoint")
        }
        return marked.map { ($0, LogDirectory.lock) }
    }

    /// The position before *next* of `lock`; nil if it is before `next`. In an original it counts only if `lock`
    /// names a last segment that begins where the log ends. Otherwise the segments were replaced by earlier ones,
    /// which is allowed.
    private func markedEnd(notBefore next: Position, of logID: UInt128?) -> Position? {
        guard let lock, lock.logID == logID, lock.next > next, isCopy || lock.base == next,
            // Otherwise no writer has written it.
            0...FormatLimit.segmentEventsMax ~= lock.base.distance(to: lock.next)
        else { return nil }
        return Position(lock.next.rawValue - 1)
    }

    /// The positions after the end of a copied folder that a checkpoint of its log or its `lock` names; nil if there
    /// are none, or the folder is no copy.
    ///
    /// - Parameter next: the position after the last line.
    func missing(from next: Position, of logID: UInt128?) -> ClosedRange<Position>? {
        guard isCopy, let logID, let end = end(notBefore: next, of: logID) else { return nil }
        return next...end.position
    }

    /// Checks that the log contains every position that its checkpoints and `lock` name, unless the folder is a copy of
    /// which at least one segment says the log's id.
    ///
    /// - Parameters:
    ///   - next: the position after the last line.
    ///   - location: the end of the log: the path of the last segment, and the offset if it is known.
    /// - Throws: `corrupt` if the end of the log is missing.
    func check(
        next: Position, of logID: UInt128?, location: (path: String, offset: Int?)? = nil
    ) throws(LogError) {
        guard !isCopy || logID == nil, let end = end(notBefore: next, of: logID) else { return }
        throw LogError(
            .corrupt, path: location?.path ?? directory, offset: location?.offset,
            positions: next...end.position,
            "the log ends at position \(next.rawValue - 1), but \(end.source) names \(end.position), which "
                + "was synced: the end of the log is missing"
                + (end.source == LogDirectory.lock
                    ? ". If an earlier copy of the segments was restored on purpose, delete lock"
                    : "")
                + ". Nothing was changed")
    }
}
