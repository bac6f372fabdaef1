// Copies a log's folder, so that the copy can be repaired and the log stays unchanged. Spec/format/repair.md.

/// A copy of a log's folder with its content, except the quarantine.
package struct LogCopy {
    private let environment: LogEnvironment
    private let files: any FileSystem
    private let directory: String
    private let target: String

    /// - Parameters:
    ///   - directory: the log's folder.
    ///   - target: the folder of the copy, which must not exist; its parent must.
    ///   - files: the file system to read the log with; nil for the environment's.
    package init(
        of directory: String, to target: String, environment: LogEnvironment,
        reading files: (any FileSystem)? = nil
    ) {
        self.environment = environment
        self.files = files ?? environment.fileSystem
        self.directory = directory
        self.target = target
    }

    /// Copies the folder without links and devices. No writer may have the log open. Durable on return;
    /// after an error there is no copy.
    ///
    /// - Throws: `LogError`: `noSuchLog`, `notALog`, `locked`, `diskFull`, `readOnly`; `io` for a target that
    ///   exists or is in the log's folder, and for a file that cannot be read.
    /// - Complexity: O(bytes of the folder); memory for 1 MiB.
    package func run() throws(LogError) {
        try LogDirectory.requireOutside(directory, target)
        _ = try LogDirectory.segments(of: directory, environment.fileSystem)
        let lock = try WriterLock(directory, environment.fileSystem)
        defer { withExtendedLifetime(lock) {} }
        // Only a folder that was created here is removed after an error.
        do throws(FileError) { try environment.fileSystem.createDirectory(target) } catch {
            switch error.code {
            case .exists: throw LogDirectory.isTaken(target)
            case .notFound: throw LogDirectory.lacksParent(target)
            default: throw LogError(error)
            }
        }
        do throws(FileError) {
            try copyContent(of: directory, to: target)
            try environment.fileSystem.syncDirectory(LogDirectory.parent(of: target))
        } catch {
            try? environment.fileSystem.removeAll(target)
            throw LogError(error)
        }
    }

    private func copyContent(of folder: String, to copy: String) throws(FileError) {
        let isOriginal = folder == directory && !CopiedFolder.isCopy(directory, files)
        for name in try files.list(folder) where name != LogDirectory.quarantine {
            let (source, destination) = (folder + "/" + name, copy + "/" + name)
            if isOriginal && name == LogDirectory.lock {
                try copyLock(to: destination)
                continue
            }
            do throws(FileError) {
                try copyFile(source, destination)
            } catch {
                switch error.code {
                case .wrongKind where (try? environment.fileSystem.list(source)) != nil:
                    try environment.fileSystem.createDirectory(destination)
                    try copyContent(of: source, to: destination)
                case .wrongKind, .symbolicLink: continue
                default: throw error
                }
            }
        }
        try environment.fileSystem.syncDirectory(copy)
    }

    /// Writes the copy's own lock file, with a new incarnation. With the bytes of the original's, the salvaged folder
    /// would be taken for a copy made by hand, in which a position after the end of the log is no sign of a lost end.
    private func copyLock(to path: String) throws(FileError) {
        // The lock that two folders share names no end (CHK-9).
        guard let original = CopiedFolder.marker(directory, files), !original.isShared else {
            return
        }
        var marker = original.content
        let file = try environment.fileSystem.open(path, .createNew)
        marker.incarnation = environment.randomUUID()
        marker.file = try file.fingerprint()
        marker.segment = 0
        try file.write(marker.encoded(), at: 0)
        try file.sync()
    }

    private func copyFile(_ source: String, _ destination: String) throws(FileError) {
        let file = try files.open(source, .read)
        try environment.fileSystem.copy(file, count: try file.size(), to: destination).sync()
    }
}
