// logtool why: prints the history of one event, and what it waits for.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage

struct Why: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the history of one event.",
        discussion: """
            Prints in order when the event was recorded, the server's answers, the decisions on \
            it, and last its present state and what it waits for. Reads without the log's lock, so \
            a writer may continue.

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
        let result = try EventStory.read(
            of: id, in: directory, CountingFileSystem(progress), catalogue: OfflineModel.catalogue,
            now: LogEnvironment.systemTime()
        ) { event in progress.update(Int(clamping: event.position.rawValue)) }
        progress.finish()
        guard let (story, tornTail) = result else {
            Message.error(
                "no event of the log has the id \(id.text), or compaction removed it more than 90 "
                    + "days ago")
            throw Exit.noLog
        }
        if let tornTail { Message.note(Message.text(for: tornTail)) }
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

    /// Writes the event, and the events that it replaces or is based on.
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
            write("replaces", "it replaces the event \(id)", facts: ViewRow(id: id), to: &writer)
        }
        if let id = story.baseID {
            let base = id == EventDraft.noBase.text ? "no value" : "the event \(id)"
            write("base", "it was made on top of \(base)", facts: ViewRow(id: id), to: &writer)
        }
    }

    private func write(
        _ what: String, _ detail: String, at position: Position? = nil, _ time: Timestamp? = nil,
        facts: ViewRow = ViewRow(), to writer: inout RowWriter
    ) {
        var row = ViewRow()
        row.appendField("position", raw: position.map { Array("\($0)".utf8) })
        row.appendField("time", time?.description)
        row.appendField("what", what)
        row.appendField("detail", detail)
        guard output.format == .table else {
            for field in facts.fields { row.appendField(field.name, raw: field.json) }
            return writer.write(row)
        }
        writer.write(row)
        // The detail contains the other facts.
        for field in facts.fields where field.name.hasPrefix("data") {
            var row = ViewRow()
            row.appendField("position", raw: nil)
            row.appendField("time", nil)
            row.appendField("what", "data")
            row.appendField("detail", raw: field.json)
            writer.write(row)
        }
    }
}

// MARK: Facts for JSON

extension ViewRow {
    fileprivate init(id: String) {
        self.init()
        appendField("id", id)
    }
}

extension Event {
    fileprivate var facts: ViewRow {
        var facts = ViewRow()
        facts.appendField("type", type)
        facts.appendField("subject", subject)
        facts.appendField("lane", lane)
        facts.appendField("source", "urn:uuid:\(source.text)")
        facts.appendField("sequence", Int(clamping: sequence))
        facts.appendField("own", isOwn)
        if case .base64(let text) = content.data {
            facts.appendField("data_base64", raw: text)
        } else {
            facts.appendField("data", raw: content.json)
        }
        return facts
    }
}

extension EventStory.Step {
    fileprivate var facts: ViewRow {
        var facts = ViewRow()
        if let verdict {
            facts.appendField("code", verdict.code)
            facts.appendField("message", verdict.message)
            facts.appendField("retryCount", verdict.retryCount)
        }
        if let replacement {
            facts.appendField("id", replacement.id.text)
            facts.appendField("type", replacement.type)
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
        case .settled: facts.appendField("status", "SUCCESS")
        case .pending(_, let first):
            facts.appendField("status", OutboxEntry.Status.pending.rawValue)
            if let first { facts.appendField("behind", first.id.text) }
        case .parked(let next):
            facts.appendField("status", OutboxEntry.Status.failed.rawValue)
            if let next { facts.appendField("nextAttemptAt", next.description) }
        case .setAside(let next):
            facts.appendField("status", OutboxEntry.Status.failed.rawValue)
            facts.appendField("nextAttemptAt", next.description)
        case .conflict: facts.appendField("status", OutboxEntry.Status.conflict.rawValue)
        case .retracted, .received, .local, .unknownType, .removed: facts.appendField("status", nil)
        }
        return facts
    }
}
