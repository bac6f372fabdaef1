// logtool compact: removes the events that no view needs and the server has.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct Compact: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Removes the events that no view needs and the server has.",
        discussion: """
            Stores the views' states and removes values that were replaced and whose successors \
            the server has. The live segment is sealed first if something in it can be removed. \
            Prints for each event type how many events were removed, how many were kept and why, \
            then a summary. With --dry-run it prints the same and changes nothing; bytesAfter is \
            then an estimate.

            Example: logtool compact ./log --dry-run
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Flag(help: "Print what would be removed; take no lock, change nothing.")
    var dryRun = false
    @OptionGroup var ask: AskOptions
    @OptionGroup var output: OutputOptions

    private static var views: [any Projection.Type] { OfflineModel.views + [Outbox.self] }

    func run() async throws {
        try await Exit.mapping {
            let report =
                dryRun
                ? try preview() : try await ask.opening(directory) { try await compact() }
            if !dryRun { Stdout.note(effect: "the compaction is complete") }
            write(report)
        }
    }

    private func preview() throws -> CompactionReport {
        // The log is read twice: to fold the states, and to classify the lines.
        let bytes = 2 * LogReader(directory).bytesToRead()
        let progress = Progress("read", of: .bytes(bytes))
        defer { progress.finish() }
        return try CompactionPreview(
            directory, fileSystem: CountingFileSystem(progress),
            catalogue: LogReader(directory).modelCatalogue,
            views: Self.views
        ).report(
            now: LogEnvironment.systemTime(), summary: Outbox.foldedRecord,
            progress: { progress.update($0) })
    }

    private func compact() async throws -> CompactionReport {
        let store = try await ToolStore.open(directory)
        let result: Result<CompactionReport, any Error>
        do {
            try await store.foldSyncRecords()
            // The live segment may be among those that are checked.
            let total = Int(clamping: store.log.next.rawValue - 1)
            let progress = Progress("checked", of: .items(total))
            result = await Interruption.result {
                try await store.compact(
                    sealing: true, progress: { count, _ in progress.update(count) })
            }
            progress.finish()
        } catch { result = .failure(error) }
        try await store.close()
        do {
            return try result.get()
        } catch is CancellationError {
            Message.error("interrupted; the segments that are finished stay compacted")
            throw Exit.unavailable
        }
    }

    // MARK: Output

    private func write(_ report: CompactionReport) {
        var writer = RowWriter(output.format)
        for type in report.types { writer.write(row(type)) }
        if output.format == .table {
            writer.finish()
            Stdout.write([UInt8(ascii: "\n")])
            RowWriter.writeSummary(summary(report), .table)
        } else {
            writer.write(summary(report))
            writer.finish()
        }
        if !report.heldBackBy.isEmpty, report.bytesBefore > 0 {
            Message.note(
                "note: events after position \(report.limit) are kept until the app has stored "
                    + "the states of its views: \(report.heldBackBy.joined(separator: ", "))")
        }
        for kept in report.keptForViews {
            Message.note(
                "note: \(kept.events) events (\(kept.bytes) bytes of lines) are kept for the app's "
                    + "view \(kept.view), which does not declare which events it needs")
        }
        if report.removed == 0 {
            Message.note(report.isDryRun ? "nothing would be removed" : "nothing was removed")
        }
    }

    private func row(_ type: CompactionReport.TypeReport) -> ViewRow {
        var row = ViewRow()
        row.appendField("type", type.type)
        row.appendField("events", type.events)
        row.appendField("removed", type.removed)
        row.appendField("freedBytes", type.freedBytes)
        row.appendField("kept", type.events - type.removed)
        appendReasons(type.kept, to: &row)
        return row
    }

    private func summary(_ report: CompactionReport) -> ViewRow {
        var row = ViewRow()
        row.appendField("dryRun", report.isDryRun)
        row.appendField("events", report.types.reduce(0) { $0 + $1.events })
        row.appendField("removed", report.removed)
        row.appendField("freedBytes", report.freedBytes)
        row.appendField("kept", report.kept.values.reduce(0, +))
        appendReasons(report.kept, to: &row)
        row.appendField("bytesBefore", report.bytesBefore)
        row.appendField("bytesAfter", report.bytesAfter)
        row.appendField("segments", report.segments)
        row.appendField("segmentsRewritten", report.segmentsRewritten)
        row.appendField("compactedThrough", Int(clamping: report.compactedThrough.rawValue))
        row.appendField("idsRemembered", report.idsRemembered)
        return row
    }

    /// Appends the reasons for keeping events: as an object, in a table as a list.
    private func appendReasons(_ kept: [KeptReason: Int], to row: inout ViewRow) {
        let reasons = kept.sorted { $0.key.rawValue < $1.key.rawValue }
        if output.format == .table {
            row.appendField(
                "reasons", reasons.map { "\($0.key.rawValue) \($0.value)" }.joined(separator: ", "))
        } else {
            var object = ViewRow()
            for (reason, count) in reasons { object.appendField(reason.rawValue, count) }
            row.appendField("reasons", raw: object.json)
        }
    }
}
