// Retracted events count as never recorded, for every command that folds a log.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct RetractedEventsTests {
    private static func uuid(_ number: Int) throws -> UUID {
        try #require(UUID(uuidString: AnsweredLog.id(number)))
    }

    /// The checkpoints of the log: none, only from before the retraction, or also from after it.
    enum Checkpoints: CaseIterable { case none, before, both }

    /// Creates the log with a retracted note (1) and a retracted removal of a city (7).
    private func folder(checkpoints: Checkpoints = .none) async throws -> TemporaryFolder {
        let folder = try await AnsweredLog.folder()
        let log = try await AnsweredLog(folder, minute: 1)
        try await log.store.checkpoint()
        let stored = folder.log + "/checkpoints"
        let aside = folder.path + "/checkpoints"
        try FileManager.default.copyItem(atPath: stored, toPath: aside)
        try await log.commands.discard(Self.uuid(1), withDependents: true)
        try await log.commands.discard(Self.uuid(7))
        try await log.store.checkpoint()
        try await log.store.close()
        if checkpoints != .both { try FileManager.default.removeItem(atPath: stored) }
        if checkpoints == .before {
            try FileManager.default.moveItem(atPath: aside, toPath: stored)
        }
        return folder
    }

    @Test(.verifies("TOOL-15")) func `views omit retracted events`() async throws {
        let folder = try await folder()
        defer { folder.remove() }
        let notes = try ToolRun.logtool("views", folder.log, "notes")
        #expect(!notes.output.contains("note-1"))
        #expect(notes.output.contains("note-2"))
        let cities = try ToolRun.logtool("views", folder.log, "cities")
        #expect(cities.output.contains("oslo"))
        #expect(cities.output.contains("bergen"))
        let outbox = try ToolRun.logtool("views", folder.log, "outbox")
        #expect(outbox.output.split(separator: "\n").count == 3)
    }

    @Test(.verifies("TOOL-15"))
    func `views of the past omit events that are retracted later, too`() async throws {
        let folder = try await folder()
        defer { folder.remove() }
        let notes = try ToolRun.logtool("views", folder.log, "notes", "--at", "3")
        #expect(notes.status == 0, "\(notes.messages)")
        #expect(!notes.output.contains("note-1"))
        #expect(notes.output.contains("note-2"))
        let outbox = try ToolRun.logtool("views", folder.log, "outbox", "--at", "8")
        #expect(
            outbox.output.split(separator: "\n").map { $0.prefix(48) }
                == [3, 4, 5, 6, 8].map { "{\"id\":\"\(AnsweredLog.id($0))\",\"ac" })
        #expect(try ToolRun.logtool("views", folder.log, "notes", "--at", "13").status == 65)
    }

    @Test(.verifies("TOOL-15"))
    func `an event that the server has counts again`() async throws {
        let folder = try await folder()
        defer { folder.remove() }
        let log = try await AnsweredLog(folder, minute: 2)
        try await log.store.append(
            record: EventsReinstated(
                by: log.store.incarnation,
                events: [.init(position: Position(1), id: Self.uuid(1))]))
        try await log.store.close()
        let notes = try ToolRun.logtool("views", folder.log, "notes")
        #expect(notes.output.contains("\"content\":\"Kaffe\""))
    }

    @Test(.verifies("TOOL-15")) func `inspect does not count retracted events as pending`()
        async throws
    {
        let folder = try await folder()
        defer { folder.remove() }
        let summary = try ToolRun.logtool("inspect", folder.log)
        #expect(summary.output.contains("\"outbox\":3,"))
        let events = try ToolRun.logtool("inspect", folder.log, "--events", "--unsynced")
        #expect(events.output.split(separator: "\n").count == 3)
    }

    @Test(.verifies("CHK-6", "TOOL-15"), arguments: Checkpoints.allCases)
    func `verify accepts a log with retracted events, also after a compaction`(
        checkpoints: Checkpoints
    ) async throws {
        let folder = try await folder(checkpoints: checkpoints)
        defer { folder.remove() }
        let before = try ToolRun.logtool("views", folder.log)
        let first = try ToolRun.logtool("verify", folder.log)
        #expect(first.status == 0, "\(first.output)\(first.messages)")
        #expect(first.output.isEmpty, "\(first.output)\(first.messages)")
        #expect(first.messages.contains("stored states compared") == (checkpoints != .none))
        #expect(try ToolRun.logtool("compact", folder.log, "--dry-run").status == 0)
        #expect(try ToolRun.logtool("compact", folder.log).status == 0)
        let second = try ToolRun.logtool("verify", folder.log)
        #expect(second.status == 0, "\(second.output)\(second.messages)")
        #expect(second.output.isEmpty, "\(second.output)\(second.messages)")
        #expect(try ToolRun.logtool("views", folder.log).output == before.output)
    }
}
