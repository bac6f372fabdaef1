// Requests for a log that another process has open. A request is the lock of the file `handover`, so that it ends with
// its process. Spec/format/companions.md, COMP-18.

/// A standing request for a log. It ends when the value is released.
package struct HandoverRequest: Sendable {
    private let file: any File

    /// Requests a log; nil while a request of another process stands.
    ///
    /// - Throws: `LogError`.
    package init?(for directory: String, _ fileSystem: any FileSystem) throws(LogError) {
        let path = directory + "/" + LogDirectory.handover
        let file = try storage { () throws(FileError) -> (any File)? in
            let file = try fileSystem.open(path, .createIfMissing)
            guard try file.lock() else { return nil }
            // The holder watches for a file that is closed after it was open for writing.
            _ = try fileSystem.open(path, .createIfMissing)
            return file
        }
        guard let file else { return nil }
        self.file = file
    }

    /// True if another process, or another store of this one, requests the log.
    package static func stands(in directory: String, _ fileSystem: any FileSystem) -> Bool {
        // For reading: to close it is no signal.
        let path = directory + "/" + LogDirectory.handover
        guard let file = try? fileSystem.open(path, .read), let isFree = try? file.lock()
        else { return false }
        return !isFree
    }

    /// Checks that no writer has the log open.
    ///
    /// - Throws: `LogError` (`locked`) with the holder's process.
    package static func requireFree(
        _ directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) {
        _ = try WriterLock.lockFolder(directory, fileSystem)
    }
}
