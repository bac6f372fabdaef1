// logtool import: appends CloudEvents lines as local mutations.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct Import: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Appends CloudEvents lines as local mutations, or content from a folder.",
        discussion: """
            Creates the log if there is none. Known events are skipped and counted, so an import \
            that stopped can be run again. So are sync records: they refer to positions in the log \
            that wrote them. A line that is not a valid event stops the import with the line's \
            number; the lines before it are imported.

            An id is a UUID (RFC 9562). With --derive-ids, events of other producers, whose ids are \
            other texts, get ids that follow from their sources and ids, and keep both as the \
            extensions originsource and originid. Only CloudEvents 1.0 is accepted.

            With --layout content-cache a folder is read instead, as logtool export writes it. \
            Only differences from the log are recorded. What the log has from a later update, and \
            what is missing or cannot be read in the folder, stays as it is.

            Example: logtool import ./log journey.ndjson
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Argument(
        help: """
            A file with one event a line, or - for standard input; with --layout, the folder.
            """, completion: .file())
    var file: String
    @Option(
        help: """
            The most events in a commit; 1 makes every event its own durable commit. (default: 1000)
            """)
    var batch: Int?
    @Flag(help: "Print 'id position' for each event as soon as it is on the disk.")
    var ack = false
    @Flag(name: .customLong("derive-ids"), help: "Make ids for events whose ids are no UUIDs.")
    var derivesIDs = false
    @Option(help: "content-cache: read a folder with content.")
    var layout: FolderLayout?
    @Option(help: "The account of a new log; an existing log must have it.")
    var account: String?
    @OptionGroup var ask: AskOptions
    @OptionGroup var output: OutputOptions

    private static let batchDefault = 1_000

    func validate() throws {
        guard batch.map({ $0 >= 1 }) ?? true else {
            throw ValidationError("--batch must be at least 1.")
        }
        if layout != nil {
            guard file != "-" else { throw ValidationError("--layout needs a folder, not -.") }
            guard batch == nil, !ack, !derivesIDs else {
                throw ValidationError(
                    "--layout cannot be used with --batch, --ack or --derive-ids.")
            }
        }
        guard account != "" else { throw ValidationError("--account needs a name.") }
    }

    func run() async throws {
        try await Exit.mapping { try await ask.opening(directory) { try await work() } }
    }

    private func work() async throws {
        if let layout {
            return try await layout.import(directory, from: file, account: account, output.format)
        }
        let lines = try openLines()
        let store = try await ToolStore.open(directory, account: account, create: true)
        if let tail = store.recovery.tornTail {
            Message.note(
                "note: \(tail.byteCount) bytes of an unfinished write were truncated"
                    + (tail.quarantinedAs.map { " and kept as \($0)" } ?? ""))
        }
        let progress = Progress("imported", of: lines.totalBytes.map(Progress.Total.bytes))
        var events = EventImport(
            into: store, commitEventsMax: batch ?? Self.batchDefault, derivesIDs: derivesIDs)
        var (recorded, known) = (0, 0)
        let summary: ImportSummary
        do {
            summary = try await events.run(lines) { appended in
                recorded += appended.count(where: \.isNew)
                known += appended.count { !$0.isNew }
                Stdout.note(effect: Self.effect(recorded, known))
                if ack { Self.write(appended) }
            } progress: {
                progress.update($0.appended + $0.known, bytes: $0.bytes)
            }
        } catch {
            progress.finish()
            try? await store.close()
            guard let error = error as? ImportError else {
                Message.note(Self.effect(recorded, known))
                throw error
            }
            Message.error("\(error)")
            throw Exit.badData
        }
        progress.finish()
        try await store.close()
        if summary.records > 0 {
            Message.note(
                "skipped \(summary.records) sync records (\(LogRecord.typePrefix)…): they refer to "
                    + "positions in the log that wrote them. Events that were sent or discarded "
                    + "there are pending here")
        }
        if summary.clashing > 0 {
            Message.note(
                "skipped \(summary.clashing.counted("event")) with the source and id of an earlier "
                    + "event and other content: CloudEvents takes them for duplicates")
        }
        if ack {
            Message.note(
                "appended \(summary.appended), skipped \(summary.known) known events")
        } else {
            var row = ViewRow()
            row.appendField("appended", summary.appended)
            row.appendField("skipped", summary.known + summary.records + summary.clashing)
            row.appendField("lines", summary.lines)
            RowWriter.writeSummary(row, output.format)
        }
    }

    private static func effect(_ recorded: Int, _ known: Int) -> String {
        "recorded before the error: \(recorded.counted("event")), "
            + "\(known) already in the log; import the file again to continue"
    }

    /// Opens the file, or standard input for `-`.
    private func openLines() throws -> LineReader {
        guard file != "-" else { return LineReader(STDIN_FILENO, file) }
        return LineReader(try InputFile.open(file), file)
    }

    private static func write(_ appended: [Appended]) {
        for event in appended {
            Stdout.write(Array("\(event.id.uuidString.lowercased()) \(event.position)\n".utf8))
        }
        Stdout.flush()
    }
}
