// Opens a log for writing: lock → list → classify the last segment → check the chain → recover. A checkpoint
// saves reading the lines that it covers, and proves which positions must exist. Spec/format/recovery.md
// and Spec/format/checkpoint.md.

import LogFormat

/// The result of opening a log, from which `Log` makes its state.
struct LogOpening: ~Copyable {
    let lock: WriterLock
    let report: RecoveryReport
    let sealed: SealedSegments
    var live: SegmentWriter?
    let contents: SegmentContents
    /// The index, in a checkpoint, of the ids that `contents` lacks.
    let idIndex: StoredIDIndex?
    let id: UInt128
    let account: String?
    /// The checkpoint that opening used.
    let checkpoint: Checkpoint?

    /// The state of the log as read, before anything is changed.
    private struct Inspection {
        var sealed: SealedSegments
        /// The last segment; nil for a log without one.
        var last: LastSegment?
        /// The name of a last segment without a header, whose creation was interrupted.
        var unfinished: String?
        var checkpoint: Checkpoint?
        var idIndex: StoredIDIndex?
        var header: SegmentHeader?
        /// The position after the last line.
        var next: Position
    }

    static func open(
        _ directory: String, account: String?, isShared: Bool = false, create: Bool,
        newID: UInt128? = nil, _ environment: LogEnvironment
    ) throws(LogError) -> LogOpening {
        let fileSystem = environment.fileSystem
        let erasure = LogErasure(directory: directory, fileSystem: fileSystem)
        if try erasure.unfinished == nil {
            try prepareFolder(directory, create: create, fileSystem)
        }
        var lock = try WriterLock(directory, fileSystem)
        if let unfinished = try erasure.unfinished {
            guard unfinished == .log else {
                throw LogError(
                    .noSuchLog, path: directory,
                    "the erasure of the log and its secrets is unfinished; open a store there with "
                        + "its secret store to finish it")
            }
            try erasure.finish()
            try prepareFolder(directory, create: create, fileSystem)
        }
        // Another writer may have changed the log before the lock was acquired.
        let names = try LogDirectory.segments(of: directory, fileSystem)
        if let name = names.last {
            try RewriteJournal.read(in: directory, fileSystem)?
                .apply(to: name, in: directory, fileSystem)
        }
        // Everything is checked before anything is changed: a refused opening leaves the log as it was.
        let claims = CheckpointSlots(directory, fileSystem: fileSystem).claims()
        let inspection = try read(names, claims, directory, fileSystem)
        if let account, let header = inspection.header, header.account != account {
            throw LogError(
                .wrongAccount, path: directory,
                header.account == nil
                    ? "the log belongs to no account; open it with account: nil; if a repair has lost "
                        + "its account, export its events and import them into a new log of the account"
                    : "the log belongs to another account; open the log of this account")
        }
        if isShared, inspection.header?.account != nil {
            throw LogError(
                .wrongAccount, path: directory,
                "the log belongs to an account; choose another folder for the data that all "
                    + "accounts share")
        }
        var report = RecoveryReport()
        report.missing = inspection.header.flatMap {
            claims.missing(from: inspection.next, of: $0.logID)
        }
        var live = try recoverLastSegment(inspection, &report, directory, environment)
        try RewriteJournal.remove(from: directory, fileSystem)
        try SegmentCompactor.remove(from: directory, fileSystem)
        let header =
            inspection.header
            ?? SegmentHeader(
                logID: newID ?? environment.randomUUID(), account: account, base: inspection.next,
                createdAt: environment.now())
        if inspection.header == nil {
            live = try ReserveFile(directory, fileSystem).drawing { () throws(LogError) in
                try SegmentWriter.create(header, environment.sizes, in: directory, fileSystem)
            }
        }
        var checkpoint = inspection.checkpoint
        if let base = live?.base ?? inspection.sealed.ranges.last?.lowerBound {
            if report.missing != nil {
                let kept = try ReserveFile(directory, fileSystem).drawing { () throws(LogError) in
                    try CopiedFolder.setAside(
                        claims, next: inspection.next, of: header.logID,
                        isOnly: inspection.checkpoint == nil, fileSystem)
                }
                checkpoint = checkpoint ?? kept
            }
            let end = WriterLock.LogEnd(
                logID: header.logID, base: base, file: live?.reading().file,
                next: inspection.next, isClosed: live?.hasCleanShutdownMarker ?? false)
            try lock.bind(to: end, environment)
        }
        return LogOpening(
            lock: lock, report: report, sealed: inspection.sealed, live: live,
            contents: inspection.last?.live?.contents ?? SegmentContents(base: inspection.next),
            idIndex: inspection.idIndex, id: header.logID, account: header.account,
            checkpoint: checkpoint)
    }

    private static func prepareFolder(
        _ directory: String, create: Bool, _ fileSystem: any FileSystem
    ) throws(LogError) {
        var names: [String] = []
        do throws(LogError) {
            names = try LogDirectory.segments(of: directory, fileSystem)
        } catch let error where error.code == .noSuchLog && create {
            let parent = LogDirectory.parent(of: directory)
            do throws(FileError) {
                try fileSystem.createDirectory(directory)
                try fileSystem.syncDirectory(parent)
            } catch {
                guard error.code == .notFound else { throw LogError(error) }
                // Some file systems answer so for a folder that exists, such as /proc.
                let isMissing = (try? fileSystem.list(parent)) == nil
                throw LogError(
                    .noSuchLog, path: directory,
                    isMissing
                        ? "the parent folder \(parent) does not exist; create it, or choose another path"
                        : "no folder can be created in \(parent); choose another path")
            }
        }
        if names.isEmpty, !create {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
    }

    // MARK: Reading

    /// Reads the log with the newest checkpoint that matches it, or without one.
    private static func read(
        _ names: [String], _ claims: EndClaims, _ directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> Inspection {
        // An error with a checkpoint may be the checkpoint's. Reading without one then reports it properly.
        var matching: Inspection?
        for head in claims.heads() {
            matching = try? read(names, head.checkpoint, directory, fileSystem)
            if claims.isCopy {
                // The segments of a copy may be older than the checkpoint that names them.
                do throws(LogError) { try matching?.sealed.readAll() } catch { matching = nil }
            }
            if matching?.last?.live?.contents.lacksOlderIDs ?? false {
                matching?.idIndex = head.idIndex
            }
            guard matching == nil else { break }
        }
        let inspection: Inspection
        if let matching {
            inspection = matching
        } else {
            inspection = try read(names, nil, directory, fileSystem)
        }
        // Also without any segment: a checkpoint proves that there was one, since it is written later.
        try claims.check(
            next: inspection.next, of: inspection.header?.logID,
            location: names.last.map { (directory + "/" + $0, inspection.last?.end) })
        return inspection
    }

    private static func read(
        _ names: [String], _ checkpoint: Checkpoint?, _ directory: String,
        _ fileSystem: any FileSystem
    ) throws(LogError) -> Inspection {
        var names = names
        var inspection = Inspection(
            sealed: SealedSegments(directory, fileSystem), next: Position(1))
        if let name = names.last {
            let file = try openLastSegment(name, in: directory, fileSystem)
            let live = checkpoint?.live.flatMap {
                SegmentName.of($0.base) == name ? $0 : nil
            }
            inspection.last = try Recovery(directory: directory, fileSystem: fileSystem)
                .classify(name, file: file, resuming: live)
            if case .unfinished = inspection.last {
                inspection.unfinished = names.removeLast()
                inspection.last = nil
            }
        }
        if let checkpoint {
            let known = checkpoint.sealed
            let bases = known.map { SegmentName.of($0.lowerBound) }
            guard names.starts(with: bases) else {
                throw LogError(
                    .corrupt, path: directory,
                    "the checkpoint names other segments than the folder has")
            }
            // The last segment has been read already, and is opened from that result.
            let isLast = names.count == bases.count && inspection.last != nil
            inspection.sealed.append(known: isLast ? Array(known.dropLast()) : known)
        }
        for name in names.dropFirst(inspection.sealed.count).dropLast(
            inspection.last == nil ? 0 : 1)
        {
            try inspection.sealed.append(try SealedSegment(name, in: directory, fileSystem))
        }
        if case .sealed(let footer, let footerAt, _) = inspection.last {
            try inspection.sealed.append(
                try SealedSegment(
                    last: directory + "/" + names[names.count - 1], footer: footer,
                    footerAt: footerAt, fileSystem))
        }
        inspection.next = inspection.sealed.next
        if let live = inspection.last?.live {
            let path = directory + "/" + SegmentName.of(live.header.base)
            guard live.header.base == inspection.next else {
                throw SealedSegments.gap(path, found: live.header.base, expecting: inspection.next)
            }
            if let first = inspection.sealed.header {
                try live.header.check(isOfLogOf: first, path)
            }
            inspection.header = live.header
            inspection.next = live.contents.next
        } else {
            if inspection.sealed.header == nil, inspection.sealed.count > 0 {
                _ = try inspection.sealed.segment(inspection.sealed.count - 1)
            }
            inspection.header = inspection.sealed.header
        }
        if let checkpoint {
            try check(checkpoint, &inspection, directory)
            inspection.checkpoint = checkpoint
        }
        return inspection
    }

    /// Opens the last segment. If its file has further names, as in a folder made of hard links, the log gets a
    /// file of its own first: the writer of the other folder may append to this one, and its lock does not
    /// exclude this writer. REC-13.
    private static func openLastSegment(
        _ name: String, in directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> any File {
        let path = directory + "/" + name
        let file = try storage { () throws(FileError) in try fileSystem.open(path, .readWrite) }
        func isShared() throws(LogError) -> Bool {
            try storage { () throws(FileError) in try file.linkCount() > 1 }
        }
        guard try isShared() else { return file }
        // A killed compaction may have left its file, or both names of it.
        try SegmentCompactor.remove(from: directory, fileSystem)
        guard try isShared() else { return file }
        let copyPath = directory + "/" + LogDirectory.newSegment
        do throws(LogError) {
            let copy = try soundCopy(of: file, name, at: copyPath, in: directory, fileSystem)
            try storage { () throws(FileError) in
                try copy.sync()
                try fileSystem.rename(copyPath, to: path)
                try fileSystem.syncDirectory(directory)
            }
            return copy
        } catch {
            try? fileSystem.remove(copyPath)
            guard error.code == .diskFull else { throw error }
            throw LogError(
                .diskFull, path: path,
                "\(error.detail); the file has another name, as in a folder of hard links, and is "
                    + "copied before it is written to")
        }
    }

    /// Copies the last segment. The other writer may append meanwhile: then the copy may lack bytes in the middle,
    /// and is made again.
    private static func soundCopy(
        of file: any File, _ name: String, at copyPath: String, in directory: String,
        _ fileSystem: any FileSystem
    ) throws(LogError) -> any File {
        let recovery = Recovery(directory: directory, fileSystem: fileSystem)
        for _ in 1..<copiesMax {
            let copy = try storage { () throws(FileError) in
                try fileSystem.copy(file, count: try file.size(), to: copyPath)
            }
            do throws(LogError) {
                _ = try recovery.classify(name, file: copy)
                return copy
            } catch {
                guard error.isDamage else { throw error }
                try storage { () throws(FileError) in try fileSystem.remove(copyPath) }
            }
        }
        // The file itself is damaged: it keeps its names.
        _ = try recovery.classify(name, file: file)
        throw LogError(
            .locked, path: directory + "/" + name,
            "another folder has the same file by a hard link, and its writer is busy; copy the file, or try "
                + "again")
    }

    private static let copiesMax = 4

    /// Checks that the checkpoint's last line is in this log. A log that was restored from an earlier copy
    /// and then appended to has other lines at the same positions.
    private static func check(
        _ checkpoint: Checkpoint, _ inspection: inout Inspection, _ directory: String
    ) throws(LogError) {
        let position = checkpoint.position
        guard inspection.header?.logID == checkpoint.logID, position < inspection.next else {
            throw LogError(.corrupt, path: directory, "the checkpoint belongs to another log")
        }
        guard position > .zero else { return }
        let line: ScannedLine?
        if let number = inspection.sealed.number(covering: position) {
            let segment = try inspection.sealed.segment(number)
            line = try segment.frame(of: position)?.line(at: position)
            if line == nil, segment.footer.isCompacted { return }
        } else if let live = inspection.last?.live {
            let entry = live.contents.frames[live.contents.frame(of: position)]
            line = try DecodedFrame.read(
                live.file, path: directory, entry, allowsHoles: false
            ).line(at: position)
        } else {
            line = nil
        }
        guard line?.prefix.id == checkpoint.lastID else {
            throw LogError(
                .corrupt, path: directory, "the checkpoint's last line is not in the log")
        }
    }

    // MARK: Recovering

    /// Recovers the last segment after an unclean stop.
    ///
    /// - Returns: the segment to append to, if there is one.
    private static func recoverLastSegment(
        _ inspection: Inspection, _ report: inout RecoveryReport, _ directory: String,
        _ environment: LogEnvironment
    ) throws(LogError) -> SegmentWriter? {
        let (fileSystem, sizes) = (environment.fileSystem, environment.sizes)
        if let name = inspection.unfinished {
            report.removedUnfinishedSegment = true
            report.wasUnclean = true
            try storage { () throws(FileError) in
                try fileSystem.remove(directory + "/" + name)
                try fileSystem.syncDirectory(directory)
            }
        }
        let recovery = Recovery(directory: directory, fileSystem: fileSystem)
        switch inspection.last {
        case nil, .unfinished: return nil
        case .sealed(_, let footerAt, let end):
            guard let base = inspection.sealed.ranges.last?.lowerBound else { return nil }
            try confirmSeal(base, footerAt: footerAt, end: end, directory, fileSystem)
            return nil
        case .closed(let segment):
            return writer(segment, directory, hasCleanShutdownMarker: true, sizes)
        case .live(let segment):
            report.wasUnclean = true
            let recovered = try recovery.recover(segment, tornTail: nil)
            return writer(recovered.live, directory, hasCleanShutdownMarker: false, sizes)
        case .torn(let segment, let tail):
            report.wasUnclean = true
            let recovered = try recovery.recover(segment, tornTail: tail)
            report.tornTail = recovered.tornTail
            return writer(recovered.live, directory, hasCleanShutdownMarker: false, sizes)
        }
    }

    private static func writer(
        _ live: LiveSegment, _ directory: String, hasCleanShutdownMarker: Bool, _ sizes: WriterSizes
    ) -> SegmentWriter {
        SegmentWriter(
            path: directory + "/" + SegmentName.of(live.header.base), base: live.header.base,
            file: live.file, dataEnd: live.dataEnd, fileBytes: live.fileBytes,
            openFrame: live.openFrame, hasCleanShutdownMarker: hasCleanShutdownMarker, sizes)
    }

    /// Rewrites the footer of a sealed last segment. If its sync failed, the footer may be in the page cache
    /// only, and no further segment may follow it.
    private static func confirmSeal(
        _ base: Position, footerAt: Int, end: Int, _ directory: String,
        _ fileSystem: any FileSystem
    ) throws(LogError) {
        let path = directory + "/" + SegmentName.of(base)
        let file = try storage { () throws(FileError) in try fileSystem.open(path, .readWrite) }
        let bytes = try storage { () throws(FileError) in
            try file.read(at: footerAt, count: end - footerAt)
        }
        try RewriteJournal.rewrite(
            bytes, then: [], at: footerAt, of: file, segment: base, in: directory, fileSystem)
        try storage { () throws(FileError) in
            try file.truncate(to: end)
            try file.sync()
        }
    }
}
