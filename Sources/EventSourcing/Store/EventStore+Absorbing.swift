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
            var pause = Self.lockDelay
            for await _ in signals {
                guard let self, let watch else { break }
                // resume() signals.
                if await isSuspended { continue }
                // Before the look, so that no later write is missed.
                watch.follow(folder)
                if await absorbOnSignal() {
                    pause = Self.lockDelay
                } else {
                    // The look itself opens the files of a spool that stays, which may signal.
                    try? await environment.sleep(pause)
                    pause = min(pause * 2, Self.pauseMax)
                }
            }
        }
    }

    private static let lockDelay = Duration.milliseconds(50)
    /// The longest wait after a look that has changed nothing.
    private static let pauseMax = Duration.seconds(5)

    /// - Returns: false if spools stay, and nothing was absorbed or deleted.
    @discardableResult
    private func absorbOnSignal() async -> Bool {
        guard !isClosed, !isSuspended else { return true }
        do {
            var report = try await absorbWaiting()
            if !report.busy.isEmpty {
                // A companion that has just closed its spool releases the lock at once. One that is stopped does not:
                // the next signal tries again.
                try await environment.sleep(Self.lockDelay)
                report = try await absorbWaiting()
            }
            warn(of: report)
            return report.absorbed + report.deleted > 0
                || report.busy.isEmpty && report.left.isEmpty
        } catch {
            // resume() and the next opening look again.
            guard !isClosed, !isSuspended else { return true }
            instruments.logger.warning(
                "the events of companions were not absorbed; the next signal tries again",
                metadata: [
                    "error": "\((error as? LogError)?.code.rawValue ?? "\(type(of: error))")"
                ])
            return false
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
    /// How often the spools are listed before they are left to the next signal: companions may append all the time.
    private static let roundsMax = 8

    func run() async throws -> AbsorptionReport {
        var report = AbsorptionReport()
        for _ in 0..<Self.roundsMax {
            (report.busy, report.left) = ([], [])
            guard try await absorbAll(&report) else { break }
        }
        return report
    }

    /// Absorbs each spool up to its end as of now.
    ///
    /// - Returns: true if some have got further lines meanwhile.
    private func absorbAll(_ report: inout AbsorptionReport) async throws -> Bool {
        var hasMore = false
        let extents = try await BlockingWork.run { try folder.extents() }
        for extent in extents {
            try Task.checkCancellation()
            do {
                switch extent.state {
                case .own, .empty: hasMore = try await absorb(extent, &report) || hasMore
                case .foreign, .aside, .unreadable: await leave(extent.spool, [], &report)
                }
            } catch let error as LogError where error.path.hasPrefix(folder.path + "/") {
                // One spool that cannot be read does not stop the others.
                await leave(extent.spool, ["\(extent.spool.folder): \(error.detail)"], &report)
            }
        }
        return hasMore
    }

    private func absorb(
        _ extent: SpoolFolder.Extent, _ report: inout AbsorptionReport
    ) async throws -> Bool {
        let spool = extent.spool
        let (digest, refused) = try await recordLines(of: extent, &report)
        // suspend() and close() wait for this spool, and for no further one.
        try await store.checkOpen()
        let released = try await BlockingWork.run {
            try folder.release(
                spool, absorbed: digest,
                aside: refused.isEmpty ? nil : refused.joined(separator: "\n"))
        }
        switch released {
        case .deleted(let quarantined):
            report.deleted += 1
            report.quarantined += quarantined
        case .more:
            await leave(spool, [], &report)
            return true
        case .busy: report.busy.append(spool.folder)
        case .aside: await leave(spool, refused, &report)
        }
        return false
    }

    /// Records the lines of a spool, a commit at a time.
    ///
    /// - Returns: which lines, and the events that the log refuses, each with the reason.
    private func recordLines(
        of extent: SpoolFolder.Extent, _ report: inout AbsorptionReport
    ) async throws -> (LinesDigest, refused: [String]) {
        var digest = LinesDigest()
        var refused: [String] = []
        var position = Position.zero
        while position < extent.end {
            let chunk = try await BlockingWork.run { [position] in
                try Self.chunk(of: extent, in: folder, after: position)
            }
            refused += chunk.unreadable
            try await append(chunk.drafts[...], &report, &refused)
            chunk.ids.forEach { digest.include($0) }
            // Another one: its last lines were retracted.
            guard !chunk.ids.isEmpty else { break }
            position = chunk.last
        }
        return (digest, refused)
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
    }

    /// The next lines of a spool, read without its lock.
    private static func chunk(
        of extent: SpoolFolder.Extent, in folder: SpoolFolder, after position: Position
    ) throws -> Chunk {
        var cursor = folder.cursor(extent.spool, after: position)
        var chunk = Chunk(last: position)
        var bytes = 0
        do {
            try cursor.poll(through: extent.end) { prefix, line in
                chunk.ids.append(prefix.id)
                do throws(EventError) {
                    chunk.drafts.append(try LineDecoder.decode(line).draft)
                } catch { chunk.unreadable.append("position \(prefix.position): \(error.detail)") }
                bytes += line.byteCount
                return chunk.ids.count < commitEventsMax && bytes < commitBytesMax
            }
        } catch let error as LogError where error.code == .noSuchLog || error.isDamage {}
        chunk.last = cursor.position
        return chunk
    }
}
