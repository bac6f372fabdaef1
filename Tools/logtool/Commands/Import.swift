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

    private static let inferredBytes = 120
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
        var source = try LineSource(file)
        let store = try await ToolStore.open(directory, account: account, create: true)
        if let tail = store.recovery.tornTail {
            Message.note(
                "note: \(tail.byteCount) bytes of an unfinished write were cut and kept as "
                    + (tail.quarantinedAs ?? "nothing"))
        }
        var result = Result()
        let progress = Progress("imported", of: source.totalBytes.map(Progress.Total.bytes))
        do {
            try await feed(&source, store, &result, progress)
        } catch {
            progress.finish()
            try? await store.close()
            throw error
        }
        progress.finish()
        try await store.close()
        if result.records > 0 {
            Message.note(
                "skipped \(result.records) records of syncing (\(LogRecord.typePrefix)…): they speak of "
                    + "positions in the log that wrote them. What was sent or discarded there waits "
                    + "here to be sent")
        }
        var row = ViewRow()
        row.add("appended", result.appended)
        row.add("skipped", result.skipped + result.records)
        row.add("lines", source.number)
        if ack {
            Message.note(
                "appended \(result.appended), skipped \(result.skipped) that were known")
        } else {
            RowWriter.writeSummary(row, output.format)
        }
    }

    private struct Result {
        var appended = 0
        var skipped = 0
        /// Records of another log's syncing, or of another life of this one.
        var records = 0
    }

    /// Reads, checks and appends; a bad line first lets what came before it in.
    private func feed(
        _ source: inout LineSource, _ store: EventStore, _ result: inout Result,
        _ progress: Progress
    ) async throws {
        var drafts: [EventDraft] = []
        var numbers: [Int] = []
        var bytes = 0
        while true {
            let draft: EventDraft?
            let lineBytes: Int
            do {
                guard let line = try source.next() else { break }
                lineBytes = line.count
                draft = try Self.draft(line)
            } catch {
                // What came before is in, whatever is wrong with what comes now.
                try await append(drafts, numbers, store, &result)
                guard let error = error as? EventError else { throw error }
                throw Self.stop(source.number, error)
            }
            guard let draft else { continue }
            guard !LogRecord.isType(draft.type) else {
                result.records += 1
                continue
            }
            // A line grows by what the log adds to it.
            let size = lineBytes + Self.inferredBytes
            if bytes + size > WriterSizes.commitPlaintextBytesMax {
                try await append(drafts, numbers, store, &result)
                drafts = []
                numbers = []
                bytes = 0
            }
            drafts.append(draft)
            numbers.append(source.number)
            bytes += size
            if drafts.count == batch ?? Self.batchDefault {
                try await append(drafts, numbers, store, &result)
                drafts = []
                numbers = []
                bytes = 0
                progress.update(result.appended + result.skipped, bytes: source.readBytes)
            }
        }
        try await append(drafts, numbers, store, &result)
    }

    /// The event of a line; nil for an empty one.
    private static func draft(_ line: [UInt8]) throws(EventError) -> EventDraft? {
        guard line.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }) else { return nil }
        var draft = try LineDecoder.decode(line.span.bytes).draft
        try OfflineModel.catalogue.normalise(&draft)
        return draft
    }

    private static func stop(_ line: Int, _ error: EventError) -> ExitCode {
        Message.error("line \(line): \(error.detail). What came before it was imported")
        return Exit.badData
    }

    /// Appends events in one commit if they are all accepted and fit; else finds the one that is
    /// refused, and lets those before it in.
    private func append(
        _ drafts: [EventDraft], _ numbers: [Int], _ store: EventStore, _ result: inout Result
    ) async throws {
        guard !drafts.isEmpty else { return }
        do {
            count(try await store.append(history: drafts), &result)
        } catch let error as EventError {
            guard drafts.count > 1 else { throw Self.stop(numbers[0], error) }
            let middle = drafts.count / 2
            try await append(
                Array(drafts[..<middle]), Array(numbers[..<middle]), store, &result)
            try await append(
                Array(drafts[middle...]), Array(numbers[middle...]), store, &result)
        }
    }

    private func count(_ appended: [Appended], _ result: inout Result) {
        for one in appended {
            if one.isNew { result.appended += 1 } else { result.skipped += 1 }
            if ack {
                Stdout.write(Array("\(one.id.uuidString.lowercased()) \(one.position)\n".utf8))
            }
        }
        if ack { Stdout.flush() }
    }
}
