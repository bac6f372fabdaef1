// logtool export: every line of a log as NDJSON, as it was written.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes the events to a file, one JSON object a line, or content to a folder.",
        discussion: """
            Every line is written as it is stored, byte for byte and in order; only the member \
            position, which says where a line from elsewhere stands in this log, is left out. \
            logtool import reads such a file. Reads without the log's lock, so a writer may go on.

            The file appears under its name when it is whole, and only its owner may read it. Of a \
            damaged log everything before the damage is written, and the exit code is 65.

            With --layout content-cache the cached content is written instead, into a new folder: \
            cities-meta.json, cities.json, content and resource-cache, as Spec/model/content.md says. \
            logtool import reads such a folder.

            Example: logtool export ./log notes.ndjson --type daybook.note.added
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Argument(
        help: "The file to write, or - for standard output; with --layout, the folder.",
        completion: .file())
    var destination: String
    @Option(help: "From this position on.")
    var from: UInt64?
    @Option(help: "Up to this position.")
    var to: UInt64?
    @Option(help: "Events of this type only.")
    var type: String?
    @Option(help: "content-cache: write the cached content as a folder.")
    var layout: FolderLayout?
    @Flag(help: "Replace the file or the folder if it exists.")
    var force = false
    @OptionGroup var output: OutputOptions

    private var isToStdout: Bool { destination == "-" }

    func validate() throws {
        guard !destination.isEmpty else { throw ValidationError("A file has a name.") }
        if layout != nil {
            guard !isToStdout else { throw ValidationError("With --layout name a folder.") }
            guard from == nil, to == nil, type == nil else {
                throw ValidationError(
                    "--layout writes the content as it is now; it goes without --from, --to and "
                        + "--type.")
            }
        }
        if isToStdout, force || output.output.map({ $0 != .ndjson }) ?? false {
            throw ValidationError(
                "With - the lines go to standard output, as ndjson and nothing else.")
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
            // What is intact before the damage is worth as much as without it.
            damage = error
        } catch {
            progress.finish()
            file?.discard()
            throw error
        }
        progress.finish()
        try file?.finish()
        Stdout.flush()
        say(summary)
        guard let damage else { return }
        Message.note(
            "the export ends before the damage"
                + (summary.reached.map { ", behind position \($0)" } ?? ""))
        throw damage
    }

    /// Writes the wanted lines.
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
        if let tail = outcome.tornTail { Message.note(Inspect.words(tail)) }
    }

    private func say(_ summary: ExportSummary) {
        guard !isToStdout else {
            return Message.note("\(summary.events) events, \(summary.bytes) bytes")
        }
        var row = ViewRow()
        row.add("events", summary.events)
        row.add("bytes", summary.bytes)
        row.add("first", raw: summary.first.map { Array("\($0)".utf8) })
        row.add("last", raw: summary.last.map { Array("\($0)".utf8) })
        RowWriter.writeSummary(row, output.format)
    }
}
