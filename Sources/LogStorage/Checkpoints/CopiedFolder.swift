// Detects that a log's folder was copied file by file, or restored from such a copy. The writer may have been at
// work meanwhile, so that a checkpoint was copied after the segments. Spec/format/checkpoint.md, CHK-8.

import LogFormat

/// The copy of a log's folder, as `lock` shows it.
enum CopiedFolder {
    /// True if `lock` names the fingerprint of another file: no writer has opened this folder yet, and the one that
    /// made the file has opened another folder. False if there is no readable `lock`.
    static func isCopy(_ directory: String, _ fileSystem: any FileSystem) -> Bool {
        marker(directory, fileSystem)?.isCopy ?? false
    }

    /// The content of `lock`, whether it names the fingerprint of another file, and whether another folder has the
    /// file as well, by a hard link; nil if there is no readable `lock`.
    static func marker(
        _ directory: String, _ fileSystem: any FileSystem
    ) -> (content: LockMarker, isCopy: Bool, isShared: Bool)? {
        guard let file = try? fileSystem.open(directory + "/" + LogDirectory.lock, .read),
            let fingerprint = try? file.fingerprint(),
            let bytes = try? file.read(at: 0, count: LockMarker.bytesMax),
            let marker = LockMarker(bytes)
        else { return nil }
        return (marker, marker.file != fingerprint, ((try? file.linkCount()) ?? 1) > 1)
    }

    /// Moves the checkpoints that name a position after the end of the copy to the quarantine. Durable on
    /// return. Called directly before the writer stores a marker of its own in `lock`: after that, such a
    /// checkpoint would prove that this log has lost its end.
    ///
    /// - Parameter isOnly: true if no other checkpoint is usable. Then the states that no line holds are stored
    ///   first, since compaction removes nothing that they name.
    /// - Returns: the checkpoint with these states.
    static func setAside(
        _ claims: EndClaims, next: Position, of logID: UInt128, isOnly: Bool,
        _ fileSystem: any FileSystem
    ) throws(LogError) -> Checkpoint? {
        let ahead = claims.slots.filter {
            $0.header.logID == logID && $0.header.position >= next
        }
        // Only `lock` may name the missing positions.
        let kept = isOnly && !ahead.isEmpty ? lasting(claims, of: logID) : nil
        // The newest last: until the kept states are stored in a free slot, it is the only one that has them.
        for (number, claim) in ahead.reversed().enumerated() {
            if number == ahead.count - 1, let checkpoint = kept {
                try CheckpointSlots(claims.directory, fileSystem: fileSystem).write(checkpoint)
            }
            let name = LogDirectory.checkpoints + "/" + claim.slot
            let path = claims.directory + "/" + name
            // Moved already if a full disk has interrupted the first attempt.
            let isInPlace = try storage { () throws(FileError) in
                try fileSystem.identity(path) == claim.file.identity()
            }
            guard isInPlace else { continue }
            _ = try Quarantine(claims.directory, fileSystem).move(
                path, name.replacing("/", with: "-"), "ahead")
            try storage { () throws(FileError) in
                try fileSystem.syncDirectory(
                    claims.directory + "/" + LogDirectory.checkpoints)
            }
        }
        return kept
    }

    /// A checkpoint of no position, with those states of the newest checkpoint of a log that do not follow from
    /// lines; nil if there are none.
    static func lasting(_ claims: EndClaims, of logID: UInt128) -> Checkpoint? {
        let newest = claims.heads().map(\.checkpoint).first { $0.logID == logID }
        let states = (newest?.states ?? []).filter { $0.name == StoredState.viewNeedsName }.map {
            StoredState(name: $0.name, version: $0.version, position: .zero, bytes: $0.bytes)
        }
        guard let newest, !states.isEmpty else { return nil }
        return Checkpoint(
            logID: logID, position: .zero, lastID: 0, createdAt: newest.createdAt, sealed: [],
            live: nil, states: states)
    }
}

extension StoredState {
    /// The name of the state that says which views need events. It does not follow from lines (CMP-30).
    package static let viewNeedsName = "daybook.view-needs"
}
