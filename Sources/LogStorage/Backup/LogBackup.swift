// Backs up a log while any writer appends, compacts or seals: reads without the lock, like a LogReader, and
// writes a folder that appears under its name when it is complete. Checkpoints are opened first, segments are
// copied in order, the last one up to its last commit, then the files beside the log: so the backup holds every
// line that a checkpoint names, and every file that a line names. Spec/format/backup.md.

import LogFormat

/// A backup of a log into a new folder.
package struct LogBackup {
    private let directory: String
    private let target: String
    /// The folder that contains the backup.
    private let parent: String
    /// The backup's folder before it is renamed to `target`.
    private let temporary: String
    /// The file system to read the log with.
    private let files: any FileSystem
    /// The file system to write the backup with.
    private let fileSystem: any FileSystem
    private let environment: LogEnvironment

    /// - Parameters:
    ///   - directory: the log's folder.
    ///   - target: the folder of the backup, which must not exist; its parent must.
    ///   - files: the file system to read the log with; nil for the environment's.
    package init(
        of directory: String, to target: String, environment: LogEnvironment,
        reading files: (any FileSystem)? = nil
    ) {
        var target = target
        while target.count > 1, target.hasSuffix("/") { target.removeLast() }
        self.directory = directory
        self.target = target
        self.files = files ?? environment.fileSystem
        fileSystem = environment.fileSystem
        self.environment = environment
        parent = LogDirectory.parent(of: target)
        let name = target.split(separator: "/").last ?? ""
        let number = String(UInt64(truncatingIfNeeded: environment.random()), radix: 16)
        temporary = (parent == "/" ? "" : parent) + "/.\(name).\(number).part"
    }

    /// Makes the backup. Durable on return; after an error nothing is left of it.
    ///
    /// - Throws: `LogError`: `noSuchLog`, `notALog`; `corrupt` for what opening refuses as well; `diskFull`,
    ///   `readOnly`; `io` for a target that exists or is in the log's folder, for a file that cannot be read,
    ///   and if the log's files were removed or replaced meanwhile.
    /// - Complexity: O(bytes of the live segment and the checkpoints), and O(files) where the file system can
    ///   clone or link files, else O(bytes); memory for a frame, a footer and 1 MiB.
    package func run() throws(LogError) -> BackupSummary {
        let claims = CheckpointSlots(directory, fileSystem: files).claims()
        let names = try LogDirectory.segments(of: directory, files)
        guard !names.isEmpty else {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
        try requireFree()
        try create()
        do throws(LogError) {
            var summary = BackupSummary()
            // First: an event that the owner absorbs meanwhile is in the copy of the spool, of the log, or both.
            try copySpools(&summary)
            let end = try copySegments(names, &summary)
            try claims.check(next: end.next, of: end.header.logID)
            try copyCheckpoints(claims, end, &summary)
            try copyRules(&summary)
            try copyFiles(&summary)
            try requireSame(names.prefix(summary.segments), of: end.header.logID)
            try publish()
            summary.last = Position(end.next.rawValue - 1)
            return summary
        } catch {
            try? fileSystem.removeAll(temporary)
            throw named(error)
        }
    }

    // MARK: The destination

    /// Checks that nothing has the backup's name, a symbolic link included, and that it is not in the log.
    private func requireFree() throws(LogError) {
        try LogDirectory.requireOutside(directory, target)
        do throws(FileError) {
            _ = try fileSystem.open(target, .read)
        } catch let error where error.code == .notFound {
            return
        } catch {}
        throw LogDirectory.isTaken(target)
    }

    private func create() throws(LogError) {
        do throws(FileError) { try fileSystem.createDirectory(temporary) } catch {
            guard error.code == .notFound else { throw LogError(error) }
            throw LogDirectory.lacksParent(target)
        }
    }

    /// Gives the backup its name; durable on return.
    private func publish() throws(LogError) {
        try storage { () throws(FileError) in try fileSystem.syncDirectory(temporary) }
        // A rename would replace an empty folder.
        try requireFree()
        do throws(FileError) {
            try fileSystem.rename(temporary, to: target)
        } catch { throw LogError(error) }
        do throws(FileError) { try fileSystem.syncDirectory(parent) } catch {
            try? fileSystem.removeAll(target)
            throw LogError(error)
        }
    }

    /// The error with the path of the log in place of the backup's if bytes are damaged, which were copied so.
    private func named(_ error: LogError) -> LogError {
        guard error.isDamage, error.path.hasPrefix(temporary) else { return error }
        var error = error
        error.path = directory + error.path.dropFirst(temporary.count)
        return error
    }

    // MARK: Segments

    /// The end of what was copied.
    private struct End {
        var header: SegmentHeader
        var next: Position
    }

    private func copySegments(
        _ names: [String], _ summary: inout BackupSummary
    ) throws(LogError) -> End {
        var end: End?
        var names = names
        // Without the unfinished one, the backup ends in the segment before, which must not be a shared file.
        if let last = names.last, names.count > 1,
            try Recovery(directory: directory, fileSystem: files).isUnfinished(last)
        {
            names.removeLast()
        }
        for name in names.dropLast() {
            // Others follow: the segment is sealed, and at most replaced by its compacted version.
            let file = try storage { () throws(FileError) in
                try files.open(directory + "/" + name, .read)
            }
            try share(file, name, &summary)
            try append(try SealedSegment(name, in: temporary, fileSystem), to: &end, &summary)
        }
        try copyLast(names[names.count - 1], to: &end, &summary)
        guard let end else {
            throw LogError(
                .noSuchLog, path: directory, "the log's first segment is not complete yet")
        }
        return end
    }

    /// Checks that a copied segment follows the ones before.
    private func append(
        _ segment: SealedSegment, to end: inout End?, _ summary: inout BackupSummary
    ) throws(LogError) {
        try segment.checkIDIndex()
        try check(segment.header, follows: end, segment.path)
        guard segment.footer.coversItsLines(from: segment.header.base) else {
            throw LogError(
                .corrupt, path: segment.path, offset: segment.footerAt,
                segment.footer.linesDescription)
        }
        end = End(header: segment.header, next: segment.footer.coveredThrough.next)
        summary.segments += 1
        summary.events += Int(clamping: segment.footer.eventCount)
    }

    private func check(
        _ header: SegmentHeader, follows end: End?, _ path: String
    ) throws(LogError) {
        if let end { try header.check(isOfLogOf: end.header, path) }
        let next = end?.next ?? Position(1)
        guard header.base == next else {
            throw SealedSegments.gap(path, found: header.base, expecting: next)
        }
    }

    /// Copies the last segment up to its last commit. A torn tail is left out; a writer that is in the middle
    /// of a write looks like one.
    private func copyLast(
        _ name: String, to end: inout End?, _ summary: inout BackupSummary
    ) throws(LogError) {
        let path = directory + "/" + name
        var attempt = 1
        while true {
            let source = try storage { () throws(FileError) in try files.open(path, .read) }
            let file =
                try RewriteJournal.read(in: directory, files)?.overlaid(on: source, name: name)
                ?? source
            let last: LastSegment
            do throws(LogError) {
                last = try Recovery(directory: directory, fileSystem: files)
                    .classify(name, file: file)
            } catch let error where error.code == .corrupt && attempt < Recovery.attemptsMax {
                attempt += 1
                continue
            } catch { throw error }
            if case .torn = last, attempt < Recovery.attemptsMax {
                attempt += 1
                continue
            }
            // A power cut must not take a line from the log that the backup has: its position would be given
            // to another line.
            do throws(FileError) { try source.sync() } catch {
                guard error.code == .readOnly else { throw LogError(error) }
            }
            return try copy(last, from: file, as: name, to: &end, &summary)
        }
    }

    private func copy(
        _ last: LastSegment, from file: any File, as name: String, to end: inout End?,
        _ summary: inout BackupSummary
    ) throws(LogError) {
        switch last {
        case .unfinished: return
        case .sealed(let footer, let footerAt, let bytes):
            // Not a shared file: the next writer of either folder writes this footer again.
            try write(file, bytes, then: [], as: name, &summary)
            let segment = try SealedSegment(
                last: temporary + "/" + name, footer: footer, footerAt: footerAt, fileSystem)
            try append(segment, to: &end, &summary)
        case .closed(let live), .live(let live), .torn(let live, _):
            try check(live.header, follows: end, directory + "/" + name)
            var closing: [UInt8] = []
            if live.openFrame != nil { closing.append(littleEndian: UInt32(0)) }
            let last = Position(live.contents.next.rawValue - 1)
            closing += CleanShutdownMarker(last: last).encoded()
            try write(file, live.dataEnd, then: closing, as: name, &summary)
            end = End(header: live.header, next: live.contents.next)
            summary.segments += 1
            summary.events += live.contents.eventCount
        }
    }

    // MARK: Other files

    /// Backs up the spools of companions that belong to the log, each as a log of its own.
    private func copySpools(_ summary: inout BackupSummary) throws(LogError) {
        guard let main = try? SpoolFolder.main(of: directory, files) else { return }
        let spools = SpoolFolder(
            of: directory, main.logID, account: main.account,
            LogEnvironment(fileSystem: files, now: environment.now, random: environment.random))
        // What cannot be read is left out: it must not keep the log from being backed up.
        let names = ((try? spools.list()) ?? []).filter { spools.state(of: $0) == .own }
        try inFolder(LogDirectory.companions, unless: names.isEmpty) { () throws(LogError) in
            for name in names {
                do throws(LogError) {
                    let copied = try LogBackup(
                        of: spools.path(of: name),
                        to: temporary + "/" + LogDirectory.companions + "/" + name.folder,
                        environment: environment, reading: files
                    ).run()
                    summary.bytes += copied.bytes
                    summary.bytesCopied += copied.bytesCopied
                } catch {
                    // The owner has absorbed and deleted it, and the log is copied after it; or it is damaged.
                    guard !error.path.hasPrefix(temporary), error.code != .diskFull else {
                        throw error
                    }
                }
            }
        }
    }

    /// Copies the checkpoints of the log. The segments were read later, so they reach every position that a
    /// checkpoint names, except in a copied folder: of a checkpoint there, only the states that no line holds
    /// are kept.
    private func copyCheckpoints(
        _ claims: EndClaims, _ end: End, _ summary: inout BackupSummary
    ) throws(LogError) {
        let usable = claims.slots.filter { claim in
            claim.header.logID == end.header.logID && claim.header.position < end.next
                && CheckpointSlots.head(of: claim.file, claim.header) != nil
        }
        if usable.isEmpty, let kept = CopiedFolder.lasting(claims, of: end.header.logID) {
            _ = try CheckpointSlots(temporary, fileSystem: fileSystem).write(kept)
            return
        }
        try inFolder(LogDirectory.checkpoints, unless: usable.isEmpty) { () throws(LogError) in
            for claim in usable {
                let bytes = try storage { () throws(FileError) in try claim.file.size() }
                guard bytes <= FormatLimit.checkpointPlaintextBytesMax else { continue }
                try write(
                    claim.file, bytes, then: [], as: LogDirectory.checkpoints + "/" + claim.slot,
                    &summary)
            }
        }
    }

    /// Copies the recorded rules. They were recorded before the events that they are about.
    private func copyRules(_ summary: inout BackupSummary) throws(LogError) {
        guard let file = try openRegularFile(directory + "/" + LogDirectory.rules) else { return }
        try share(file, LogDirectory.rules, &summary)
    }

    /// Copies the contents beside the log. A content is deleted only if no view names it any more.
    private func copyFiles(_ summary: inout BackupSummary) throws(LogError) {
        let folder = directory + "/" + LogDirectory.files
        do throws(FileError) {
            _ = try files.open(folder, .read)
            return
        } catch {
            switch error.code {
            case .notFound, .symbolicLink: return
            case .wrongKind: break
            default: throw LogError(error)
            }
        }
        let names = try storage { () throws(FileError) in try files.list(folder) }
            .filter { !$0.hasPrefix(LogDirectory.unfinishedFilePrefix) }
        try inFolder(LogDirectory.files, unless: names.isEmpty) { () throws(LogError) in
            for name in names.sorted() {
                guard let file = try openRegularFile(folder + "/" + name) else { continue }
                try share(file, LogDirectory.files + "/" + name, &summary)
                summary.files += 1
            }
        }
    }

    /// Opens a file of the log; nil for one that was deleted meanwhile, and for a folder, a link or a device.
    private func openRegularFile(_ path: String) throws(LogError) -> (any File)? {
        do throws(FileError) { return try files.open(path, .read) } catch {
            switch error.code {
            case .notFound, .wrongKind, .symbolicLink: return nil
            default: throw LogError(error)
            }
        }
    }

    /// Creates a folder of the backup, calls `body`, and makes the folder's entries durable.
    private func inFolder(
        _ name: String, unless isEmpty: Bool, _ body: () throws(LogError) -> Void
    ) throws(LogError) {
        guard !isEmpty else { return }
        let path = temporary + "/" + name
        try storage { () throws(FileError) in try fileSystem.createDirectory(path) }
        try body()
        try storage { () throws(FileError) in try fileSystem.syncDirectory(path) }
    }

    /// Copies a file that no program writes to any more, as a clone or a link if the file system can.
    private func share(
        _ file: any File, _ name: String, _ summary: inout BackupSummary
    ) throws(LogError) {
        let newPath = temporary + "/" + name
        guard fileSystem.share(directory + "/" + name, as: newPath) else {
            let bytes = try storage { () throws(FileError) in try file.size() }
            return try write(file, bytes, then: [], as: name, &summary)
        }
        try storage { () throws(FileError) in
            // Fails for a symbolic link that has taken the file's place.
            let shared = try fileSystem.open(newPath, .read)
            try shared.sync()
            summary.bytes += try shared.size()
        }
    }

    /// Writes a new file: the first bytes of another one, then `closing`. Its content is durable on return.
    private func write(
        _ file: any File, _ bytes: Int, then closing: [UInt8], as name: String,
        _ summary: inout BackupSummary
    ) throws(LogError) {
        try storage { () throws(FileError) in
            let copy = try fileSystem.copy(file, count: bytes, to: temporary + "/" + name)
            if !closing.isEmpty { try copy.write(closing, at: bytes) }
            try copy.sync()
        }
        summary.bytes += bytes + closing.count
        summary.bytesCopied += bytes + closing.count
    }

    /// Checks that the log still has the segments that were copied: an erasure, a repair, or a program that
    /// replaces the folder may have been at work.
    private func requireSame(
        _ names: some Collection<String>, of logID: UInt128
    ) throws(LogError) {
        let present = Set(try LogDirectory.segments(of: directory, files))
        func firstLogID() throws(LogError) -> UInt128? {
            guard let name = names.first else { return nil }
            let path = directory + "/" + name
            let file = try storage { () throws(FileError) in try files.open(path, .read) }
            return try SealedSegment.header(of: file, path).logID
        }
        guard present.isSuperset(of: names), try firstLogID() == logID else {
            throw LogError(
                .io, path: directory,
                "files of the log were removed or replaced during the backup; make it again")
        }
    }
}
