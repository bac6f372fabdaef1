// logtool import: CloudEvents lines become local mutations.

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
            that stopped can simply be run again. So are records of syncing: they speak of positions \
            in the log that wrote them. A line that is not a valid event stops it with \
            the line's number; what came before is in.

            With --layout content-cache a folder is read instead, as logtool export writes it. What \
            the log does not say already is recorded; a language is then what the folder says of it.

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
            Events a commit at most; 1 makes every event its own durable commit. (default: 1000)
            """)
    var batch: Int?
    @Flag(help: "Print 'id position' for each event as soon as it is on the disk.")
    var ack = false
    @Option(help: "content-cache: read a folder with content.")
    var layout: FolderLayout?
    @Option(help: "Whose log it is; only for a new log, or to be checked.")
    var account: String?
    @OptionGroup var output: OutputOptions

    private static let batchDefault = 1_000

    func validate() throws {
        guard batch.map({ $0 >= 1 }) ?? true else {
            throw ValidationError("--batch takes a number from 1 on.")
        }
        if layout != nil {
            guard file != "-" else { throw ValidationError("With --layout name a folder.") }
            guard batch == nil, !ack else {
                throw ValidationError("--layout goes without --batch and --ack.")
            }
        }
        guard account != "" else { throw ValidationError("--account takes a name.") }
    }

    func run() async throws {
        try await Exit.mapping { try await work() }
    }

    private func work() async throws {
        if let layout {
            return try await layout.import(directory, from: file, account: account, output.format)
        }
        let lines = try openLines()
        let store = try await ToolStore.open(directory, account: account, create: true)
        if let tail = store.recovery.tornTail {
            Message.note(
                "note: \(tail.byteCount) bytes of an unfinished write were cut and kept as "
                    + (tail.quarantinedAs ?? "nothing"))
        }
        let progress = Progress("imported", of: lines.totalBytes.map(Progress.Total.bytes))
        let summary: ImportSummary
        do {
            var events = EventImport(into: store, commitEventsMax: batch ?? Self.batchDefault)
            summary = try await events.run(lines) { appended in
                if ack { Self.write(appended) }
            } progress: {
                progress.update($0.appended + $0.known, bytes: $0.bytes)
            }
        } catch {
            progress.finish()
            try? await store.close()
            guard let error = error as? ImportError else { throw error }
            Message.error("\(error)")
            throw Exit.badData
        }
        progress.finish()
        try await store.close()
        if summary.records > 0 {
            Message.note(
                "skipped \(summary.records) records of syncing (\(LogRecord.typePrefix)…): they speak of "
                    + "positions in the log that wrote them. What was sent or discarded there waits "
                    + "here to be sent")
        }
        if ack {
            Message.note(
                "appended \(summary.appended), skipped \(summary.known) that were known")
        } else {
            var row = ViewRow()
            row.add("appended", summary.appended)
            row.add("skipped", summary.known + summary.records)
            row.add("lines", summary.lines)
            RowWriter.writeSummary(row, output.format)
        }
    }

    /// Opens the file, or standard input for `-`.
    private func openLines() throws -> LineReader {
        guard file != "-" else { return LineReader(STDIN_FILENO, file) }
        let descriptor = open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let reason = errno
            Message.error("\(file): \(String(cString: strerror(reason)))")
            throw [ENOENT, ENOTDIR, EACCES].contains(reason) ? Exit.noLog : Exit.io
        }
        return LineReader(descriptor, file)
    }

    private static func write(_ appended: [Appended]) {
        for event in appended {
            Stdout.write(Array("\(event.id.uuidString.lowercased()) \(event.position)\n".utf8))
        }
        Stdout.flush()
    }
}
