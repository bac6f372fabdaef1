// logtool why for events with little history, and after compaction.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogFormat
import TestSupport
import Testing

@Suite struct WhyTests {
    private func why(_ folder: TemporaryFolder, _ id: String) throws -> ToolRun {
        try ToolRun.logtool("why", folder.log, id)
    }

    /// The steps, in order.
    private func steps(_ run: ToolRun) throws -> [String] {
        try run.output.split(separator: "\n").map { line in
            let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(row?["what"] as? String)
        }
    }

    @Test(.verifies("TOOL-2", "TOOL-22")) func `an unknown id is 66, and an invalid id is 64`()
        async throws
    {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        let run = try why(folder, AnsweredLog.id(99))
        #expect(run.status == 66)
        #expect(run.output.isEmpty)
        #expect(run.messages.contains(AnsweredLog.id(99)))
        #expect(try why(folder, "note-1").status == 64)
        #expect(try ToolRun.logtool("why", "/nowhere/at-all", AnsweredLog.id(1)).status == 66)
    }

    @Test(.verifies("TOOL-3", "TOOL-22")) func `why works beside a writer`() async throws {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        let log = try await AnsweredLog(folder, minute: 1)
        #expect(try why(folder, AnsweredLog.id(8).uppercased()).status == 0)
        try await log.store.close()
    }

    @Test(.verifies("TOOL-22")) func `an event that stays on the device is not pending`()
        async throws
    {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        let last = try ToolRun.logtool("inspect", folder.log, "--events", "--from", "10").output
        let record = try LineDecoder.decode(
            Array(last.utf8.dropLast()).span.bytes
        ).draft
        let run = try why(folder, record.id.uuidString)
        #expect(try steps(run) == ["recorded", "now"])
        #expect(run.output.contains("\"status\":null"))
    }

    @Test(.verifies("TOOL-22"))
    func `a conflict that was decided for the server has no replacement`()
        async throws
    {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        _ = try ToolRun.logtool(
            "parked", [folder.log, "--resolve", AnsweredLog.id(4), "--keep", "theirs"])
        let run = try why(folder, AnsweredLog.id(5))
        #expect(try steps(run) == ["recorded", "base", "superseded", "now"])
        #expect(run.output.contains("the server's state wins"))
    }

    @Test(.verifies("TOOL-22")) func `one event can replace several`() async throws {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        let log = try await AnsweredLog(folder, minute: 1)
        let merged = try EventDraft(
            NoteUpdated(noteId: "note-2", content: "both", updatedBy: "ada"))
        let id = try #require(UUID(uuidString: AnsweredLog.id(4)))
        try await log.commands.resolve(id, .replace([merged]))
        try await log.store.close()
        for number in [4, 5] {
            let run = try why(folder, AnsweredLog.id(number))
            #expect(try steps(run).suffix(3) == ["superseded", "replacement", "now"])
            #expect(run.output.contains("and others of its lane") == (number == 5))
        }
    }

    @Test(.verifies("TOOL-22"), arguments: ["", "\u{0}", "\u{0}x", "x"])
    func `an event replaces another if it names exactly its id`(
        rest: String
    ) async throws {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        let log = try await AnsweredLog(folder, minute: 1)
        var other = try EventDraft(NoteUpdated(noteId: "note-9", content: "x", updatedBy: "ada"))
        other.extensions = [.init(name: "causationid", string: AnsweredLog.id(6) + rest)]
        try await log.store.append(contentsOf: [other])
        try await log.store.close()
        let steps = try steps(why(folder, AnsweredLog.id(6)))
        #expect(steps.contains("replacement") == rest.isEmpty)
    }

    @Test(.verifies("TOOL-22")) func `why reports removed events and summarized attempts`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = try await AnsweredLog(folder)
        try await log.append(
            [
                NoteAdded(noteId: "note-1", cityId: "oslo", content: "1", createdBy: "ada"),
                NoteUpdated(noteId: "note-1", content: "2", updatedBy: "ada"),
                NoteUpdated(noteId: "note-1", content: "3", updatedBy: "ada"),
                CitySaved(userId: "ada", cityId: "oslo"),
            ], from: 1)
        try await log.answer([try AnsweredLog.entry(4, .retry, 1, code: "busy")])
        try await log.answer(applied: [1...3])
        try await log.answer([try AnsweredLog.entry(4, .retry, 2, code: "busy")])
        try await log.store.close()
        let compaction = try ToolRun.logtool("compact", folder.log)
        try #require(compaction.status == 0, "\(compaction.messages)")
        #expect(try steps(why(folder, AnsweredLog.id(1))) == ["recorded", "settled", "now"])
        #expect(try steps(why(folder, AnsweredLog.id(2))) == ["removed"])
        let waiting = try why(folder, AnsweredLog.id(4))
        #expect(try steps(waiting) == ["recorded", "retry", "now"])
        #expect(waiting.output.contains("earlier attempts were summed up"))
        #expect(waiting.output.contains("\"retryCount\":2"))
    }
}
