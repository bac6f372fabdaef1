// Ensures one writer at a time, and one incarnation for each state of a log that is written to. Two locks: one
// of the file `lock`, and one of the folder itself, since files are deleted and replaced. The lock file names
// the incarnation, the files that it was made for, and the position at which the log was closed. A copied,
// restored or emptied folder has other files or ends earlier, so the log gets a new incarnation there.
// Spec/format/line.md, LINE-4 and LINE-8.

import LogFormat

/// The acquired locks of a log, and the incarnation that its lock file names.
struct WriterLock {
    /// The end of a log, to which an incarnation is bound.
    struct LogEnd {
        var logID: UInt128
        /// The first position of the last segment.
        var base: Position
        /// The file of the last segment; nil if it is sealed, since compaction may replace it then.
        var file: (any File)?
        /// The position after the last line.
        var next: Position
        /// True if the last segment ends with a clean-shutdown marker.
        var isClosed: Bool

        /// True if a writer that stored `marker` has left the log as it is now, or was killed later. A log that
        /// ends before the marker's position is an earlier copy; so is one that was closed at another moment.
        ///
        /// - Parameter current: the marker that this end would get.
        func continues(_ marker: LockMarker, as current: LockMarker) -> Bool {
            guard marker.file == current.file, marker.logID == logID, marker.base == base,
                file == nil || marker.segment == current.segment
            else { return false }
            return isClosed
                ? marker.next == next && !marker.isInUse : marker.next <= next
        }
    }

    private let folder: any DirectoryLock
    private let file: any File
    private let path: String
    private let directory: String
    private let fileSystem: any FileSystem
    private let identity: UInt64
    private var end: LogEnd?
    /// The content of the lock file; nil if it may be another one.
    private var stored: LockMarker?
    /// The writer id of new lines; 0 until `bind(to:_:)`.
    private(set) var incarnation: UInt128 = 0

    /// Acquires both locks, creating the lock file if it is missing.
    ///
    /// - Parameter folder: the folder's lock if the caller holds it.
    /// - Throws: `LogError` (`locked`) while another writer has the log open.
    init(
        _ directory: String, _ fileSystem: any FileSystem,
        holding folder: (any DirectoryLock)? = nil
    ) throws(LogError) {
        self.directory = directory
        self.fileSystem = fileSystem
        path = directory + "/" + LogDirectory.lock
        // The folder first: a writer that is refused creates no lock file.
        if let folder {
            self.folder = folder
        } else {
            self.folder = try Self.lockFolder(directory, fileSystem)
        }
        let file = try Self.acquire(path, directory, fileSystem)
        identity = try storage { () throws(FileError) in try file.identity() }
        self.file = file
    }

    /// Acquires the folder's lock, which outlives the deletion and the replacement of every file in it.
    static func lockFolder(
        _ directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> any DirectoryLock {
        guard
            let lock = try storage({ () throws(FileError) in
                try fileSystem.lockDirectory(directory)
            })
        else { throw isLocked(directory, fileSystem) }
        return lock
    }

    /// The error for a log that another writer has open. It names the writer's process, if that is known.
    static func isLocked(_ directory: String, _ fileSystem: any FileSystem) -> LogError {
        let holder =
            fileSystem.lockHolder(of: directory)
            ?? fileSystem.lockHolder(of: directory + "/" + LogDirectory.lock)
        if let holder, holder.isThisProcess {
            return LogError(
                .locked, path: directory,
                "\(holder.text) has the log open already; use that store, or wait until its close() has "
                    + "returned: a store without references keeps the log until its work has ended")
        }
        return LogError(
            .locked, path: directory,
            "another writer has the log open"
                + (holder.map { ": \($0.text)" } ?? "")
                + "; close it there, or wait until it has finished; deleting the file lock does not "
                + "release it")
    }

    /// Locks the lock file, creating it if it is missing.
    private static func acquire(
        _ path: String, _ directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> any File {
        let locked = try storage { () throws(FileError) -> (any File)? in
            let file = try fileSystem.open(path, .createIfMissing)
            guard try file.lock() else { return nil }
            // An erasure that ended meanwhile has removed the file's name. The lock of a file without a
            // name excludes no other writer.
            return try fileSystem.identity(path) == file.identity() ? file : nil
        }
        guard let locked else { throw isLocked(directory, fileSystem) }
        return locked
    }

    // MARK: While the log is open

    /// Checks that `lock` still leads to the locked file.
    ///
    /// - Throws: `noSuchLog` if the file or the folder was removed, renamed or replaced.
    func requireInPlace() throws(LogError) {
        let isInPlace = try storage { () throws(FileError) in
            try fileSystem.identity(path) == identity
        }
        guard isInPlace else {
            throw LogError(
                .noSuchLog, path: directory,
                "the file lock or the log's folder was removed, renamed or replaced while the log was "
                    + "open, so another writer may have it open")
        }
    }

    /// Checks that the locked file still has a name. Cheaper than `requireInPlace()`.
    ///
    /// - Throws: `noSuchLog` if the file was removed or replaced.
    func requireLinked() throws(LogError) {
        do throws(FileError) { try file.requireLinked(path) } catch {
            var failure = LogError(error)
            // `diskFull` promises that nothing was written, but the commit was.
            if failure.code == .diskFull { failure.code = .io }
            throw failure
        }
    }

    // MARK: Incarnation

    /// Reads the incarnation, or stores a new, random one if the lock file does not name this end of the log, or
    /// names a later one. Durable on return.
    mutating func bind(to end: LogEnd, _ environment: LogEnvironment) throws(LogError) {
        self.end = end
        let (known, current) = try storage { () throws(FileError) in
            let bytes = try file.read(at: 0, count: LockMarker.bytesMax)
            return (LockMarker(bytes), try marker(of: end, isInUse: !end.isClosed))
        }
        guard let known, end.continues(known, as: current) else {
            return try ReserveFile(directory, fileSystem).drawing { () throws(LogError) in
                try mint(environment, next: end.next)
            }
        }
        incarnation = known.incarnation
        stored = known
        // After a kill the log ends later than the marker says. If the write fails, the marker stays true.
        if known.next < end.next { try? record(next: end.next, isInUse: known.isInUse) }
    }

    /// Binds the incarnation to a new segment, before its first commit. If that fails, `requireInUse(next:)`
    /// tries again.
    mutating func follow(to end: LogEnd) {
        self.end = end
        stored = nil
        try? record(next: end.next, isInUse: true)
    }

    /// Makes the lock file say, before a commit, which segment the writer appends to, and that it does. If the
    /// log's end were lost or replaced by an earlier one, the next writer would otherwise give its positions
    /// again, under the same incarnation. Durable on return; one sync for the first commit of a writer.
    mutating func requireInUse(next: Position) throws(LogError) {
        if let stored, stored.isInUse { return }
        try storage { () throws(FileError) in try record(next: next, isInUse: true) }
    }

    /// Records the position at which a writer closes the log; durable on return. Before the clean-shutdown
    /// marker, so that a log with one never ends elsewhere than the lock file says.
    mutating func recordClose(next: Position) throws(LogError) {
        try storage { () throws(FileError) in try record(next: next, isInUse: false) }
    }

    /// Releases the file of the last segment, which is sealed: compaction may replace it.
    mutating func releaseSegment() { end?.file = nil }

    /// Stores a new, random incarnation; durable on return.
    mutating func mint(_ environment: LogEnvironment, next: Position) throws(LogError) {
        guard let end else { return }
        let (before, isInUse) = (incarnation, stored?.isInUse ?? !end.isClosed)
        incarnation = environment.randomUUID()
        do throws(FileError) {
            // In place, since a full disk has no other block. Otherwise a torn write could join the base of a new
            // log to the *next* of an old one: CHK-9.
            if try file.size() > 0 {
                try file.write([UInt8](repeating: 0, count: LockMarker.byteCount), at: 0)
                try file.sync()
            }
            try record(next: next, isInUse: isInUse)
            try fileSystem.syncDirectory(directory)
        } catch {
            // The next commit writes the incarnation of its lines again.
            (incarnation, stored) = (before, nil)
            throw LogError(error)
        }
    }

    /// Writes the marker unless the lock file has it already.
    private mutating func record(next: Position, isInUse: Bool) throws(FileError) {
        guard var end else { return }
        end.next = next
        let marker = try marker(of: end, isInUse: isInUse)
        guard marker != stored else { return }
        stored = nil
        let bytes = marker.encoded()
        try file.write(bytes, at: 0)
        try file.truncate(to: bytes.count)
        try file.sync()
        stored = marker
    }

    private func marker(of end: LogEnd, isInUse: Bool) throws(FileError) -> LockMarker {
        LockMarker(
            incarnation: incarnation, file: try file.fingerprint(), logID: end.logID,
            base: end.base, segment: try end.file?.fingerprint() ?? 0, next: end.next,
            isInUse: isInUse)
    }
}
