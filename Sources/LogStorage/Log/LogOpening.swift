// Opening a log for writing: lock → list → judge the last segment → check the chain → mend. A
// checkpoint spares reading what it covers, and proves what must be there. Spec/format/recovery.md and
// Spec/format/checkpoint.md.

import LogFormat

/// An opened log, before it is put behind its lock.
struct LogOpening: ~Copyable {
    let lock: WriterLock
    let report: RecoveryReport
    let sealed: SealedSegments
    var live: SegmentWriter?
    let contents: SegmentContents
    /// Where the ids are that the contents lack.
    let idIndex: StoredIDIndex?
    let id: UInt128
    let account: String?
    /// The checkpoint that was built on.
    let checkpoint: Checkpoint?

    /// What reading found, before anything is changed.
    private struct Findings {
        var sealed: SealedSegments
        /// Missing for a log without a segment.
        var last: LastSegment?
        /// The name of a segment that had only begun to exist.
        var unfinished: String?
        var checkpoint: Checkpoint?
        var idIndex: StoredIDIndex?
        var header: SegmentHeader?
        /// The position after the last line.
        var next: Position
    }

    static func open(
        _ directory: String, account: String?, isShared: Bool = false, create: Bool,
        _ environment: LogEnvironment
    ) throws(LogError) -> LogOpening {
        let fileSystem = environment.fileSystem
        let erasure = LogErasure(directory: directory, fileSystem: fileSystem)
        if try erasure.unfinished == nil {
            try prepareFolder(directory, create: create, fileSystem)
        }
        var lock = try WriterLock(directory, environment)
        if let unfinished = try erasure.unfinished {
            guard unfinished == .log else {
                throw LogError(
                    .noSuchLog, path: directory,
                    "the log was to be erased with its secrets, and not all of it is gone. Opening "
                        + "a store there with its secret store ends it")
            }
            try erasure.finish(&lock, environment)
            try prepareFolder(directory, create: create, fileSystem)
        }
        // Somebody may have written between the listing and the lock.
        let names = try LogDirectory.segments(of: directory, fileSystem)
        if let name = names.last {
            try RewriteJournal.read(in: directory, fileSystem)?
                .apply(to: name, in: directory, fileSystem)
        }
        // All is checked before anything is mended: whoever is refused finds nothing changed.
        let found = try read(names, directory, fileSystem)
        if let account, let header = found.header, header.account != account {
            throw LogError(
                .wrongAccount, path: directory,
                header.account == nil
                    ? "the log belongs to no account. Open it with account: nil; if a repair has lost its "
                        + "account, export its events and import them into a new log of the account"
                    : "the log belongs to another account. Every account has a log of its own")
        }
        if isShared, found.header?.account != nil {
            throw LogError(
                .wrongAccount, path: directory,
                "the log belongs to an account. What all accounts share lives in a log of its own")
        }
        var report = RecoveryReport()
        var live = try mend(found, &report, directory, environment)
        try RewriteJournal.remove(from: directory, fileSystem)
        try SegmentCompactor.remove(from: directory, fileSystem)
        let header =
            found.header
            ?? SegmentHeader(
                logID: environment.randomUUID(), account: account, base: found.next,
                createdAt: environment.now())
        if found.header == nil {
            live = try SegmentWriter.create(header, environment.sizes, in: directory, fileSystem)
        }
        return LogOpening(
            lock: lock, report: report, sealed: found.sealed, live: live,
            contents: found.last?.live?.contents ?? SegmentContents(base: found.next),
            idIndex: found.idIndex, id: header.logID, account: header.account,
            checkpoint: found.checkpoint)
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
                throw LogError(
                    .noSuchLog, path: directory,
                    "the parent folder \(parent) does not exist. Create it, or choose another path")
            }
        }
        if names.isEmpty, !create {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
    }

    // MARK: Reading

    /// Reads as much as the newest checkpoint that fits leaves to be read, or all.
    private static func read(
        _ names: [String], _ directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> Findings {
        // Whatever does not fit is judged again without it, and then said properly.
        var fitting: Findings?
        let claims = CheckpointSlots(directory, fileSystem: fileSystem).claims()
        for head in claims.heads() {
            fitting = try? read(names, head.checkpoint, directory, fileSystem)
            if fitting?.last?.live?.contents.lacksOlderIDs ?? false {
                fitting?.idIndex = head.idIndex
            }
            guard fitting == nil else { break }
        }
        let found: Findings
        if let fitting {
            found = fitting
        } else {
            found = try read(names, nil, directory, fileSystem)
        }
        // Where there is no segment at all, there was one: a checkpoint is written behind it.
        try claims.check(
            next: found.next, of: found.header?.logID,
            place: names.last.map { (directory + "/" + $0, found.last?.end) })
        return found
    }

    private static func read(
        _ names: [String], _ checkpoint: Checkpoint?, _ directory: String,
        _ fileSystem: any FileSystem
    ) throws(LogError) -> Findings {
        var names = names
        var found = Findings(
            sealed: SealedSegments(directory, fileSystem), next: Position(1))
        if let name = names.last {
            let file = try storage { () throws(FileError) in
                try fileSystem.open(directory + "/" + name, .readWrite)
            }
            let live = checkpoint?.live.flatMap {
                SegmentName.of($0.base) == name ? $0 : nil
            }
            found.last = try Recovery(directory: directory, fileSystem: fileSystem)
                .judge(name, file: file, resuming: live)
            if case .unfinished = found.last {
                found.unfinished = names.removeLast()
                found.last = nil
            }
        }
        if let checkpoint {
            let known = checkpoint.sealed
            let bases = known.map { SegmentName.of($0.lowerBound) }
            guard names.starts(with: bases) else {
                throw LogError(.corrupt, path: directory, "the checkpoint is of other segments")
            }
            // The last segment has been read already, and is opened with what was found.
            let isLast = names.count == bases.count && found.last != nil
            found.sealed.append(known: isLast ? Array(known.dropLast()) : known)
        }
        for name in names.dropFirst(found.sealed.count).dropLast(found.last == nil ? 0 : 1) {
            try found.sealed.append(try SealedSegment(name, in: directory, fileSystem))
        }
        if case .sealed(let footer, let footerAt, _) = found.last {
            try found.sealed.append(
                try SealedSegment(
                    last: directory + "/" + names[names.count - 1], footer: footer,
                    footerAt: footerAt, fileSystem))
        }
        found.next = found.sealed.next
        if let live = found.last?.live {
            let path = directory + "/" + SegmentName.of(live.header.base)
            guard live.header.base == found.next else {
                throw SealedSegments.gap(path, found: live.header.base, expecting: found.next)
            }
            if let first = found.sealed.header { try live.header.check(isOfLogOf: first, path) }
            found.header = live.header
            found.next = live.contents.next
        } else {
            if found.sealed.header == nil, found.sealed.count > 0 {
                _ = try found.sealed.segment(found.sealed.count - 1)
            }
            found.header = found.sealed.header
        }
        if let checkpoint {
            try check(checkpoint, &found, directory)
            found.checkpoint = checkpoint
        }
        return found
    }

    /// Is the checkpoint's last line in this log? A log that was put back to an earlier state and
    /// went on from there has other lines at the same positions.
    private static func check(
        _ checkpoint: Checkpoint, _ found: inout Findings, _ directory: String
    ) throws(LogError) {
        let position = checkpoint.position
        guard found.header?.logID == checkpoint.logID, position < found.next else {
            throw LogError(.corrupt, path: directory, "the checkpoint is of another log")
        }
        guard position > .zero else { return }
        let line: ScannedLine?
        if let number = found.sealed.number(covering: position) {
            let segment = try found.sealed.segment(number)
            line = try segment.frame(of: position)?.line(at: position)
            if line == nil, segment.footer.isCompacted { return }
        } else if let live = found.last?.live {
            let entry = live.contents.frames[live.contents.frame(of: position)]
            line = try DecodedFrame.read(
                live.file, path: directory, entry, allowsHoles: false
            ).line(at: position)
        } else {
            line = nil
        }
        guard line?.prefix.id == checkpoint.lastID else {
            throw LogError(.corrupt, path: directory, "the checkpoint is of another history")
        }
    }

    // MARK: Mending

    /// Mends what an unclean stop left; gives the segment to append to, if there is one.
    private static func mend(
        _ found: Findings, _ report: inout RecoveryReport, _ directory: String,
        _ environment: LogEnvironment
    ) throws(LogError) -> SegmentWriter? {
        let (fileSystem, sizes) = (environment.fileSystem, environment.sizes)
        if let name = found.unfinished {
            report.removedUnfinishedSegment = true
            report.wasUnclean = true
            try storage { () throws(FileError) in
                try fileSystem.remove(directory + "/" + name)
                try fileSystem.syncDirectory(directory)
            }
        }
        let recovery = Recovery(directory: directory, fileSystem: fileSystem)
        switch found.last {
        case nil, .unfinished: return nil
        case .sealed(_, let footerAt, let end):
            guard let base = found.sealed.ranges.last?.lowerBound else { return nil }
            try confirmSeal(base, footerAt: footerAt, end: end, directory, fileSystem)
            return nil
        case .closed(let segment):
            return writer(segment, directory, hasCloseMark: true, sizes)
        case .live(let segment):
            report.wasUnclean = true
            let mended = try recovery.mend(segment, tornTail: nil)
            return writer(mended.live, directory, hasCloseMark: false, sizes)
        case .torn(let segment, let tail):
            report.wasUnclean = true
            let mended = try recovery.mend(segment, tornTail: tail)
            report.tornTail = mended.tornTail
            return writer(mended.live, directory, hasCloseMark: false, sizes)
        }
    }

    private static func writer(
        _ live: LiveSegment, _ directory: String, hasCloseMark: Bool, _ sizes: WriterSizes
    ) -> SegmentWriter {
        SegmentWriter(
            path: directory + "/" + SegmentName.of(live.header.base), base: live.header.base,
            file: live.file, dataEnd: live.dataEnd, fileBytes: live.fileBytes,
            openFrame: live.openFrame, hasCloseMark: hasCloseMark, sizes)
    }

    /// Writes the footer of a sealed last segment again: if its sync failed, only the page cache
    /// knows it, and the next segment must not stand on that.
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
