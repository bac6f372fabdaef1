// Deletes a log that no store has open: finishes an erasure that a kill interrupted, and resets a device.
// Spec/protocol/accounts.md.

import Synchronization

/// The lock of a log, held without reading the log, which may be damaged. No store can open the log until
/// the lock is released.
package final class ClaimedLog: Sendable {
    private let directory: String
    private let fileSystem: any FileSystem
    private let lock: Mutex<WriterLock?>

    /// Acquires the lock.
    ///
    /// - Throws: `LogError` (`locked`) while another writer has the log open.
    package init(_ directory: String, _ environment: LogEnvironment) throws(LogError) {
        self.directory = directory
        fileSystem = environment.fileSystem
        lock = Mutex(try WriterLock(directory, fileSystem))
    }

    private var erasure: LogErasure {
        LogErasure(directory: directory, fileSystem: fileSystem)
    }

    /// Claims a log whose erasure together with its secrets is unfinished. The caller must delete the
    /// secrets before `erase()`.
    ///
    /// - Returns: nil if the folder has no such log.
    /// - Throws: `LogError` (`locked`) while another process holds the lock.
    package static func beingErasedWithSecrets(
        at directory: String, _ environment: LogEnvironment
    ) throws(LogError) -> ClaimedLog? {
        let erasure = LogErasure(directory: directory, fileSystem: environment.fileSystem)
        guard try erasure.unfinished == .logAndSecrets else { return nil }
        let claimed = try ClaimedLog(directory, environment)
        // Another process may have finished the erasure, and created a new log, before the lock was free.
        guard try erasure.unfinished == .logAndSecrets else { return nil }
        // The marker may be in the page cache only, and the secrets are deleted for good.
        try erasure.makeDurable(.logAndSecrets)
        return claimed
    }

    /// True if `directory` is the folder of a log, and not a symbolic link to one.
    ///
    /// - Throws: `LogError` if the folder cannot be inspected.
    package static func isLog(
        at directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> Bool {
        do throws(FileError) {
            _ = try fileSystem.open(directory, .read)
            return false
        } catch {
            // An entry that is no file and can be listed is a folder.
            switch error.code {
            case .wrongKind:
                return try storage { () throws(FileError) in
                    do throws(FileError) {
                        return try fileSystem.list(directory).contains(LogDirectory.lock)
                    } catch let error where error.code == .wrongKind { return false }
                }
            case .symbolicLink, .notFound: return false
            default: throw LogError(error)
            }
        }
    }

    /// Deletes everything in the folder, including the lock; the folder stays. Durable on return. Releases
    /// the lock, also on failure; a second call does nothing.
    package func erase() throws(LogError) {
        try lock.withLock { (lock) throws(LogError) in
            guard let held = lock else { return }
            // Optimised code released a lock without further uses before the deletion.
            defer { withExtendedLifetime(held) {} }
            lock = nil
            try erasure.finishWithLock()
        }
    }

    /// Releases the lock, so that stores can open the log.
    package func release() { lock.withLock { $0 = nil } }
}
