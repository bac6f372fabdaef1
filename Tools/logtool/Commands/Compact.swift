// logtool compact: takes out of a log what nothing needs any more.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct Compact: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Takes out of a log what nothing needs any more.",
        discussion: """
            Stores the views' states, seals the live segment, and takes out values that were \
            replaced and whose successors the server has. Prints for each event type how many went, \
            how many were kept and why, then a summary. With --dry-run it only says so, and changes \
            nothing; its bytes afterwards are an estimate.

            Example: logtool compact ./log --dry-run
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Flag(help: "Say what would go; read without the log's lock, change nothing.")
    var dryRun = false
    @OptionGroup var output: OutputOptions

    private static var views: [any Projection.Type] { OfflineModel.views + [Outbox.self] }

    func run() async throws {
        try await Exit.mapping {
            let report = dryRun ? try preview() : try await compact()
            write(report)
        }
    }

    private func preview() throws -> CompactionReport {
        // Once to fold the states, once to judge the lines.
        let bytes = 2 * LogReader(directory).bytesToRead()
        let progress = Progress("read", of: .bytes(bytes))
        defer { progress.finish() }
        return try CompactionPreview(
            directory, fileSystem: CountingFileSystem(progress),
            catalogue: OfflineModel.catalogue, views: Self.views
        ).report(
            now: LogEnvironment.systemTime(), summary: Outbox.foldedRecord,
            progress: { progress.update($0) })
    }

    private func compact() async throws -> CompactionReport {
        let store = try await ToolStore.open(directory)
        let result: Result<CompactionReport, any Error>
        do {
            try await store.foldSyncRecords()
            try await store.flush()
            try store.log.roll()
            let total = try store.log.sealedSegments().reduce(0) {
                $0 + Int(clamping: $1.footer.eventCount)
            }
            let progress = Progress("judged", of: .items(total))
            result = await Interruption.result {
                try await store.compact { count, _ in progress.update(count) }
            }
            progress.finish()
        } catch { result = .failure(error) }
        try await store.close()
        do {
            return try result.get()
        } catch is CancellationError {
            Message.error("interrupted; the segments that were done stay compacted")
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
                "note: no event behind position \(report.limit) can go before the app has stored "
                    + "the states of its views: \(report.heldBackBy.joined(separator: ", "))")
        }
        for kept in report.keptForViews {
            Message.note(
                "note: \(kept.events) events (\(kept.bytes) bytes of lines) stay for the app's view "
                    + "\(kept.view), which does not say which it no longer needs")
        }
        if report.removed == 0 {
            Message.note(report.isDryRun ? "nothing would go" : "nothing went")
        }
    }

    private func row(_ type: CompactionReport.TypeReport) -> ViewRow {
        var row = ViewRow()
        row.add("type", type.type)
        row.add("events", type.events)
        row.add("removed", type.removed)
        row.add("freedBytes", type.freedBytes)
        row.add("kept", type.events - type.removed)
        add(type.kept, to: &row)
        return row
    }

    private func summary(_ report: CompactionReport) -> ViewRow {
        var row = ViewRow()
        row.add("dryRun", report.isDryRun)
        row.add("events", report.types.reduce(0) { $0 + $1.events })
        row.add("removed", report.removed)
        row.add("freedBytes", report.freedBytes)
        row.add("kept", report.kept.values.reduce(0, +))
        add(report.kept, to: &row)
        row.add("bytesBefore", report.bytesBefore)
        row.add("bytesAfter", report.bytesAfter)
        row.add("segments", report.segments)
        row.add("segmentsRewritten", report.segmentsRewritten)
        row.add("compactedThrough", Int(clamping: report.compactedThrough.rawValue))
        row.add("idsRemembered", report.idsRemembered)
        return row
    }

    /// Why events were kept: an object, or for people a list.
    private func add(_ kept: [KeptReason: Int], to row: inout ViewRow) {
        let reasons = kept.sorted { $0.key.rawValue < $1.key.rawValue }
        if output.format == .table {
            row.add(
                "reasons", reasons.map { "\($0.key.rawValue) \($0.value)" }.joined(separator: ", "))
        } else {
            var object = ViewRow()
            for (reason, count) in reasons { object.add(reason.rawValue, count) }
            row.add("reasons", raw: object.json)
        }
    }
}
