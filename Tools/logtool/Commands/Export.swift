// logtool export: writes every line of a log as NDJSON, unchanged.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes the events to a file, one JSON object a line, or in a layout.",
        discussion: """
            Every line is written as it is stored, byte for byte and in order; only the member \
            position, which lines from other logs have, is left out. logtool import reads such a \
            file. Reads without the log's lock, so a writer may continue.

            The file appears under its name when it is complete, and only its owner may read it. \
            If the log is damaged, everything before the damage is written, and the exit code is \
            65.

            With --layout content-cache the cached content is written to a new folder instead: \
            cities-meta.json, cities.json, content and resource-cache, as Spec/model/content.md \
            specifies. logtool import reads such a folder.

            With --layout sqlite a database of SQLite is written: the tables of logtool sql, all as \
            they are at one position.

            Example: logtool export ./log notes.ndjson --type daybook.note.added
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Argument(
        help: """
            The file to write, or - for standard output; with --layout content-cache, the folder.
            """,
        completion: .file())
    var destination: String
    @Option(help: "From this position on.")
    var from: UInt64?
    @Option(help: "Up to this position.")
    var to: UInt64?
    @Option(help: "Events of this type only.")
    var type: String?
    @Option(
        help: "content-cache: write the cached content as a folder. sqlite: write a database.")
    var layout: ExportLayout?
    @Flag(help: "Replace the file or the folder if it exists.")
    var force = false
    @OptionGroup var output: OutputOptions

    private var isToStdout: Bool { destination == "-" }

    func validate() throws {
        guard !destination.isEmpty else { throw ValidationError("The file needs a name.") }
        if layout != nil {
            guard !isToStdout else {
                throw ValidationError("--layout needs a folder or a file, not -.")
            }
            guard from == nil, to == nil, type == nil else {
                throw ValidationError(
                    "--layout writes the present state; it cannot be used with --from, --to or "
                        + "--type.")
            }
        }
        if isToStdout, force || output.output.map({ $0 != .ndjson }) ?? false {
            throw ValidationError(
                "With -, the lines go to standard output, as ndjson only and without --force.")
        }
    }

    func run() async throws {
        try await Exit.mapping {
            do {
                try await Interruption.result { try work() }.get()
            } catch is CancellationError {
                Message.error("interrupted; nothing was written")
                throw Exit.interrupted
            }
        }
    }

    private func work() throws {
        if let layout {
            return try layout.export(directory, to: destination, force: force, output.format)
        }
        let replacement: ExportFile.Replacement = force ? .allowed : .refused("add --force")
        let file = isToStdout ? nil : try ExportFile(destination, replacement, log: directory)
        var summary = ExportSummary()
        var damage: LogError?
        let progress = Progress(
            "exported", of: .bytes(LogReader(directory).bytesToRead()))
        do {
            try export(to: file, &summary, progress)
        } catch let error as LogError where error.code == .corrupt {
            // The events before the damage are intact, so the file is kept.
            damage = error
        } catch {
            progress.finish()
            file?.discard()
            throw error
        }
        progress.finish()
        try file?.finish()
        Stdout.flush()
        report(summary)
        guard let damage else { return }
        Message.note(
            "the export ends before the damage"
                + (summary.reached.map { ", after position \($0)" } ?? ""))
        throw damage
    }

    /// Writes the selected lines.
    private func export(
        to file: ExportFile?, _ summary: inout ExportSummary, _ progress: Progress
    ) throws {
        var export = EventExport()
        export.types = type.map { [$0] }
        export.from = Position(max(1, from ?? 1))
        export.to = to.map { Position($0) }
        let reader = LogReader(directory, fileSystem: CountingFileSystem(progress))
        let outcome = try export.write(
            reader, &summary, isCancelled: { Task.isCancelled },
            to: { line, summary in
                if let file { try file.write(line) } else { Stdout.write(json: line) }
                progress.update(summary.events)
            })
        if let tail = outcome.tornTail { Message.note(Message.text(for: tail)) }
    }

    private func report(_ summary: ExportSummary) {
        guard !isToStdout else {
            return Message.note("\(summary.events) events, \(summary.bytes) bytes")
        }
        Stdout.note(effect: "the export is complete")
        var row = ViewRow()
        row.appendField("events", summary.events)
        row.appendField("bytes", summary.bytes)
        row.appendField("first", raw: summary.first.map { Array("\($0)".utf8) })
        row.appendField("last", raw: summary.last.map { Array("\($0)".utf8) })
        RowWriter.writeSummary(row, output.format)
    }
}
