// Deletes a log for good. A marker is made durable first. From then on the log counts as deleted, and the
// next opening of the folder deletes the remaining files. Spec/protocol/accounts.md.

/// The erasure of the log in a folder. The caller holds the log's lock.
struct LogErasure {
    let directory: String
    let fileSystem: any FileSystem

    /// The marker for a log alone, or for a log whose secrets must be deleted first.
    private func marker(withSecrets: Bool) -> ErasureMarker {
        ErasureMarker(
            in: directory,
            withSecrets ? LogDirectory.erasingWithSecrets : LogDirectory.erasing, fileSystem)
    }

    /// The scope of an unfinished erasure.
    enum Unfinished { case log, logAndSecrets }

    /// The erasure of this folder that has begun and not ended; nil if there is none.
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

    /// Begins the erasure; durable on return.
    ///
    /// - Parameter withSecrets: true if only a store that can delete the log's secrets may finish it.
    /// - Throws: `LogError` with the log unchanged; `indeterminate` if it is not known whether the
    ///   erasure has begun.
    func begin(withSecrets: Bool) throws(LogError) {
        try marker(withSecrets: withSecrets).begin()
    }

    /// Makes an erasure that was found in progress durable before anything is deleted.
    func makeDurable(_ unfinished: Unfinished) throws(LogError) {
        try marker(withSecrets: unfinished == .logAndSecrets).makeDurable()
    }

    /// Deletes everything but the lock, whose incarnation is not that of a log created here later. Durable on
    /// return. The caller has deleted the secrets.
    func finish() throws(LogError) {
        try makeDurable(try unfinished ?? .log)
        let kept = [LogDirectory.lock, LogDirectory.erasing, LogDirectory.erasingWithSecrets]
        try storage { () throws(FileError) in
            for name in try fileSystem.list(directory) where !kept.contains(name) {
                try fileSystem.removeAll(directory + "/" + name)
            }
            try fileSystem.syncDirectory(directory)
        }
        for isWithSecrets in [false, true] { try marker(withSecrets: isWithSecrets).remove() }
    }

    /// As `finish`, and removes the lock file: last, and while it is locked, so that a writer that waits for
    /// it sees that the file has no name any more.
    func finishWithLock() throws(LogError) {
        try finish()
        try storage { () throws(FileError) in
            try fileSystem.remove(directory + "/" + LogDirectory.lock)
            try fileSystem.syncDirectory(directory)
        }
    }
}

extension FileSystem {
    /// Removes a file, a symbolic link itself, or a folder with its content. Durable after
    /// `syncDirectory` of its parent.
    public func removeAll(_ path: String) throws(FileError) {
        do throws(FileError) {
            try remove(path)
        } catch let error where error.code == .wrongKind || error.code == .readOnly {
            // A symbolic link that cannot be removed must not be followed into its target.
            guard isFolder(path), let names = try? list(path) else { throw error }
            for name in names { try removeAll(path + "/" + name) }
            do throws(FileError) { try removeDirectory(path) } catch {
                // Another process has created a file there meanwhile.
                let late = try list(path)
                guard !late.isEmpty else { throw error }
                for name in late { try removeAll(path + "/" + name) }
                try removeDirectory(path)
            }
        }
    }

    /// Removes a folder with its content, if it exists. Durable on return.
    public func erase(_ folder: String) throws(FileError) {
        do throws(FileError) { try removeAll(folder) } catch {
            guard error.code == .notFound else { throw error }
            return
        }
        guard let slash = folder.lastSlash else { return }
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
