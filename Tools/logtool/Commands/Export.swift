// logtool export: everything a log holds, as the lines that were stored.

import ArgumentParser
import Daybook
import Foundation
import LogFormat
import LogStorage

struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes a log's events as lines of JSON.",
        discussion: """
            One event a line, in order, byte for byte as it is stored; only the place that a line \
            from elsewhere has in this log is left out. The file appears when it is complete. \
            `logtool import` reads it again. A damaged log gives what is intact before the damage, \
            and exit code 65.

            Example: logtool export ./log events.ndjson
            """)

    @Argument(help: "The log's folder.")
    var directory: String
    @Argument(help: "The file to write, or - for standard output.")
    var destination: String
    @Option(help: "From this position on.")
    var from: UInt64?
    @Option(help: "Up to this position.")
    var to: UInt64?
    @Option(help: "Events of this type only.")
    var type: String?
    @Flag(help: "Replace a file that is there.")
    var force = false
    @OptionGroup var output: OutputOptions

    func run() async throws {
        try await Exit.mapping { try work() }
    }

    private func work() throws {
        // A log that is not there must not cost a file.
        let reader = LogReader(directory)
        _ = try reader.files()
        let sink = destination == "-" ? nil : try ExportFile(destination, replacing: force)
        var events = 0
        var bytes = 0
        let progress = Progress("exported")
        var damage: LogError?
        do {
            let outcome = try reader.forEachLine(from: Position(max(1, from ?? 1))) {
                prefix, line in
                if let to, prefix.position.rawValue > to { return false }
                if let type,
                    try LogReader.event(line, OfflineModel.catalogue, directory: directory).type
                        != type
                {
                    return true
                }
                let text = prefix.exported(line) + [UInt8(ascii: "\n")]
                if let sink { try sink.write(text) } else { Stdout.write(text) }
                events += 1
                bytes += text.count
                progress.update(events)
                return true
            }
            if let tail = outcome.tornTail { Message.note(Inspect.words(tail)) }
        } catch let error as LogError where error.code == .corrupt {
            damage = error
        }
        progress.finish()
        try sink?.finish()
        if sink == nil {
            Stdout.flush()
            Message.note("exported \(events) events, \(bytes) bytes")
        } else {
            var row = ViewRow()
            row.add("exported", events)
            row.add("bytes", bytes)
            RowWriter.writeSummary(row, output.format)
        }
        if let damage {
            Message.error(
                "\(damage.description). Only what comes before it was exported; `logtool repair` "
                    + "makes what is intact behind it readable")
            throw Exit.badData
        }
    }
}

/// A file that appears under its name when it is complete.
private final class ExportFile {
    private let path: String
    private let partial: String
    private let fileSystem = POSIXFileSystem()
    private let file: any File
    private var buffer: [UInt8] = []
    private var offset = 0

    private static let bufferBytesMax = 256 * 1024

    init(_ path: String, replacing: Bool) throws {
        self.path = path
        partial = "\(path).\(UUID().uuidString).partial"
        guard replacing || !FileManager.default.fileExists(atPath: path) else {
            Message.error("\(path) exists. Name another file, or add --force to replace it")
            throw Exit.io
        }
        file = try fileSystem.open(partial, .createNew)
    }

    deinit {
        // After `finish` there is none.
        try? fileSystem.remove(partial)
    }

    func write(_ bytes: [UInt8]) throws {
        buffer += bytes
        if buffer.count >= Self.bufferBytesMax { try flush() }
    }

    private func flush() throws {
        try file.write(buffer, at: offset)
        offset += buffer.count
        buffer.removeAll(keepingCapacity: true)
    }

    /// Durable, under its name, on return.
    func finish() throws {
        try flush()
        try file.sync()
        try fileSystem.rename(partial, to: path)
        let folder = URL(filePath: path).deletingLastPathComponent().path
        try fileSystem.syncDirectory(folder)
    }
}
