// Deleting a log for good. A marker is made durable first; from then on the log is gone, and whoever
// opens the folder next deletes what is left of it. Spec/protocol/accounts.md.

/// The erasure of the log in a folder. Whoever erases holds the log's lock.
struct LogErasure {
    let directory: String
    let fileSystem: any FileSystem

    /// The marker of a log alone, and that of one whose secrets have to go before.
    private func marker(withSecrets: Bool) -> ErasureMarker {
        ErasureMarker(
            in: directory,
            withSecrets ? LogDirectory.erasingWithSecrets : LogDirectory.erasing, fileSystem)
    }

    /// What was begun here and has not ended.
    enum Unfinished { case log, logAndSecrets }

    /// Whether an erasure was begun here and has not ended; nil if none was.
    var unfinished: Unfinished? {
        get throws(LogError) {
            do throws(FileError) {
                let names = try fileSystem.list(directory)
                guard LogDirectory.isErased(names) else { return nil }
                return names.contains(LogDirectory.erasingWithSecrets) ? .logAndSecrets : .log
            } catch let error where error.code == .notFound || error.code == .wrongKind {
                return nil
            } catch { throw LogError(error) }
        }
    }

    /// Decides that the log is gone; durable on return.
    ///
    /// - Parameter withSecrets: whether nobody may go on who cannot delete the log's secrets.
    /// - Throws: `LogError` with the log as it was; `indeterminate` if it is not known whether the
    ///   log is gone.
    func begin(withSecrets: Bool) throws(LogError) {
        try marker(withSecrets: withSecrets).begin()
    }

    /// Sees to it that what was found as begun stays so.
    func makeDurable(_ unfinished: Unfinished) throws(LogError) {
        try marker(withSecrets: unfinished == .logAndSecrets).makeDurable()
    }

    /// Deletes everything but the lock, which gets a new incarnation: a log that begins here is
    /// another one. Durable on return. The secrets must be gone.
    func finish(_ lock: inout WriterLock, _ environment: LogEnvironment) throws(LogError) {
        try makeDurable(try unfinished ?? .log)
        let kept = [LogDirectory.lock, LogDirectory.erasing, LogDirectory.erasingWithSecrets]
        try storage { () throws(FileError) in
            for name in try fileSystem.list(directory) where !kept.contains(name) {
                try fileSystem.removeAll(directory + "/" + name)
            }
            try fileSystem.syncDirectory(directory)
        }
        try lock.mint(directory, environment)
        for isWithSecrets in [false, true] { try marker(withSecrets: isWithSecrets).remove() }
    }

    /// As `finish`, and the lock goes, too: last, and while it is held, so that whoever waits for it
    /// finds that it has no name any more.
    func finishWithLock(_ lock: inout WriterLock, _ environment: LogEnvironment) throws(LogError) {
        try finish(&lock, environment)
        try storage { () throws(FileError) in
            try fileSystem.remove(directory + "/" + LogDirectory.lock)
            try fileSystem.syncDirectory(directory)
        }
    }
}

extension FileSystem {
    /// Removes a file, a symbolic link itself, or a folder with all that is in it. Durable when the
    /// folder that held it is synced.
    public func removeAll(_ path: String) throws(FileError) {
        do throws(FileError) {
            try remove(path)
        } catch let error where error.code == .wrongKind || error.code == .readOnly {
            // A symbolic link that may not be removed is not followed into its folder.
            guard isFolder(path), let names = try? list(path) else { throw error }
            for name in names { try removeAll(path + "/" + name) }
            do throws(FileError) { try removeDirectory(path) } catch {
                // Somebody was still writing a file there.
                let late = try list(path)
                guard !late.isEmpty else { throw error }
                for name in late { try removeAll(path + "/" + name) }
                try removeDirectory(path)
            }
        }
    }

    /// Removes a folder with all that is in it, durably, if it is there.
    public func erase(_ folder: String) throws(FileError) {
        do throws(FileError) { try removeAll(folder) } catch {
            guard error.code == .notFound else { throw error }
            return
        }
        guard let slash = folder.lastIndex(of: "/") else { return }
        try syncDirectory(slash == folder.startIndex ? "/" : String(folder[..<slash]))
    }

    /// True for a folder; false for a symbolic link to one.
    private func isFolder(_ path: String) -> Bool {
        do throws(FileError) {
            _ = try open(path, .read)
            return false
        } catch { return error.code == .wrongKind }
    }
}
