// A log that is to be deleted and that no store has open: to end an erasure that a kill has interrupted,
// and to reset a device. Spec/protocol/accounts.md.

import Synchronization

/// The lock of a log in whatever state it is: nobody opens it until it is released.
package final class ClaimedLog: Sendable {
    private let directory: String
    private let environment: LogEnvironment
    private let lock: Mutex<WriterLock?>

    /// Takes the lock.
    ///
    /// - Throws: `LogError` (`locked`) while somebody has the log open.
    package init(_ directory: String, _ environment: LogEnvironment) throws(LogError) {
        self.directory = directory
        self.environment = environment
        lock = Mutex(try WriterLock(directory, environment))
    }

    private var erasure: LogErasure {
        LogErasure(directory: directory, fileSystem: environment.fileSystem)
    }

    /// A log that was being erased together with its secrets; they have to go before it.
    ///
    /// - Returns: nil if there is none in the folder.
    /// - Throws: `LogError` (`locked`) while somebody else is at it.
    package static func beingErasedWithSecrets(
        at directory: String, _ environment: LogEnvironment
    ) throws(LogError) -> ClaimedLog? {
        let erasure = LogErasure(directory: directory, fileSystem: environment.fileSystem)
        guard try erasure.unfinished == .logAndSecrets else { return nil }
        let claimed = try ClaimedLog(directory, environment)
        // Somebody may have ended it, and begun anew, before the lock was free.
        guard try erasure.unfinished == .logAndSecrets else { return nil }
        // The marker may be in the page cache only, and what goes now does not come back.
        try erasure.makeDurable(.logAndSecrets)
        return claimed
    }

    /// Whether a folder is that of a log. A symbolic link is not.
    ///
    /// - Throws: `LogError` where that cannot be found out.
    package static func isLog(
        at directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> Bool {
        do throws(FileError) {
            _ = try fileSystem.open(directory, .read)
            return false
        } catch {
            // What is of the wrong kind for a file and can be listed is a folder.
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

    /// Deletes everything in the folder, the lock included; the folder stays. Durable on return.
    /// Whether or not it fails, it is released; then it does nothing any more.
    package func erase() throws(LogError) {
        try lock.withLock { (lock) throws(LogError) in
            guard var held = lock else { return }
            defer { lock = nil }
            try erasure.finishWithLock(&held, environment)
        }
    }

    /// Lets others open the log.
    package func release() { lock.withLock { $0 = nil } }
}
