// The owner takes over what its companions have recorded: reads their spools without a lock, appends the lines that the
// log does not have, and deletes a spool once all of it is durable. Spec/format/companions.md, COMP-7 to COMP-9.

import Foundation
import LogFormat
import LogStorage

extension EventStore {
    /// Records the events that companions have recorded, as events of this log: with their ids, times and contents.
    /// They are durable, in the views, and shipped like the log's own. Spools are deleted once all of their events are
    /// durable here; after an interruption they are read again, and events that the log has are skipped.
    ///
    /// A store that an app has opened on a disk does so by itself once the log has had a companion: when it is opened
    /// and resumed, and when a companion has written. For the first companion while the store is open, call it once.
    /// Other appends run between its commits. Spools of other logs and accounts stay as they are, and a spool with an
    /// event that the log refuses is set aside.
    ///
    /// - Returns: what was absorbed and what stays.
    /// - Throws: `LogError`: as `append(contentsOf:durability:)`; `io` if the folder `companions` cannot be read.
    ///   Earlier events are recorded, and the next call continues.
    /// - Complexity: O(bytes of the spools); memory for one commit of at most 256 events.
    @discardableResult
    public func absorbCompanions() async throws -> AbsorptionReport {
        lookForCompanions(isExpected: true)
        return try await absorbWaiting()
    }

    /// Absorbs, and begins to watch nothing: for the end of a store.
    package func absorbWaiting() async throws -> AbsorptionReport {
        // A running one may have passed a spool that was written since.
        while let running = absorption.running { _ = try? await running.value }
        try checkOpen()
        let absorber = Absorber(
            store: self,
            folder: SpoolFolder(of: directory, log.id, account: account, environment))
        let task = Task {
            // Before the task ends, so that a call that waits for it does not find it again.
            defer { absorption.running = nil }
            return try await absorber.run()
        }
        absorption.running = task
        return try await task.value
    }

    /// Lets the store of an app absorb without being asked.
    func beginToAbsorb() {
        absorption.isAutomatic = true
        lookForCompanions()
    }

    /// Absorbs, and then whenever companions write, without a poll. Without the folder `companions` it looks for it and
    /// does nothing else. Only on a real disk: a simulated one has no signals.
    ///
    /// - Parameter isExpected: true to wait for the folder's creation.
    func lookForCompanions(isExpected: Bool = false) {
        guard absorption.isAutomatic, environment.fileSystem is POSIXFileSystem else { return }
        if let watch = absorption.watch { return watch.signal() }
        let folder = SpoolFolder(of: directory, log.id, account: account, environment)
        guard isExpected || folder.mayExist else { return }
        guard let watch = FolderWatch() else {
            if !isExpected { Task { [weak self] in await self?.absorbOnSignal() } }
            return
        }
        absorption.watch = watch
        let signals = watch.signals
        Task { [weak self, weak watch] in
            for await _ in signals {
                guard let self, let watch else { break }
                // resume() signals.
                if await isSuspended { continue }
                // Before the look, so that no later write is missed.
                watch.follow(folder)
                await absorbOnSignal()
            }
        }
    }

    private static let lockDelay = Duration.milliseconds(50)

    private func absorbOnSignal() async {
        guard !isClosed, !isSuspended else { return }
        do {
            var report = try await absorbWaiting()
            if !report.busy.isEmpty {
                // A companion that has just closed its spool releases the lock at once. One that is stopped does not:
                // the next signal tries again.
                try await environment.sleep(Self.lockDelay)
                report = try await absorbWaiting()
            }
            warn(of: report)
        } catch {
            // resume() and the next opening look again.
            guard !isClosed, !isSuspended else { return }
            instruments.logger.warning(
                "the events of companions were not absorbed; the next signal tries again",
                metadata: [
                    "error": "\((error as? LogError)?.code.rawValue ?? "\(type(of: error))")"
                ])
        }
    }

    private func warn(of report: AbsorptionReport) {
        guard !report.left.isEmpty || report.quarantined > 0 else { return }
        let names = Set(report.left.map(\.name))
        guard report.quarantined > 0 || !names.isSubset(of: absorption.warnedOf) else { return }
        absorption.warnedOf.formUnion(names)
        instruments.logger.warning(
            "spools of companions stay beside the log, or had damage: see the folder companions",
            metadata: [
                "left": "\(names.sorted().joined(separator: ", "))",
                "quarantined": "\(report.quarantined)",
            ])
    }
}

/// One absorption.
private struct Absorber: Sendable {
    let store: EventStore
    let folder: SpoolFolder

    /// The events and the bytes of lines of one commit: appends of the app wait no longer for it than for their own.
    private static let commitEventsMax = 256
    private static let commitBytesMax = 256 * 1024
    /// How often a spool is read to its end before it is left to the next signal: a companion may append all the time.
    private static let roundsMax = 8

    func run() async throws -> AbsorptionReport {
        var report = AbsorptionReport()
        let spools = try await BlockingWork.run { try folder.list() }
        for spool in spools {
            try Task.checkCancellation()
            let state = try await BlockingWork.run { folder.state(of: spool) }
            do {
                switch state {
                case .own, .empty: try await absorb(spool, &report)
                case .foreign, .aside, .unreadable: await leave(spool, [], &report)
                }
            } catch let error as LogError where error.path.hasPrefix(folder.path + "/") {
                // One spool that cannot be read does not stop the others.
                await leave(spool, ["\(spool.folder): \(error.detail)"], &report)
            }
        }
        return report
    }

    private func absorb(_ spool: SpoolName, _ report: inout AbsorptionReport) async throws {
        var isRepaired = false
        for _ in 0..<Self.roundsMax {
            var read = ReadLines()
            try await recordLines(of: spool, &read, &report)
            let (digest, refused) = (read.digest, read.refused)
            // suspend() and close() wait for this spool, and for no further one.
            try await store.checkOpen()
            let released: SpoolFolder.Released? =
                read.isDamaged
                ? nil
                : try await BlockingWork.run {
                    try folder.release(
                        spool, absorbed: digest,
                        aside: refused.isEmpty ? nil : refused.joined(separator: "\n"))
                }
            switch released {
            case .deleted(let quarantined):
                report.deleted += 1
                report.quarantined += quarantined
                return
            case .more: continue
            case .busy: return report.busy.append(spool.folder)
            case .aside: return await leave(spool, refused, &report)
            case .damaged, nil:
                guard !isRepaired else { return await leave(spool, refused, &report) }
                isRepaired = true
                let hasLock = try await BlockingWork.run { try folder.repair(spool) }
                // Repair may find lines after the damage, so all are read again.
                guard hasLock else { return report.busy.append(spool.folder) }
            }
        }
        // A companion appends all the time.
        await leave(spool, [], &report)
    }

    /// The lines of one read of a spool.
    private struct ReadLines {
        var digest = LinesDigest()
        /// The events that the log refuses, each with the reason.
        var refused: [String] = []
        var isDamaged = false
    }

    /// Records the lines of a spool, a commit at a time.
    private func recordLines(
        of spool: SpoolName, _ read: inout ReadLines, _ report: inout AbsorptionReport
    ) async throws {
        var position = Position.zero
        while true {
            let chunk = try await BlockingWork.run { [position] in
                try Self.chunk(of: spool, in: folder, after: position)
            }
            read.refused += chunk.unreadable
            try await append(chunk.drafts[...], &report, &read.refused)
            chunk.ids.forEach { read.digest.include($0) }
            read.isDamaged = chunk.isDamaged
            position = chunk.last
            if chunk.isEnd { return }
        }
    }

    private func leave(
        _ spool: SpoolName, _ refused: [String], _ report: inout AbsorptionReport
    ) async {
        report.refused += refused
        let left = try? await BlockingWork.run { folder.describe(spool, counting: .waiting) }
        if let left { report.left.append(left) }
    }

    /// Appends events in one commit. If one of them is refused, finds it by bisection and records the others.
    private func append(
        _ drafts: ArraySlice<EventDraft>, _ report: inout AbsorptionReport,
        _ refused: inout [String]
    ) async throws {
        guard !drafts.isEmpty else { return }
        do {
            for event in try await store.append(history: Array(drafts)) {
                if event.isNew { report.absorbed += 1 } else { report.known += 1 }
            }
        } catch let error as EventError {
            guard drafts.count > 1 else {
                let text = "\(drafts[drafts.startIndex].id.text): \(error.detail)"
                if !refused.contains(text) { refused.append(text) }
                return
            }
            let count = drafts.count / 2
            try await append(drafts.prefix(count), &report, &refused)
            try await append(drafts.dropFirst(count), &report, &refused)
        }
    }

    private struct Chunk: Sendable {
        var drafts: [EventDraft] = []
        var ids: [UInt128] = []
        /// The lines that are no events.
        var unreadable: [String] = []
        var last: Position
        var isEnd = false
        var isDamaged = false
    }

    /// The next lines of a spool, read without its lock.
    private static func chunk(
        of spool: SpoolName, in folder: SpoolFolder, after position: Position
    ) throws -> Chunk {
        var cursor = folder.cursor(spool, after: position)
        var chunk = Chunk(last: position)
        var bytes = 0
        do {
            chunk.isEnd = try cursor.poll { prefix, line in
                chunk.ids.append(prefix.id)
                do throws(EventError) {
                    chunk.drafts.append(try LineDecoder.decode(line).draft)
                } catch { chunk.unreadable.append("position \(prefix.position): \(error.detail)") }
                bytes += line.byteCount
                return chunk.ids.count < commitEventsMax && bytes < commitBytesMax
            }
        } catch let error as LogError {
            // A spool without a segment has no lines.
            guard error.code == .noSuchLog || error.isDamage else { throw error }
            (chunk.isEnd, chunk.isDamaged) = (true, error.isDamage)
        }
        chunk.last = cursor.position
        return chunk
    }
}
