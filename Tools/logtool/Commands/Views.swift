// logtool views: rebuilds views and prints their rows, at the end of the log or at a position.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct Views: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Rebuilds a view and prints it, one object a row.",
        discussion: """
            Without a name it prints all views, each row with the view's name.

            Views: \(names.joined(separator: ", ")).

            Example: logtool views ./log notes --at 1000
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Argument(
        help: "The view: cities, notes, … as above.",
        completion: .list(Self.names))
    var name: String?
    @Option(help: "The state at this position instead of the newest.")
    var at: UInt64?
    @OptionGroup var output: OutputOptions

    private static var names: [String] { OfflineModel.views.map { $0.name } + [Outbox.name] }

    func validate() throws {
        if let name, !Self.names.contains(name) {
            throw ValidationError(
                "There is no view \"\(name)\". Views: \(Self.names.joined(separator: ", ")).")
        }
    }

    func run() async throws {
        try await Exit.mapping { try work() }
    }

    private func work() throws {
        let progress = Progress("folded", of: .bytes(LogReader(directory).bytesToRead()))
        let reader = LogReader(directory, fileSystem: CountingFileSystem(progress))
        try refuseCompactedPosition(reader)
        let wantsOutbox = name == nil || name == Outbox.name
        let ((states, outbox), outcome) = try reader.fold(
            through: at.map { Position($0) }, catalogue: OfflineModel.catalogue,
            from: {
                let views = OfflineModel.views.filter { name == nil || name == $0.name }
                return (views.map { $0.init() as any ListableView }, Outbox())
            }
        ) { state, event in
            let event = OfflineModel.catalogue.newestForm(of: event)
            for index in state.0.indices { state.0[index].fold(event) }
            if wantsOutbox { state.1.fold(event) }
            progress.update(Int(clamping: event.position.rawValue))
        }
        progress.finish()
        if let tail = outcome.tornTail { Message.note(Inspect.message(for: tail)) }
        // Again, because a compaction may have run while the log was read.
        try refuseCompactedPosition(reader)
        // The last position counts also if compaction has removed its line.
        if let at, at > outcome.last.rawValue {
            Message.error(
                "the log ends at position \(outcome.last); there is no state at \(at) yet")
            throw Exit.badData
        }
        var rows: [ViewRow] = []
        for state in states {
            guard let filled = try insertEventData(Array(state.rows()), reader) else {
                // Compaction has removed a replaced value between the passes.
                return try work()
            }
            rows += filled.map { named(Swift.type(of: state).name, $0) }
        }
        var writer = RowWriter(output.format)
        for row in rows { writer.write(row) }
        if wantsOutbox { try list(outbox, reader, &writer) }
        writer.finish()
    }

    /// Inserts the values that are stored in events, with one more pass over the log if there are any.
    ///
    /// - Returns: nil if an event is no longer in the log.
    private func insertEventData(_ rows: [ViewRow], _ reader: LogReader) throws -> [ViewRow]? {
        let wanted = Set(rows.flatMap { $0.fields.compactMap(\.source?.event) })
        guard !wanted.isEmpty else { return rows }
        var data: [UUID: [UInt8]] = [:]
        try reader.forEachEvent(from: Position(1), catalogue: OfflineModel.catalogue) { event in
            if wanted.contains(event.id) {
                data[event.id] = OfflineModel.catalogue.newestForm(of: event).content.json
            }
            return data.count < wanted.count
        }
        return data.count == wanted.count ? rows.map { $0.filled { data[$0] } } : nil
    }

    /// Refuses a position before `compactedThrough`: its state would lack values replaced since then.
    private func refuseCompactedPosition(_ reader: LogReader) throws {
        guard let at else { return }
        let through = try reader.compactedThrough()
        guard at < through.rawValue else { return }
        Message.error(
            "the log is compacted through position \(through); the state at \(at) can no longer be "
                + "rebuilt")
        throw Exit.badData
    }

    private func named(_ view: String, _ row: ViewRow) -> ViewRow {
        guard name == nil else { return row }
        var result = ViewRow()
        result.appendField("view", view)
        for field in row.fields { result.appendField(field.name, raw: field.json) }
        return result
    }

    /// Writes the outbox with the data of its events, which the view does not contain.
    private func list(
        _ outbox: Outbox, _ reader: LogReader, _ writer: inout RowWriter
    ) throws {
        var entries = outbox.entries.makeIterator()
        guard var entry = entries.next() else { return }
        try reader.forEachEvent(
            from: entry.position, catalogue: OfflineModel.catalogue
        ) { event in
            guard event.position == entry.position else { return true }
            writer.write(named(Outbox.name, entry.row(data: event.content.json)))
            guard let next = entries.next() else { return false }
            entry = next
            return true
        }
    }
}
