// logtool why: what became of one event, and what it waits for.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage

struct Why: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tells what became of one event.",
        discussion: """
            Prints in order when it was recorded, what the server has said of it, what was \
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
        let progress = Progress("read", of: .bytes(LogReader(directory).bytesToRead()))
        defer { progress.finish() }
        let found = try EventStory.read(
            of: id, in: directory, CountingFileSystem(progress), catalogue: OfflineModel.catalogue,
            now: LogEnvironment.systemTime()
        ) { event in progress.update(Int(clamping: event.position.rawValue)) }
        progress.finish()
        guard let (story, tornTail) = found else {
            Message.error(
                "no event of the log has the id \(id.text); of one that compaction took out more "
                    + "than 90 days ago nothing is known")
            throw Exit.noLog
        }
        if let tornTail { Message.note(Inspect.words(tornTail)) }
        var writer = RowWriter(output.format, cutsLastColumn: false)
        writeOrigin(of: story, to: &writer)
        for step in story.steps {
            write(
                step.kind.rawValue, step.description, at: step.position, step.time,
                facts: step.facts, to: &writer)
        }
        if story.event != nil {
            write("now", story.status.detail, facts: story.status.facts, to: &writer)
        }
        writer.finish()
    }

    /// The event itself, and what caused it.
    private func writeOrigin(of story: EventStory, to writer: inout RowWriter) {
        guard let event = story.event else {
            return write("removed", story.status.detail, at: story.position, to: &writer)
        }
        let origin =
            event.isOwn
            ? "made here"
            : "made elsewhere, as event \(event.sequence) of urn:uuid:\(event.source.text)"
        let subject = event.subject.map { " about \($0)" } ?? ""
        write(
            "recorded", "\(event.type)\(subject), in the lane \(event.lane), \(origin)",
            at: event.position, event.time, facts: event.facts, to: &writer)
        if let id = story.replacedID {
            write("replaces", "it stands for the event \(id)", facts: ViewRow(id: id), to: &writer)
        }
        if let id = story.baseID {
            write(
                "base", "it was made on top of the event \(id)", facts: ViewRow(id: id), to: &writer
            )
        }
    }

    private func write(
        _ what: String, _ detail: String, at position: Position? = nil, _ time: Timestamp? = nil,
        facts: ViewRow = ViewRow(), to writer: inout RowWriter
    ) {
        var row = ViewRow()
        row.add("position", raw: position.map { Array("\($0)".utf8) })
        row.add("time", time?.description)
        row.add("what", what)
        row.add("detail", detail)
        guard output.format == .table else {
            for field in facts.fields { row.add(field.name, raw: field.json) }
            return writer.write(row)
        }
        writer.write(row)
        // Only what people cannot read in the words.
        for field in facts.fields where field.name.hasPrefix("data") {
            var row = ViewRow()
            row.add("position", raw: nil)
            row.add("time", nil)
            row.add("what", "data")
            row.add("detail", raw: field.json)
            writer.write(row)
        }
    }
}

// MARK: What programs read

extension ViewRow {
    fileprivate init(id: String) {
        self.init()
        add("id", id)
    }
}

extension Event {
    fileprivate var facts: ViewRow {
        var facts = ViewRow()
        facts.add("type", type)
        facts.add("subject", subject)
        facts.add("lane", lane)
        facts.add("source", "urn:uuid:\(source.text)")
        facts.add("sequence", Int(clamping: sequence))
        facts.add("own", isOwn)
        if case .base64(let text) = content.data {
            facts.add("data_base64", raw: text)
        } else {
            facts.add("data", raw: content.json)
        }
        return facts
    }
}

extension EventStory.Step {
    fileprivate var facts: ViewRow {
        var facts = ViewRow()
        if let verdict {
            facts.add("code", verdict.code)
            facts.add("message", verdict.message)
            facts.add("retryCount", verdict.retryCount)
        }
        if let replacement {
            facts.add("id", replacement.id.text)
            facts.add("type", replacement.type)
        }
        return facts
    }
}

extension EventStory.Status {
    /// The description, with the command that decides.
    fileprivate var detail: String {
        switch self {
        case .parked(nil), .conflict: "\(self): see logtool parked"
        default: description
        }
    }

    fileprivate var facts: ViewRow {
        var facts = ViewRow()
        switch self {
        case .settled: facts.add("status", "SUCCESS")
        case .pending(_, let first):
            facts.add("status", OutboxEntry.Status.pending.rawValue)
            if let first { facts.add("behind", first.id.text) }
        case .parked(let next):
            facts.add("status", OutboxEntry.Status.failed.rawValue)
            if let next { facts.add("nextAttemptAt", next.description) }
        case .conflict: facts.add("status", OutboxEntry.Status.conflict.rawValue)
        case .retracted, .received, .local, .unknownType, .removed: facts.add("status", nil)
        }
        return facts
    }
}
