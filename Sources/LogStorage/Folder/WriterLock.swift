// Ensures one writer at a time, and one incarnation for each state of a log that is written to. Two locks: one
// of the file `lock`, and one of the folder itself, since files are deleted and replaced. The lock file names
// the incarnation and the files that it was made for. A copied, restored or emptied folder has other files,
// so the log gets a new incarnation there. Spec/format/line.md, LINE-4 and LINE-8.

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
    }

    private let folder: any DirectoryLock
    private let file: any File
    private let path: String
    private let directory: String
    private let fileSystem: any FileSystem
    private let identity: UInt64
    private var end: LogEnd?
    /// True if the lock file names the end of the log.
    private var isBound = false
    /// The writer id of new lines; 0 until `bind(to:_:)`.
    private(set) var incarnation: UInt128 = 0

    /// More than the 137 bytes of a marker, so that a longer content is recognised as another one.
    static let markerBytesMax = 256
    private static let markerBytes = 137
    /// The last field of a marker: 20 digits and the newline.
    private static let fileBytes = 21

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
        else { throw isLocked(directory) }
        return lock
    }

    static func isLocked(_ directory: String) -> LogError {
        LogError(
            .locked, path: directory,
            "another writer has the log open; close it there, or wait until it has finished; deleting "
                + "the file lock does not release it")
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
        guard let locked else { throw isLocked(directory) }
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

    /// Reads the incarnation, or stores a new, random one if the lock file does not name exactly this end of
    /// the log. Durable on return.
    mutating func bind(to end: LogEnd, _ environment: LogEnvironment) throws(LogError) {
        self.end = end
        let known = try storage { () throws(FileError) in
            try storedIncarnation(in: file.read(at: 0, count: Self.markerBytesMax), end)
        }
        guard let known else {
            return try ReserveFile(directory, fileSystem).drawing { () throws(LogError) in
                try mint(environment)
            }
        }
        incarnation = known
        isBound = true
    }

    /// Binds the incarnation to a new segment, before its first commit. If that fails, `requireBound()` tries
    /// again.
    mutating func follow(to end: LogEnd) {
        self.end = end
        isBound = (try? store(marker(incarnation, end))) != nil
    }

    /// Checks, before a commit, that the lock file names the segment. If the segment were lost with a lock file
    /// that names an earlier one, the next writer would give its positions again, under the same incarnation.
    mutating func requireBound() throws(LogError) {
        guard !isBound, let end else { return }
        try storage { () throws(FileError) in try store(marker(incarnation, end)) }
        isBound = true
    }

    /// Releases the file of the last segment, which is sealed: compaction may replace it.
    mutating func releaseSegment() { end?.file = nil }

    /// Stores a new, random incarnation; durable on return.
    mutating func mint(_ environment: LogEnvironment) throws(LogError) {
        guard let end else { return }
        let minted = environment.randomUUID()
        try storage { () throws(FileError) in
            try store(marker(minted, end))
            try fileSystem.syncDirectory(directory)
        }
        incarnation = minted
        isBound = true
    }

    private func store(_ marker: [UInt8]) throws(FileError) {
        try file.write(marker, at: 0)
        try file.truncate(to: marker.count)
        try file.sync()
    }

    /// `<incarnation> <fingerprint> <log id> <base> <fingerprint of the segment>` and a newline.
    private func marker(_ incarnation: UInt128, _ end: LogEnd) throws(FileError) -> [UInt8] {
        let space = UInt8(ascii: " ")
        var bytes: [UInt8] = []
        LineText.append(uuid: incarnation, to: &bytes)
        bytes.append(space)
        LineText.append(number: try file.fingerprint(), to: &bytes)
        bytes.append(space)
        LineText.append(uuid: end.logID, to: &bytes)
        bytes.append(space)
        LineText.append(number: end.base.rawValue, to: &bytes)
        bytes.append(space)
        LineText.append(number: try end.file?.fingerprint() ?? 0, to: &bytes)
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

    /// The incarnation in a marker that names this lock file and this end of the log; nil if it names others.
    private func storedIncarnation(
        in marker: [UInt8], _ end: LogEnd
    ) throws(FileError) -> UInt128? {
        guard
            let uuid = LineText.uuid(marker.span.bytes, at: 0, acceptUppercase: false)
        else { return nil }
        let expected = try self.marker(uuid, end)
        let compared = end.file == nil ? expected.count - Self.fileBytes : expected.count
        guard marker.count == expected.count, marker.prefix(compared) == expected.prefix(compared)
        else { return nil }
        return uuid
    }

    /// The fingerprint of the lock file that a marker was made for; nil if the bytes are no marker.
    static func fingerprint(in marker: [UInt8]) -> UInt64? {
        let (space, newline) = (UInt8(ascii: " "), UInt8(ascii: "\n"))
        let bytes = marker.span.bytes
        guard marker.count == markerBytes, marker[markerBytes - 1] == newline,
            [36, 57, 94, 115].allSatisfy({ marker[$0] == space }),
            LineText.uuid(bytes, at: 0, acceptUppercase: false) != nil,
            LineText.uuid(bytes, at: 58, acceptUppercase: false) != nil,
            LineText.number(bytes, at: 95) != nil, LineText.number(bytes, at: 116) != nil
        else { return nil }
        return LineText.number(bytes, at: 37)
    }
}
