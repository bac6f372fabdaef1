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
        try EventData.refuseCompacted(at, reader)
        let wantsOutbox = name == nil || name == Outbox.name
        let catalogue = reader.modelCatalogue
        let ((states, outbox), outcome) = try reader.fold(
            through: at.map { Position($0) }, catalogue: catalogue,
            from: {
                let views = OfflineModel.views.filter { name == nil || name == $0.name }
                return (views.map { $0.init() as any ListableView }, Outbox())
            }
        ) { state, event in
            let event = catalogue.newestForm(of: event)
            for index in state.0.indices { state.0[index].fold(event) }
            if wantsOutbox { state.1.fold(event) }
            progress.update(Int(clamping: event.position.rawValue))
        }
        progress.finish()
        if let tail = outcome.tornTail { Message.note(Message.text(for: tail)) }
        // Again, because a compaction may have run while the log was read.
        try EventData.refuseCompacted(at, reader)
        // The last position counts also if compaction has removed its line.
        if let at, at > outcome.last.rawValue {
            Message.error(
                "the log ends at position \(outcome.last); there is no state at \(at) yet")
            throw Exit.badData
        }
        var rows: [ViewRow] = []
        for state in states {
            var first = Position(1)
            guard
                let filled = try EventData.insert(
                    into: Array(state.rows()), reader, from: &first)
            else {
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

    private func named(_ view: String, _ row: ViewRow) -> ViewRow {
        guard name == nil else { return row }
        var result = ViewRow()
        result.appendField("view", view)
        for field in row.fields { result.appendField(field.name, raw: field.json) }
        return result
    }

    private func list(
        _ outbox: Outbox, _ reader: LogReader, _ writer: inout RowWriter
    ) throws {
        try EventData.forEachEntry(of: outbox, reader) { entry, data in
            writer.write(named(Outbox.name, entry.row(data: data)))
        }
    }
}
