// logtool inspect: prints a summary of a log, or its events.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct Inspect: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what a log holds.",
        discussion: """
            Reads without the log's lock, so a writer may continue. With --events it lists the \
            events themselves, as they are stored.

            Example: logtool inspect ./log --events --type daybook.note.added --limit 10
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Flag(help: "List the events instead of a summary.")
    var events = false
    @Option(help: "From this position on.")
    var from: UInt64?
    @Option(help: "Up to this position.")
    var to: UInt64?
    @Option(help: "Events of this type only.")
    var type: String?
    @Option(help: "Events about this subject only.")
    var subject: String?
    @Option(help: "The event with this id only.")
    var id: String?
    @Flag(help: "Events that the server has not settled only.")
    var unsynced = false
    @Option(help: "The most events to list.")
    var limit: Int?
    @Flag(help: "Continue to list events as they are appended, until interrupted.")
    var follow = false
    @OptionGroup var output: OutputOptions

    private static let followPause = Duration.milliseconds(200)

    func validate() throws {
        let filters =
            from != nil || to != nil || type != nil || subject != nil || id != nil || unsynced
            || limit != nil || follow
        guard events || !filters else {
            throw ValidationError("--from, --to, --type, … select events: add --events.")
        }
        if let id, UUID(uuidString: id) == nil {
            throw ValidationError("--id must be a UUID.")
        }
        if let limit, limit < 0 { throw ValidationError("--limit must be at least 0.") }
        if follow, unsynced {
            throw ValidationError("--unsynced cannot be used with --follow.")
        }
        if follow, output.output == .json || output.output == .table {
            throw ValidationError("--follow has no end: use --output ndjson.")
        }
    }

    func run() async throws {
        try await Exit.mapping {
            guard events else { return try summarise() }
            guard follow else { return try await list() }
            do {
                try await Interruption.result { try await list() }.get()
            } catch is CancellationError {}
        }
    }

    // MARK: Events

    private func list() async throws {
        let reader = LogReader(directory)
        var wanted: Set<Position>?
        if unsynced {
            var outbox = Outbox()
            let catalogue = reader.modelCatalogue
            try reader.forEachEvent(catalogue: catalogue) { event in
                outbox.fold(event)
                return true
            }
            wanted = Set(outbox.entries.map(\.position))
        }
        let target = id.flatMap(UUID.init(uuidString:))?.integer
        let first = Position(max(1, from ?? 1))
        var writer = RowWriter(follow ? .ndjson : output.format)
        defer { writer.finish() }
        var last = first.advanced(by: -1)
        var count = 0
        var isOver = limit == 0 || to.map { $0 < first.rawValue } ?? false
        func visit(_ prefix: LinePrefix, _ line: RawSpan) throws -> Bool {
            last = prefix.position
            if let to, last.rawValue >= to { isOver = true }
            if let to, last.rawValue > to { return false }
            if let target, prefix.id != target { return !isOver }
            if let wanted, !wanted.contains(prefix.position) { return !isOver }
            let event = try LogReader.event(line, OfflineModel.catalogue, directory: directory)
            if let type, event.type != type { return !isOver }
            if let subject, event.subject != subject { return !isOver }
            writer.write(row(event, line))
            count += 1
            if count == limit { isOver = true }
            return !isOver
        }
        // Also with an empty selection, so that a missing log is an error.
        let outcome = try reader.forEachLine(from: first) { try !isOver && visit($0, $1) }
        guard follow else {
            if let tail = outcome.tornTail { Message.note(Message.text(for: tail)) }
            return
        }
        var cursor = LogCursor(directory, after: last)
        while !isOver {
            Stdout.flush()
            Stdout.requireReader()
            try await Task.sleep(for: Self.followPause)
            try cursor.poll(visit)
        }
    }

    private func row(_ event: Event, _ line: RawSpan) -> ViewRow {
        var row = ViewRow()
        if output.format == .table, !follow {
            row.appendField("position", Int(clamping: event.position.rawValue))
            row.appendField("time", event.time.description)
            row.appendField("type", event.type)
            row.appendField("subject", event.subject)
            row.appendField("data", raw: event.content.json)
            return row
        }
        return ViewRow(line: line)
    }

    // MARK: Summary

    private func summarise() throws {
        let progress = Progress("read", of: .bytes(LogReader(directory).bytesToRead()))
        var plot = LogPlot()
        var count = 0
        let log = try LogStatistics(
            of: directory, CountingFileSystem(progress), catalogue: OfflineModel.catalogue
        ) { event in
            count += 1
            plot.add(event)
            progress.update(count)
        }
        progress.finish()
        if let tail = log.tornTail { Message.note(Message.text(for: tail)) }
        var row = ViewRow()
        row.appendField("log", log.logID.text)
        row.appendField("account", log.account)
        row.appendField("segments", log.segments)
        row.appendField("events", log.events)
        row.appendField("first", raw: log.positions.map { Array("\($0.lowerBound)".utf8) })
        row.appendField("last", raw: log.positions.map { Array("\($0.upperBound)".utf8) })
        row.appendField("bytes", log.diskBytes)
        row.appendField("plaintextBytes", log.lineBytes)
        row.appendField(
            "ratio", raw: Array("\((log.compressionRatio * 100).rounded() / 100)".utf8))
        row.appendField("oldest", log.times?.lowerBound.description)
        row.appendField("newest", log.times?.upperBound.description)
        row.appendField("outbox", log.unsynced)
        if log.withoutRule > 0 { row.appendField("withoutRule", log.withoutRule) }
        row.appendField("open", log.isOpen)
        appendCheckpoints(of: log, to: &row)
        guard output.format == .table else {
            var counts = ViewRow()
            var amounts = ViewRow()
            for (type, amount) in log.types.sorted(by: { $0.key < $1.key }) {
                counts.appendField(type, amount.events)
                var both = ViewRow()
                both.appendField("events", amount.events)
                both.appendField("bytes", amount.lineBytes)
                amounts.appendField(type, raw: both.json)
            }
            row.appendField("types", raw: counts.json)
            row.appendField("byType", raw: amounts.json)
            return RowWriter.writeSummary(row, output.format)
        }
        RowWriter.writeSummary(row, .table)
        let lines = plot.lines(
            types: log.types, columns: Terminal.columns(STDOUT_FILENO), isUTF8: Terminal.isUTF8)
        for line in lines.isEmpty ? [] : [""] + lines { Stdout.write(Array((line + "\n").utf8)) }
        Stdout.flush()
    }

    /// Appends the position of each stored state, and the number of positions folded after it.
    private func appendCheckpoints(of log: LogStatistics, to row: inout ViewRow) {
        let checkpoints = log.checkpoints.map { checkpoint in
            var row = ViewRow()
            row.appendField("slot", checkpoint.slot)
            switch checkpoint.content {
            case .states(let position, let time):
                row.appendField("position", Int(clamping: position.rawValue))
                row.appendField("behind", max(0, position.distance(to: log.last)))
                row.appendField("time", time.description)
            case .unusable(let reason):
                row.appendField("bad", reason)
            }
            return row
        }
        guard output.format == .table else {
            return row.appendField(
                "checkpoints", raw: JSONObjectWriter.array(checkpoints.map(\.json)))
        }
        let cells = checkpoints.map { row in
            row.fields.map { "\($0.name) \(Table.cell($0.json))" }.joined(separator: " ")
        }
        row.appendField("checkpoints", cells.joined(separator: ", "))
    }
}
