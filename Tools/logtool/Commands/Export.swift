// logtool export: every line of a log as NDJSON, as it was written.

import ArgumentParser
import Daybook
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
            cities-meta.json, cities.json, content and resource-cache, as Spec/content.md says. \
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
        let file = isToStdout ? nil : try ExportFile(destination, force: force, log: directory)
        var summary = Summary()
        var damage: LogError?
        let progress = Progress(
            "exported", of: .bytes(CountingFileSystem.bytes(of: directory)))
        do {
            try feed(file, &summary, progress)
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

    private struct Summary {
        var events = 0
        var bytes = 0
        var first: Position?
        var last: Position?
        /// The last position that was read, wanted or not.
        var reached: Position?
    }

    /// Writes the wanted lines.
    private func feed(
        _ file: ExportFile?, _ summary: inout Summary, _ progress: Progress
    ) throws {
        var line: [UInt8] = []
        let reader = LogReader(directory, fileSystem: CountingFileSystem(progress))
        let outcome = try reader.forEachLine(from: Position(max(1, from ?? 1))) {
            prefix, stored in
            try Task.checkCancellation()
            if let to, prefix.position.rawValue > to { return false }
            summary.reached = prefix.position
            if let type, try Self.type(of: stored, prefix, directory) != type { return true }
            line.removeAll(keepingCapacity: true)
            prefix.appendExported(stored, to: &line)
            line.append(UInt8(ascii: "\n"))
            if let file { try file.write(line) } else { Stdout.write(json: line) }
            summary.events += 1
            summary.bytes += line.count
            summary.first = summary.first ?? prefix.position
            summary.last = prefix.position
            progress.update(summary.events)
            return true
        }
        if let tail = outcome.tornTail { Message.note(Inspect.words(tail)) }
    }

    private static func type(
        of line: RawSpan, _ prefix: LinePrefix, _ directory: String
    ) throws(LogError) -> String {
        do throws(EventError) {
            return try LineDecoder.decode(line, to: .stored).draft.type
        } catch {
            throw LogError(
                .corrupt, path: directory, positions: prefix.position...prefix.position,
                "the line is not an event: \(error.detail)")
        }
    }

    private func say(_ summary: Summary) {
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
