// Detects that a log's folder was copied file by file, or restored from such a copy. The writer may have been at
// work meanwhile, so that a checkpoint was copied after the segments. Spec/format/checkpoint.md, CHK-8.

import LogFormat

/// The copy of a log's folder, as `lock` shows it.
enum CopiedFolder {
    /// True if `lock` names the fingerprint of another file: no writer has opened this folder yet, and the one that
    /// made the file has opened another folder. False if there is no readable `lock`.
    static func isCopy(_ directory: String, _ fileSystem: any FileSystem) -> Bool {
        guard let file = try? fileSystem.open(directory + "/" + LogDirectory.lock, .read),
            let fingerprint = try? file.fingerprint(),
            let bytes = try? file.read(at: 0, count: LockMarker.bytesMax),
            let marker = LockMarker(bytes)
        else { return false }
        return named != fingerprint
    }

    /// Moves the checkpoints that name a position after the end of the copy to the quarantine. Durable on
    /// return. Called directly before the writer stores a marker of its own in `lock`: after that, such a
    /// checkpoint would prove that this log has lost its end.
    static func setAside(
        _ claims: EndClaims, next: Position, of logID: UInt128, _ fileSystem: any FileSystem
    ) throws(LogError) {
        for claim in claims.slots where claim.header.position >= next {
            guard claim.header.logID == logID else { continue }
            let name = LogDirectory.checkpoints + "/" + claim.slot
            _ = try Quarantine(claims.directory, fileSystem).move(
                claims.directory + "/" + name, name.replacing("/", with: "-"), "ahead")
            try storage { () throws(FileError) in
                try fileSystem.syncDirectory(
                    claims.directory + "/" + LogDirectory.checkpoints)
            }
        }
    }
}
