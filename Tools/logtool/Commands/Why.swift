// logtool why: what became of one event, and what it waits for.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage

struct Why: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tells what became of one event.",
        discussion: """
            Prints in order when it was recorded, what the server has said of it, what somebody \
            decided on it, and at last how it stands and what it waits for. Reads without the log's \
            lock, so a writer may go on.

            Example: logtool why ./log 6f1c2a9e-0b1d-4c55-9a27-1d0f4be7a001
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Argument(help: "The event's id.")
    var id: String
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard UUID(uuidString: id) != nil else { throw ValidationError("\(id) is not a UUID.") }
    }

    func run() async throws {
        try await Exit.mapping { try work() }
    }

    private func work() throws {
        guard let id = UUID(uuidString: id) else { return }
        var story = try read(id)
        // Compaction may have taken it out between the two looks.
        if !story.isKnown { story = try read(id) }
        guard story.isKnown else {
            Message.error(
                "no event of the log has the id \(id.text); of one that compaction took out more "
                    + "than 90 days ago nothing is known")
            throw Exit.noLog
        }
        var writer = RowWriter(output.format, cutsLastColumn: false)
        for step in story.steps { write(step, &writer) }
        writer.finish()
    }

    private func read(_ id: UUID) throws -> EventStory {
        let progress = Progress("read", of: .bytes(LogReader(directory).bytesToRead()))
        defer { progress.finish() }
        let reader = LogReader(directory, fileSystem: CountingFileSystem(progress))
        var story = EventStory(
            of: id, removed: try reader.removed(id: id.integer, now: LogEnvironment.systemTime()))
        let outcome = try reader.forEachEvent(catalogue: OfflineModel.catalogue) { event in
            story.fold(event)
            progress.update(Int(clamping: event.position.rawValue))
            return true
        }
        story.finish()
        if story.isKnown, let tail = outcome.tornTail { Message.note(Inspect.words(tail)) }
        return story
    }

    private func write(_ step: EventStory.Step, _ writer: inout RowWriter) {
        var row = ViewRow()
        row.add("position", raw: step.position.map { Array("\($0)".utf8) })
        row.add("time", step.time?.description)
        row.add("what", step.what.rawValue)
        row.add("detail", step.detail)
        guard output.format == .table else {
            for field in step.facts.fields { row.add(field.name, raw: field.json) }
            return writer.write(row)
        }
        writer.write(row)
        // Only what people cannot read in the words.
        for field in step.facts.fields where field.name.hasPrefix("data") {
            var row = ViewRow()
            row.add("position", raw: nil)
            row.add("time", nil)
            row.add("what", "data")
            row.add("detail", raw: field.json)
            writer.write(row)
        }
    }
}
