// Repairs a damaged log: intact lines stay, lost positions are reported, and no file is deleted without a
// copy in the quarantine. Survey (SurveyedFile) → plan (RepairPlan) → this. A repair can be interrupted at
// any point and repeated: no old file is touched until all new ones are durable.
// Spec/format/repair.md, REP-3.

import LogFormat

/// The steps that a repair took, or would take.
package struct RepairReport: Hashable, Sendable {
    /// One entry per step; empty if the log is sound.
    package var actions: [RepairAction] = []
    /// The number of lines that the log has afterwards.
    package var kept = 0
    /// The positions that a copied folder lacks at its end, since it was made while a writer had the log open.
    package var missing: ClosedRange<Position>?
    /// All positions whose lines are lost.
    package var lost: [ClosedRange<Position>] { actions.flatMap(\.lost) }
}

/// A repair of a log that no writer has open.
package struct LogRepair {
    private let directory: String
    private let account: String?
    private let keptStates: Set<String>
    private let wrongCheckpoints: [String: String]
    private let environment: LogEnvironment
    private var fileSystem: any FileSystem { environment.fileSystem }

    /// - Parameters:
    ///   - directory: the log's folder.
    ///   - account: the account of the log, used if no header is intact.
    ///   - keptStates: the names of the states in checkpoints that cannot be computed from lines. Repair
    ///     keeps them in a checkpoint at position 0.
    ///   - wrongCheckpoints: the checkpoints whose states contradict the lines, by name, with the reason.
    ///   - environment: file system, clock and randomness.
    package init(
        _ directory: String, account: String? = nil, keptStates: Set<String> = [],
        wrongCheckpoints: [String: String] = [:], environment: LogEnvironment = LogEnvironment()
    ) {
        self.directory = directory
        self.account = account
        self.keptStates = keptStates
        self.wrongCheckpoints = wrongCheckpoints
        self.environment = environment
    }

    // MARK: Planning

    /// Returns the steps that a repair would take. Changes nothing.
    ///
    /// - Throws: `LogError`: `noSuchLog`, `notALog`, `locked`, `newerVersion`, `unknownFeature`, `io`.
    ///   Damage is not thrown.
    /// - Complexity: O(bytes of the log); memory for one frame and one footer, and for the frame lists of
    ///   damaged segments.
    package func plan() throws(LogError) -> RepairReport {
        _ = try segmentNames()
        let folder = try WriterLock.lockFolder(directory, fileSystem)
        let lockDamage = try lockDamage()
        let lock = try acquireLock()
        defer { withExtendedLifetime((folder, lock)) {} }
        let (plan, otherActions) = try makePlan()
        return RepairReport(
            actions: (lockDamage.map { [$0] } ?? []) + (try misplaced()) + otherActions
                + plan.actions, kept: plan.kept, missing: plan.missing)
    }

    /// Returns the steps that a repair would take in segments, without the log's lock: for a verification. If a
    /// writer appends meanwhile, the report may say less than there is.
    ///
    /// - Throws: as `plan()`, except `locked`.
    package func forecast() throws(LogError) -> RepairReport {
        let plan = try makePlan().plan
        return RepairReport(actions: plan.actions, kept: plan.kept, missing: plan.missing)
    }

    /// Repairs the log. On return it can be opened and appended to, verification finds no damage, and the
    /// lock is released.
    ///
    /// - Returns: the steps, with the paths in the quarantine.
    /// - Throws: as `plan()`, and `diskFull`, `readOnly`. After an error the log is unchanged or partly
    ///   repaired; repair it again.
    package func repair() throws(LogError) -> RepairReport {
        var report = RepairReport()
        // Throws for a folder that is no log, before a lock file is created in it.
        _ = try segmentNames()
        let folder = try WriterLock.lockFolder(directory, fileSystem)
        if var damage = try lockDamage() {
            damage.quarantinedAs = try quarantine.move(path(damage.name), damage.name, Self.suffix)
            report.actions.append(damage)
        }
        let lock = try WriterLock(directory, fileSystem, holding: folder)
        defer { withExtendedLifetime(lock) {} }
        for var action in try misplaced() {
            action.quarantinedAs = try quarantine.move(
                path(action.name), action.name.replacing("/", with: "-"), Self.suffix)
            report.actions.append(action)
        }
        try applyJournal()
        var (plan, otherActions) = try makePlan()
        for index in otherActions.indices { try quarantineFile(&otherActions[index]) }
        // A folder or a link is moved, not copied. It may be the only sign of a lost segment, so the segment that
        // takes its positions is durable first.
        let written = try write(plan.writings)
        for index in plan.actions.indices where plan.actions[index].bytes != nil {
            try quarantineFile(&plan.actions[index])
        }
        // Checkpoints whose states depend on lost lines are removed before the segments are replaced. The
        // position that a checkpoint proves must stay named until the segment that covers it is in place.
        let states = statesToKeep(plan)
        let losesStates =
            !plan.actions.isEmpty || otherActions.contains { wrongCheckpoints[$0.name] != nil }
        let proof = losesStates ? try storeProof(of: plan, states) : nil
        try remove(otherActions.map(\.name).filter { $0 != proof })
        try storage { () throws(FileError) in
            for (temporary, target) in written {
                try fileSystem.rename(path(temporary), to: path(target))
            }
            try fileSystem.syncDirectory(directory)
        }
        let targets = Set(written.map(\.target))
        let replaced = plan.actions.filter { $0.bytes != nil && !targets.contains($0.name) }
        var names = try replaced.map(\.name) + leftovers()
        if let proof, plan.proven > .zero {
            if !states.isEmpty { _ = try store(states, at: .zero, of: plan) }
            names.append(proof)
        }
        try remove(names)
        report.actions += otherActions + plan.actions
        report.kept = plan.kept
        report.missing = plan.missing
        return report
    }

    /// The newest of the states that cannot be computed from lines, at position 0.
    private func statesToKeep(_ plan: RepairPlan) -> [StoredState] {
        guard !keptStates.isEmpty else { return [] }
        let checkpoints = CheckpointSlots(directory, fileSystem: fileSystem).usable()
            .filter { $0.logID == plan.fresh.logID }
        let newest = checkpoints.max { $0.position < $1.position }
        return (newest?.states ?? []).filter { keptStates.contains($0.name) }.map {
            StoredState(name: $0.name, version: $0.version, position: .zero, bytes: $0.bytes)
        }
    }

    /// Stores a checkpoint that names the last position that any present checkpoint names. Durable on
    /// return.
    ///
    /// - Returns: its name; nil if no checkpoint names a position of this log and there is no state to keep.
    private func storeProof(
        of plan: RepairPlan, _ states: [StoredState]
    ) throws(LogError) -> String? {
        guard plan.proven > .zero || !states.isEmpty else { return nil }
        return try store(states, at: plan.proven, of: plan)
    }

    private func store(
        _ states: [StoredState], at position: Position, of plan: RepairPlan
    ) throws(LogError) -> String {
        let slot = try CheckpointSlots(directory, fileSystem: fileSystem).write(
            Checkpoint(
                logID: plan.fresh.logID, position: position, lastID: 0,
                createdAt: environment.now(), sealed: [], live: nil, states: states))
        return LogDirectory.checkpoints + "/" + slot
    }

    private static let suffix = "damaged"
    private var quarantine: Quarantine { Quarantine(directory, fileSystem) }
    private func path(_ name: String) -> String { directory + "/" + name }

    /// Surveys all files and plans the repair.
    ///
    /// - Returns: the plan for segments, and the actions for other files.
    private func makePlan() throws(LogError) -> (plan: RepairPlan, otherActions: [RepairAction]) {
        let (names, notALog) = try segmentNames()
        let leftoverNames = try leftovers()
        let claims = CheckpointSlots(directory, fileSystem: fileSystem).claims()
        let hasCheckpoint = claims.heads().contains { _ in true }
        guard !names.isEmpty || !leftoverNames.isEmpty || hasCheckpoint else {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
        let (journal, journalDamage) = try readJournal()
        var files: [SurveyedFile] = []
        for name in names {
            files.append(try SurveyedFile.read(name, in: directory, journal, fileSystem))
        }
        for name in leftoverNames {
            let file = try SurveyedFile.read(name, in: directory, nil, fileSystem)
            if file.isWhole { files.append(file) }
        }
        if let notALog, files.isEmpty, !hasCheckpoint { throw notALog }
        let fresh = SegmentHeader(
            logID: environment.randomUUID(), account: account, base: Position(1),
            createdAt: environment.now())
        let plan = try RepairPlan(files, claims: claims, fresh: fresh) {
            file throws(LogError) in
            let plain = try storage { () throws(FileError) in
                try fileSystem.open(path(file.name), .read)
            }
            let overlaid = try journal?.overlaid(on: plain, name: file.name)
            return try storage { () throws(FileError) in
                let base = file.base ?? Position(1)
                var salvage = try SegmentSalvage(overlaid ?? plain, from: base)
                try salvage.readRemovedPositions(of: overlaid ?? plain, base: base)
                return salvage
            }
        }
        let cause = plan.actions.first { !$0.lost.isEmpty } ?? plan.actions.first
        let otherActions: [RepairAction]
        if let cause {
            otherActions = try storedViews(becauseOf: cause.name)
        } else {
            otherActions = try badCheckpoints()
        }
        return (plan, (journalDamage.map { [$0] } ?? []) + otherActions)
    }

    /// Actions for entries that are no file or no folder although their name belongs to one.
    private func misplaced() throws(LogError) -> [RepairAction] {
        try LogDirectory.misplaced(in: directory, fileSystem).map {
            RepairAction(verb: .quarantine, name: $0.name, reason: $0.reason)
        }
    }

    /// The names of the log's segments. An interrupted repair may have left only its own files. Then there
    /// are no names, and `notALog` is the error to throw unless one of those files is complete.
    ///
    /// - Throws: `LogError`: `notALog`, `noSuchLog`, `io`.
    private func segmentNames() throws(LogError) -> (names: [String], notALog: LogError?) {
        do throws(LogError) {
            return (try LogDirectory.segments(of: directory, fileSystem), nil)
        } catch let error where error.code == .notALog {
            guard let leftoverNames = try? leftovers(), !leftoverNames.isEmpty else { throw error }
            return ([], error)
        }
    }

    /// The files of an interrupted repair: `<segment name>[.<number>].repair`.
    private func leftovers() throws(LogError) -> [String] {
        try storage { () throws(FileError) in
            try fileSystem.list(directory).filter(LogDirectory.isRepairFile).sorted()
        }
    }

    /// Actions for damaged or wrong checkpoints, in a log without other damage.
    private func badCheckpoints() throws(LogError) -> [RepairAction] {
        var actions: [RepairAction] = []
        for (slot, content) in CheckpointSlots(directory, fileSystem: fileSystem).contents() {
            let name = LogDirectory.checkpoints + "/" + slot
            let error: String
            if case .bad(let reason) = content {
                error = reason
            } else if let reason = wrongCheckpoints[name] {
                error = reason
            } else {
                continue
            }
            actions.append(
                RepairAction(
                    verb: .quarantine, name: name, bytes: try size(of: name),
                    reason: error + "; the views are rebuilt from the log"))
        }
        return actions
    }

    /// Actions for all checkpoints, in a log with other damage: their states may depend on lost lines and
    /// can be rebuilt.
    ///
    /// - Parameter cause: the damaged file.
    private func storedViews(becauseOf cause: String) throws(LogError) -> [RepairAction] {
        let slots = CheckpointSlots(directory, fileSystem: fileSystem)
        guard slots.isFolder else { return [] }
        var bad: Set<String> = []
        for (slot, content) in slots.contents() {
            if case .bad = content { bad.insert(slot) }
        }
        let names: [String]
        do throws(FileError) {
            names = try fileSystem.list(directory + "/" + LogDirectory.checkpoints)
        } catch let error where error.code == .notFound || error.code == .wrongKind {
            return []
        } catch { throw LogError(error) }
        var actions: [RepairAction] = []
        for slot in names.sorted() {
            let name = LogDirectory.checkpoints + "/" + slot
            actions.append(
                RepairAction(
                    verb: .quarantine, name: name, bytes: try size(of: name),
                    reason: "it may depend on lost events; the views are rebuilt from the log",
                    cause: bad.contains(slot) ? nil : cause))
        }
        return actions
    }

    // MARK: Lock and journal

    /// The action for a lock file that cannot be read; nil if it can.
    private func lockDamage() throws(LogError) -> RepairAction? {
        func action(_ error: FileError) -> RepairAction {
            RepairAction(verb: .quarantine, name: LogDirectory.lock, reason: error.reason)
        }
        let file: any File
        do throws(FileError) {
            file = try fileSystem.open(path(LogDirectory.lock), .read)
        } catch {
            switch error.code {
            case .notFound: return nil
            case .wrongKind, .symbolicLink: return action(error)
            default: throw LogError(error)
            }
        }
        try lock(file)
        do throws(FileError) {
            _ = try file.read(at: 0, count: 1)
            return nil
        } catch { return action(error) }
    }

    /// Acquires the lock without creating or changing its file; nil if there is no readable file.
    private func acquireLock() throws(LogError) -> (any File)? {
        guard let file = try? fileSystem.open(path(LogDirectory.lock), .read) else { return nil }
        try lock(file)
        return file
    }

    private func lock(_ file: any File) throws(LogError) {
        guard try storage({ () throws(FileError) in try file.lock() }) else {
            throw WriterLock.isLocked(directory, fileSystem)
        }
    }

    /// Reads the rewrite journal of an interrupted recovery, or returns the action for a damaged one.
    private func readJournal() throws(LogError) -> (RewriteJournal?, damage: RepairAction?) {
        let name = LogDirectory.rewriteJournal
        do throws(FileError) {
            _ = try fileSystem.open(path(name), .read)
        } catch {
            switch error.code {
            case .notFound: return (nil, nil)
            case .wrongKind, .symbolicLink:
                return (
                    nil,
                    RepairAction(
                        verb: .quarantine, name: name, bytes: 0, reason: error.reason)
                )
            default: throw LogError(error)
            }
        }
        if let journal = try RewriteJournal.read(in: directory, fileSystem) {
            return (journal, nil)
        }
        return (
            nil,
            RepairAction(
                verb: .quarantine, name: name, bytes: try size(of: name),
                reason: "the rewrite journal is incomplete")
        )
    }

    /// Finishes the rewrite of an interrupted recovery, as opening would. Before that, the segment may be
    /// torn.
    private func applyJournal() throws(LogError) {
        guard let journal = try readJournal().0,
            let name = try LogDirectory.segments(of: directory, fileSystem).last,
            (try? fileSystem.open(path(name), .readWrite)) != nil
        else { return }
        try journal.apply(to: name, in: directory, fileSystem)
    }

    // MARK: Changing

    /// Copies a file to `quarantine/`, or moves an entry there that is no file. Durable on return.
    private func quarantineFile(_ action: inout RepairAction) throws(LogError) {
        let stem = action.name.replacing("/", with: "-")
        do throws(FileError) {
            _ = try fileSystem.open(path(action.name), .read)
        } catch let error where error.code == .wrongKind || error.code == .symbolicLink {
            action.quarantinedAs = try quarantine.move(path(action.name), stem, Self.suffix)
            return
        } catch { throw LogError(error) }
        action.quarantinedAs = try quarantine.keep(
            copyOf: path(action.name), stem, Self.suffix)
    }

    /// Writes all new segments beside the old ones; durable on return.
    private func write(
        _ writings: [RepairPlan.Writing]
    ) throws(LogError) -> [(temporary: String, target: String)] {
        let targets = Set(writings.map(\.target))
        var written: [(temporary: String, target: String)] = []
        for writing in writings {
            written.append((try write(writing), writing.target))
            // If the source's own name is a target too, another segment replaces the source. A power cut
            // may then lose the new file's only name, so it is written under two.
            if let source = writing.source?.name, source != writing.target,
                targets.contains(source)
            {
                _ = try write(writing)
            }
        }
        try storage { () throws(FileError) in try fileSystem.syncDirectory(directory) }
        return written
    }

    /// Writes one segment under a temporary name.
    private func write(_ writing: RepairPlan.Writing) throws(LogError) -> String {
        let (name, file) = try create(for: writing.target)
        var rewriter = SegmentRewriter(
            file, header: writing.header.encoded(), base: writing.header.base,
            seed: UInt32(truncatingIfNeeded: environment.random()), environment.sizes)
        var digest = XXH64()
        if let (name, salvage) = writing.source {
            let source = try storage { () throws(FileError) in
                try fileSystem.open(path(name), .read)
            }
            try salvage.forEachLine(of: source, in: writing.positions) {
                (prefix, line) throws(LogError) in
                digest.update(line)
                try rewriter.append(prefix, line)
            }
            try rewriter.endLines()
            // Records store the distance from the base, so they are valid only if it stays.
            let lists =
                writing.keepsBase
                ? try salvage.removedIDs(of: source, in: writing.positions) : []
            for bytes in lists { try rewriter.append(removedIDs: bytes) }
        } else {
            try rewriter.endLines()
        }
        let footer = try rewriter.finish(
            coveredThrough: writing.through, compactedThrough: writing.compactedThrough)
        try readBack(name, writing.target, footer, lines: digest.value())
        return name
    }

    /// Reads a new file and compares it with the lines and footer that were written.
    private func readBack(
        _ name: String, _ target: String, _ footer: SegmentFooter, lines: UInt64
    ) throws(LogError) {
        var digest = XXH64()
        let isRight: Bool
        do {
            let segment = try SealedSegment(target, in: directory, fileSystem, from: name)
            _ = try segment.forEachLine(from: segment.header.base) { _, line in
                digest.update(line)
                return true
            }
            let findings = try LogVerifier(directory, fileSystem: fileSystem)
                .findings(in: segment)
            isRight = segment.footer == footer && digest.value() == lines && findings.isEmpty
        } catch let error as LogError {
            throw error
        } catch { throw LogError(.io, path: path(name), "\(error)") }
        guard isRight else {
            throw LogError(
                .io, path: path(name),
                "the file differs when read back; the log is unchanged; check the device for "
                    + "hardware errors")
        }
    }

    /// Creates a file with a free temporary name.
    private func create(for target: String) throws(LogError) -> (name: String, file: any File) {
        var number = 0
        while true {
            let infix = number == 0 ? "" : ".\(number)"
            let name = target + infix + LogDirectory.repairSuffix
            do throws(FileError) {
                return (name, try fileSystem.open(path(name), .createNew))
            } catch let error where error.code == .exists {
                number += 1
            } catch { throw LogError(error) }
        }
    }

    /// Removes files. The removal is durable on return, including that of files which an interrupted repair
    /// had removed without a sync.
    private func remove(_ names: [String]) throws(LogError) {
        try storage { () throws(FileError) in
            for name in names {
                do throws(FileError) {
                    try fileSystem.remove(path(name))
                } catch let error where error.code == .notFound {
                    continue
                }
            }
            do throws(FileError) {
                try fileSystem.syncDirectory(path(LogDirectory.checkpoints))
            } catch let error where error.code == .notFound || error.code == .wrongKind {}
            try fileSystem.syncDirectory(directory)
        }
    }

    private func size(of name: String) throws(LogError) -> Int {
        try storage { () throws(FileError) in
            do throws(FileError) {
                return try fileSystem.open(path(name), .read).size()
            } catch let error where error.code == .wrongKind || error.code == .symbolicLink {
                return 0
            }
        }
    }
}
