// The folder `companions` of a log: the spools of companions, which are small logs with the id of the main log.
// Opens a spool to append to it, reads it, and deletes it once the main log has its lines. No mark says how far a
// spool was absorbed: it is deleted when all of it is. Spec/format/companions.md.

import LogFormat

/// Which lines of a spool were read, in order: their number and a polynomial of their ids. Ids are random, so that two
/// sequences have the same digest with a probability of 2⁻¹²⁸.
package struct LinesDigest: Equatable, Sendable {
    private var count = 0
    private var sum: UInt128 = 0

    package init() {}

    package mutating func include(_ id: UInt128) {
        count += 1
        sum = sum &* 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835 &+ id
    }
}

/// The spools beside a log.
package struct SpoolFolder: Sendable {
    /// The folder of the main log.
    package let main: String
    /// The id of the main log, and of its companions' spools.
    package let logID: UInt128
    /// The account of the main log.
    package let account: String?
    private let environment: LogEnvironment
    private var fileSystem: any FileSystem { environment.fileSystem }

    /// The name of the file that says why the owner has set a spool aside.
    private static let asideName = "aside"
    private static let asideBytesMax = 4_096

    package init(
        of main: String, _ logID: UInt128, account: String?, _ environment: LogEnvironment
    ) {
        self.main = main
        self.logID = logID
        self.account = account
        self.environment = environment
    }

    /// The path of the folder.
    package var path: String { main + "/" + LogDirectory.companions }
    /// The path of a spool.
    package func path(of spool: SpoolName) -> String { path + "/" + spool.folder }

    // MARK: The main log

    /// Checks that the folder still has the main log, and that its erasure has not begun.
    ///
    /// - Throws: `LogError` (`noSuchLog`).
    /// - Complexity: O(segments), and one header to read.
    package func requireMain() throws(LogError) {
        guard let name = try LogDirectory.segments(of: main, fileSystem).first else {
            throw LogError(
                .noSuchLog, path: main,
                "the log was erased; its companions record nothing until they are opened again")
        }
        let path = main + "/" + name
        let file = try storage { () throws(FileError) in try fileSystem.open(path, .read) }
        // A damaged header does not stop a companion: its spool has the log's id.
        guard let header = try? SealedSegment.header(of: file, path) else { return }
        guard header.logID == logID, header.account == account else {
            throw LogError(
                .noSuchLog, path: main,
                "the log was erased, and the folder has another log; open the companion again")
        }
    }

    /// The id and the account of the log in a folder.
    ///
    /// - Throws: `LogError`: `noSuchLog` if there is none, or it is being erased.
    package static func main(
        of directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> (logID: UInt128, account: String?) {
        guard let name = try LogDirectory.segments(of: directory, fileSystem).first else {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
        let path = directory + "/" + name
        let file = try storage { () throws(FileError) in try fileSystem.open(path, .read) }
        let header = try SealedSegment.header(of: file, path)
        return (header.logID, header.account)
    }

    /// The incarnation of the main log's writer; nil if it is not known.
    package var mainIncarnation: UInt128? { marker(main)?.incarnation }

    private func marker(_ directory: String) -> LockMarker? {
        guard let file = try? fileSystem.open(directory + "/" + LogDirectory.lock, .read),
            let bytes = try? file.read(at: 0, count: LockMarker.bytesMax)
        else { return nil }
        return LockMarker(bytes)
    }

    // MARK: Listing

    /// False if the log never had a companion. O(1).
    package var mayExist: Bool { (try? isFolder(path)) ?? true }

    /// The spools, in the order of their names. Empty without the folder.
    ///
    /// - Throws: `LogError`; `io` if `companions` is a symbolic link or no folder.
    package func list() throws(LogError) -> [SpoolName] {
        guard try isFolder(path) else { return [] }
        do throws(FileError) {
            return try fileSystem.list(path).compactMap(SpoolName.init(folder:)).sorted()
        } catch {
            guard error.code == .notFound else { throw LogError(error) }
            return []
        }
    }

    /// True for a folder, false if there is nothing at the path.
    ///
    /// - Throws: `LogError` (`io`) for a symbolic link, which is never followed, and for a file.
    private func isFolder(_ path: String) throws(LogError) -> Bool {
        do throws(FileError) {
            _ = try fileSystem.open(path, .read)
        } catch {
            switch error.code {
            case .notFound: return false
            case .wrongKind: if try canBeListed(path) { return true }
            default: throw LogError(error)
            }
        }
        throw LogError(.io, path: path, "it is not a folder; move it away")
    }

    /// True if an entry that is no file is a folder.
    private func canBeListed(_ path: String) throws(LogError) -> Bool {
        do throws(FileError) {
            _ = try fileSystem.list(path)
            return true
        } catch {
            guard error.code == .wrongKind else { throw LogError(error) }
            return false
        }
    }

    /// What a spool is to this log.
    package enum State: Hashable, Sendable {
        /// A spool of this log.
        case own
        /// A folder without a segment, or one that was deleted meanwhile.
        case empty
        /// A spool of another log or account.
        case foreign
        /// A spool that the owner has set aside, with the reason.
        case aside(String)
        /// A folder that cannot be read, with the reason.
        case unreadable(String)
    }

    /// Inspects a spool. O(1).
    package func state(of spool: SpoolName) -> State {
        let folder = path(of: spool)
        do throws(LogError) {
            guard try isFolder(folder) else { return .empty }
            if let reason = try asideReason(of: spool) { return .aside(reason) }
            let found = try Self.main(of: folder, fileSystem)
            return found.logID == logID && found.account == account ? .own : .foreign
        } catch {
            switch error.code {
            // Also while a companion creates the spool, or the owner deletes it.
            case .noSuchLog: return .empty
            case .corrupt, .notALog:
                return hasOnlyUnfinished(folder) ? .empty : .unreadable(error.detail)
            default: return .unreadable(error.detail)
            }
        }
    }

    /// True if the creation of the only segment was interrupted, so that it has no line.
    private func hasOnlyUnfinished(_ folder: String) -> Bool {
        guard let names = try? LogDirectory.segments(of: folder, fileSystem), names.count == 1
        else { return false }
        return (try? Recovery(directory: folder, fileSystem: fileSystem).isUnfinished(names[0]))
            ?? false
    }

    private func asideReason(of spool: SpoolName) throws(LogError) -> String? {
        do throws(FileError) {
            let file = try fileSystem.open(path(of: spool) + "/" + Self.asideName, .read)
            let bytes = try file.read(at: 0, count: Self.asideBytesMax)
            return String(decoding: bytes, as: UTF8.self)
        } catch {
            guard error.code == .notFound else { throw LogError(error) }
            return nil
        }
    }

    // MARK: Reading

    /// A cursor that reads a spool without its lock.
    package func cursor(_ spool: SpoolName, after position: Position = .zero) -> LogCursor {
        LogCursor(path(of: spool), of: logID, after: position, fileSystem: fileSystem)
    }

    /// A spool, and its last line to absorb.
    package struct Extent: Sendable {
        package let spool: SpoolName
        package let state: State
        package let end: Position
    }

    /// Reads the spools from the last to the first, so that an event's predecessors are found with it: a process writes
    /// to no spool before the one that it has written to.
    ///
    /// - Parameter companion: the companion whose spools are read; nil for all.
    /// - Returns: what `read` has returned, in the order of the spools' names.
    /// - Throws: `LogError` as `list()`, and what `read` throws.
    package func readFromLast<Result>(
        of companion: String? = nil, _ read: (SpoolName) throws -> Result
    ) throws -> [Result] {
        func names() throws -> [SpoolName] {
            try list().filter { companion == nil || $0.companion == companion }
        }
        var found = try names()
        while true {
            let results = try found.reversed().map(read)
            let present = try names()
            // Two processes may have begun spools with one counter.
            let isLate = Set(present).subtracting(found).contains { new in
                found.contains { $0.companion == new.companion && new < $0 }
            }
            guard isLate else { return results.reversed() }
            found = present
        }
    }

    /// The spools in the order of their names, each up to a line, such that an event's predecessors are included with
    /// it. Repairs damaged ones. O(bytes of the spools).
    ///
    /// - Throws: `LogError` as `list()`.
    package func extents() throws -> [Extent] { try readFromLast(extent) }

    private func extent(of spool: SpoolName) -> Extent {
        let state = state(of: spool)
        guard state == .own else { return Extent(spool: spool, state: state, end: .zero) }
        do {
            return Extent(spool: spool, state: state, end: try end(of: spool))
        } catch let error as LogError where error.code == .noSuchLog {
            // Deleted meanwhile.
            return Extent(spool: spool, state: .empty, end: .zero)
        } catch let error as LogError where error.isDamage {
            // Repair may find lines after the damage. While another process has the lock, those before it count.
            _ = try? repair(spool)
            return Extent(
                spool: spool, state: state, end: (try? end(of: spool)) ?? Position(.max))
        } catch {
            let reason = (error as? LogError)?.detail ?? "\(error)"
            return Extent(spool: spool, state: .unreadable(reason), end: .zero)
        }
    }

    /// The last position of a spool.
    private func end(of spool: SpoolName) throws -> Position {
        var cursor = cursor(spool)
        try cursor.poll { _, _ in true }
        return cursor.position
    }

    /// A cursor that reads a spool of any log.
    package func reader(_ spool: SpoolName) -> LogCursor {
        LogCursor(path(of: spool), fileSystem: fileSystem)
    }

    /// The incarnation of a spool: another one after the folder was emptied and used again. Nil if it is not known.
    package func incarnation(of spool: SpoolName) -> UInt128? {
        marker(path(of: spool))?.incarnation
    }

    // MARK: Appending

    /// Opens a spool for one append, with its lock. The caller closes it at once.
    ///
    /// - Parameter create: true for a new spool, whose folder and whose parent are created, durably.
    /// - Returns: nil if the spool cannot be appended to: another process has its lock, the owner has deleted it
    ///   or set it aside, or it is damaged. The caller begins the next one.
    /// - Throws: `LogError`: `diskFull`, `readOnly`, `io`, …
    package func open(_ spool: SpoolName, create: Bool) throws(LogError) -> Log? {
        if create {
            try requireMain()
            try storage { () throws(FileError) in
                try fileSystem.createDirectoryIfMissing(path)
                try fileSystem.syncDirectory(main)
            }
        } else {
            guard state(of: spool) == .own else { return nil }
        }
        do throws(LogError) {
            let log = try Log(
                at: path(of: spool), account: account, create: create, newID: logID,
                environment: environment)
            // The owner sets a spool aside, and empties it, under the lock.
            guard log.id == logID, log.account == account, try asideReason(of: spool) == nil else {
                try log.close()
                return nil
            }
            return log
        } catch {
            switch error.code {
            case .locked, .noSuchLog, .notALog, .corrupt, .wrongAccount: return nil
            default: throw error
            }
        }
    }

    /// Deletes a spool to which an event was written after the main log had been erased. Best effort.
    package func discard(_ spool: SpoolName) {
        try? fileSystem.removeAll(path(of: spool))
        try? fileSystem.removeDirectory(path)
    }

    // MARK: Releasing

    /// The result of `release`.
    package enum Released: Hashable, Sendable {
        /// The spool was deleted, and so many files of it are in the quarantine of the main log.
        case deleted(quarantined: Int)
        /// The spool has other lines, too: it must be read again.
        case more
        /// Another process has its lock: it stays.
        case busy
        /// The spool was set aside.
        case aside
    }

    /// Deletes a spool whose lines are durable in the main log. Never waits for its lock. Bytes that recovery or repair
    /// has removed from its lines are moved to the quarantine of the main log first.
    ///
    /// - Parameters:
    ///   - absorbed: the lines that were read. Not the last position: a line whose sync has failed may have been read,
    ///     and another one be at its position now.
    ///   - reason: the reason to set the spool aside instead; nil to delete it.
    /// - Throws: `LogError`: `diskFull`, `readOnly`, `io`, …; the spool is then unchanged, or the next call deletes it.
    /// - Complexity: O(bytes of the spool).
    package func release(
        _ spool: SpoolName, absorbed: LinesDigest, aside reason: String?
    ) throws(LogError) -> Released {
        let log: Log
        do throws(LogError) {
            log = try Log(
                at: path(of: spool), account: account, create: false, newID: logID,
                environment: environment)
        } catch {
            switch error.code {
            case .locked: return .busy
            case .noSuchLog: return try releaseEmpty(spool)
            case _ where error.isDamage: return try repair(spool) ? .more : .busy
            default: throw error
            }
        }
        guard log.id == logID else {
            try log.close()
            throw LogError(.corrupt, path: path(of: spool), "the spool has another log's id")
        }
        guard try digest(of: log) == absorbed else {
            try log.close()
            return .more
        }
        if let reason {
            try setAside(spool, reason)
            try log.close()
            return .aside
        }
        let quarantined = try moveQuarantine(of: spool)
        try log.erase()
        try removeFolder(spool)
        return .deleted(quarantined: quarantined)
    }

    /// The lines of a spool; nil if they cannot be read.
    private func digest(of log: Log) throws(LogError) -> LinesDigest? {
        var digest = LinesDigest()
        do {
            try log.forEachLine(from: Position(1)) { prefix, _ in
                digest.include(prefix.id)
                return true
            }
        } catch let error as LogError { throw error } catch { return nil }
        return digest
    }

    /// Repairs a damaged spool: intact lines stay, and the files that had damage go to its quarantine.
    ///
    /// - Returns: false if another process has its lock.
    /// - Throws: `LogError`.
    private func repair(_ spool: SpoolName) throws(LogError) -> Bool {
        do throws(LogError) {
            _ = try LogRepair(path(of: spool), account: account, environment: environment).repair()
            return true
        } catch {
            guard error.code == .locked else { throw error }
            return false
        }
    }

    /// Deletes a folder without a segment, as an interrupted deletion or creation leaves one.
    private func releaseEmpty(_ spool: SpoolName) throws(LogError) -> Released {
        guard try isFolder(path(of: spool)) else { return .deleted(quarantined: 0) }
        do throws(LogError) {
            let claimed = try ClaimedLog(path(of: spool), environment)
            defer { claimed.release() }
            // A companion may have begun to use the folder before it was locked.
            let erasure = LogErasure(directory: path(of: spool), fileSystem: fileSystem)
            if try erasure.unfinished == nil {
                let names = try storage { () throws(FileError) in
                    try fileSystem.list(path(of: spool))
                }
                guard !names.contains(where: { SegmentName.base($0) != nil }) else { return .more }
            }
            let quarantined = try moveQuarantine(of: spool)
            try claimed.erase()
            try removeFolder(spool)
            return .deleted(quarantined: quarantined)
        } catch {
            switch error.code {
            case .locked: return .busy
            case .noSuchLog: return .deleted(quarantined: 0)
            default: throw error
            }
        }
    }

    /// Removes an emptied folder, unless a companion uses it again; durable on return.
    private func removeFolder(_ spool: SpoolName) throws(LogError) {
        try? fileSystem.removeDirectory(path(of: spool))
        try storage { () throws(FileError) in try fileSystem.syncDirectory(path) }
    }

    private func setAside(_ spool: SpoolName, _ reason: String) throws(LogError) {
        let folder = path(of: spool)
        try storage { () throws(FileError) in
            let file = try fileSystem.open(folder + "/" + Self.asideName, .createIfMissing)
            try file.write(Array(reason.utf8.prefix(Self.asideBytesMax)), at: 0)
            try file.sync()
            try fileSystem.syncDirectory(folder)
        }
    }

    private func moveQuarantine(of spool: SpoolName) throws(LogError) -> Int {
        let folder = path(of: spool) + "/" + LogDirectory.quarantine
        guard try isFolder(folder) else { return 0 }
        let names = try storage { () throws(FileError) in try fileSystem.list(folder) }
        for name in names.sorted() {
            _ = try Quarantine(main, fileSystem).move(
                folder + "/" + name, "\(spool.folder)-\(name)", "companion")
        }
        return names.count
    }
}
