// Imports events that an export has written, as events of this log. Spec/operations/logtool.md, TOOL-4 and
// TOOL-32.

import Foundation
import LogFormat

/// The result of an import.
public struct ImportSummary: Hashable, Sendable {
    /// The number of events that were recorded.
    public var appended = 0
    /// The number of events that the log already had.
    public var known = 0
    /// The number of records of syncing, which are skipped: they name positions in the log that wrote
    /// them.
    public var records = 0
    /// The number of events of other producers that were skipped because an earlier one has the same source and
    /// id, and other content. In CloudEvents they count as duplicates.
    public var clashing = 0
    /// The number of lines read.
    public var lines = 0
    /// The number of bytes read.
    public var bytes = 0

    /// Creates an empty summary.
    public init() {}
}

extension ImportSummary: CustomStringConvertible {
    /// The numbers of events by what was done with them, and of lines and bytes.
    public var description: String {
        var text = "\(appended.counted("event")) recorded, \(known) already in the log"
        if records > 0 { text += ", \(records.counted("record")) of syncing skipped" }
        if clashing > 0 { text += ", \(clashing) with the source and id of another skipped" }
        return text + "; \(lines.counted("line")), \(bytes.counted("byte"))"
    }
}

/// A line that cannot be imported. The events before it are recorded.
public struct ImportError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The number of the line; the first is 1.
    public let line: Int
    /// The error in the line.
    public let reason: EventError
    /// The summary of the import before the line.
    public let summary: ImportSummary

    /// The line, its error, and the state of the other lines.
    public var description: String {
        "line \(line): \(reason.detail). The lines before it were imported"
    }

    /// The same as `description`, as a sentence.
    public var errorDescription: String? { "The import ended at \(description)." }

    /// The next step for the user.
    public var recoverySuggestion: String? {
        "Correct or remove the line, then import the file again: events that are recorded already are "
            + "recognised by their ids."
    }
}

/// An import of lines into a store.
package struct EventImport: Sendable {
    /// The most bytes that the log adds to a line: source, sequence and position.
    private static let addedBytes = 120

    private let store: EventStore
    private let commitEventsMax: Int
    private let derivesIDs: Bool
    /// What has been imported so far, also after an error.
    package private(set) var summary = ImportSummary()

    /// - Parameters:
    ///   - commitEventsMax: the most events of one commit.
    ///   - derivesIDs: true to give events whose ids are no UUIDs ids that follow from their sources and ids.
    package init(
        into store: EventStore, commitEventsMax: Int = 1_000, derivesIDs: Bool = false
    ) {
        self.store = store
        self.commitEventsMax = commitEventsMax
        self.derivesIDs = derivesIDs
    }

    /// Records the events of all lines, a commit at a time.
    ///
    /// - Parameters:
    ///   - appended: called after each commit, with the positions of its events in order.
    ///   - progress: called after each commit.
    /// - Throws: `ImportError`; `LogError` as `EventStore.append(contentsOf:durability:)` and for a file that cannot
    ///   be read; `CancellationError` between two commits. Earlier events are recorded.
    /// - Complexity: O(bytes); memory for one commit.
    package mutating func run(
        _ lines: LineReader, appended: (_ events: [Appended]) -> Void = { _ in },
        progress: (ImportSummary) -> Void = { _ in }
    ) async throws -> ImportSummary {
        var batch = ImportBatch(lines: lines)
        repeat {
            try Task.checkCancellation()
            batch = try await BlockingWork.run { [batch, store, commitEventsMax, derivesIDs] in
                batch.followed(
                    by: store.catalogue, eventsMax: commitEventsMax, derivesIDs: derivesIDs)
            }
            summary.records += batch.recordCount
            try await append(batch.drafts[...], batch.numbers[...], appended)
            summary.lines = batch.lines.number
            summary.bytes = batch.lines.readBytes
            progress(summary)
            if let failure = batch.failure {
                throw (failure as? EventError).map { stop(batch.lines.number, $0) } ?? failure
            }
        } while !batch.isLast
        return summary
    }

    private func stop(_ line: Int, _ reason: EventError) -> any Error {
        ImportError(line: line, reason: reason, summary: summary)
    }

    /// Appends events in one commit. If one of them is refused, finds it by bisection and records those
    /// before it.
    private mutating func append(
        _ drafts: ArraySlice<EventDraft>, _ numbers: ArraySlice<Int>,
        _ appended: (_ events: [Appended]) -> Void
    ) async throws {
        guard !drafts.isEmpty else { return }
        do {
            let recorded = try await store.append(history: Array(drafts))
            for event in recorded {
                if event.isNew { summary.appended += 1 } else { summary.known += 1 }
            }
            appended(recorded)
        } catch let error as EventError {
            guard drafts.count > 1 else {
                if error.code == .idReused, drafts.allSatisfy(OriginalID.isDerived) {
                    return summary.clashing += 1
                }
                throw stop(numbers[numbers.startIndex], error)
            }
            let count = drafts.count / 2
            try await append(drafts.prefix(count), numbers.prefix(count), appended)
            try await append(drafts.dropFirst(count), numbers.dropFirst(count), appended)
        }
    }

    /// The events of one commit, and the lines after them.
    private struct ImportBatch: Sendable {
        var lines: LineReader
        var drafts: [EventDraft] = []
        /// The numbers of the drafts' lines.
        var numbers: [Int] = []
        var recordCount = 0
        /// The error that ended the reading of lines.
        var failure: (any Error)?
        var isLast = false

        /// Reads the lines of the next commit.
        func followed(
            by catalogue: EventCatalogue, eventsMax: Int, derivesIDs: Bool
        ) -> ImportBatch {
            var next = ImportBatch(lines: lines)
            var bytes = 0
            let lineBytesMax = WriterSizes.lineBytesMax + EventImport.addedBytes
            do {
                while next.drafts.count < eventsMax,
                    bytes + lineBytesMax <= WriterSizes.commitPlaintextBytesMax
                {
                    guard let line = try next.lines.next() else {
                        next.isLast = true
                        break
                    }
                    guard let draft = try Self.draft(line, catalogue, derivesIDs) else { continue }
                    guard !LogRecord.isType(draft.type) else {
                        next.recordCount += 1
                        continue
                    }
                    next.drafts.append(draft)
                    next.numbers.append(next.lines.number)
                    bytes += line.count + EventImport.addedBytes
                }
            } catch { next.failure = error }
            return next
        }

        /// The event of a line; nil for a line of white space.
        private static func draft(
            _ line: [UInt8], _ catalogue: EventCatalogue, _ derivesIDs: Bool
        ) throws(EventError) -> EventDraft? {
            guard line.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }) else {
                return nil
            }
            var draft = try LineDecoder.decode(line.span.bytes, derivesID: derivesIDs).draft
            try catalogue.normalise(&draft)
            return draft
        }
    }
}
