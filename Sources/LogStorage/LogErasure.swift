// Deleting a log for good. A marker is made durable first; from then on the log is gone, and whoever
// opens the folder next deletes what is left of it. Spec/accounts.md.

/// The erasure of the log in a folder. Whoever erases holds the log's lock.
struct LogErasure {
    let directory: String
    let fileSystem: any FileSystem

    private var marker: String { directory + "/" + LogDirectory.erasing }

    /// Whether an erasure was begun here and has not ended.
    var isUnfinished: Bool {
        get throws(LogError) {
            do throws(FileError) {
                return try fileSystem.list(directory).contains(LogDirectory.erasing)
            } catch let error where error.code == .notFound || error.code == .wrongKind {
                return false
            } catch { throw LogError(error) }
        }
    }

    /// Decides that the log is gone; durable on return.
    ///
    /// - Throws: `LogError` with the log as it was; `indeterminate` if it is not known whether the
    ///   log is gone.
    func begin() throws(LogError) {
        do throws(LogError) { try mark() } catch {
            try takeBack(error)
            throw error
        }
    }

    private func mark() throws(LogError) {
        try storage { () throws(FileError) in
            let file = try fileSystem.open(marker, .createIfMissing)
            try file.sync()
            try fileSystem.syncDirectory(directory)
        }
    }

    private func takeBack(_ cause: LogError) throws(LogError) {
        do throws(FileError) {
            try fileSystem.remove(marker)
            try fileSystem.syncDirectory(directory)
        } catch let error where error.code == .notFound {
            return
        } catch {
            throw LogError(
                .indeterminate, path: directory,
                "\(cause.detail). Whether the log is gone is not known; open it to find out")
        }
    }

    /// Deletes everything but the lock, which gets a new incarnation: a log that begins here is
    /// another one. Durable on return.
    func finish(_ lock: inout WriterLock, _ environment: LogEnvironment) throws(LogError) {
        // The marker that an opening finds may be in the page cache only.
        try mark()
        try storage { () throws(FileError) in
            for name in try fileSystem.list(directory)
            where name != LogDirectory.lock && name != LogDirectory.erasing {
                try remove(directory + "/" + name)
            }
            try fileSystem.syncDirectory(directory)
        }
        try lock.mint(directory, environment)
        try storage { () throws(FileError) in
            try fileSystem.remove(marker)
            try fileSystem.syncDirectory(directory)
        }
    }

    /// Removes a file, a symbolic link itself, or a folder with all that is in it.
    private func remove(_ path: String) throws(FileError) {
        do throws(FileError) {
            try fileSystem.remove(path)
        } catch let error where error.code == .wrongKind || error.code == .readOnly {
            guard let names = try? fileSystem.list(path) else { throw error }
            for name in names { try remove(path + "/" + name) }
            do throws(FileError) { try fileSystem.removeDirectory(path) } catch {
                // Somebody was still writing a file there.
                let late = try fileSystem.list(path)
                guard !late.isEmpty else { throw error }
                for name in late { try remove(path + "/" + name) }
                try fileSystem.removeDirectory(path)
            }
        }
    }
}
