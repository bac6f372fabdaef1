// logtool replay in both directions, and a clock that a server has corrected.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct ReceivingTests {
    private func importing(_ payload: some EventPayload, _ folder: TemporaryFolder) throws {
        let data = String(decoding: try payload.json(), as: UTF8.self)
        let line = """
            {"specversion":"1.0","id":"\(UUID().uuidString)","type":"\(Swift.type(of: payload).type)",\
            "data":\(data)}
            """
        let run = try ToolRun.logtool("import", folder.log, "-", input: line)
        try #require(run.status == 0, "\(run.messages)")
    }

    private func replay(_ folder: TemporaryFolder, _ options: String...) throws -> ToolRun {
        try ToolRun.logtool("replay", [folder.log, "--once"] + options)
    }

    @Test(.verifies("TOOL-16")) func `replay receives other devices' events with --receive`() throws
    {
        let mine = try TemporaryFolder()
        defer { mine.remove() }
        let other = try TemporaryFolder()
        defer { other.remove() }
        let server = try RunningServer(database: mine.path + "/events.sqlite")
        try importing(CitySaved(userId: "ada", cityId: "oslo"), mine)
        try importing(CitySaved(userId: "ada", cityId: "bergen"), other)
        #expect(try replay(other, "--to", server.url).status == 0)
        let shipping = try replay(mine, "--to", server.url)
        #expect(
            shipping.output
                == "{\"applied\":1,\"duplicate\":0,\"rejected\":0,\"conflict\":0,\"pending\":0}\n")
        let both = try replay(mine, "--to", server.url, "--receive")
        #expect(both.status == 0, "\(both.messages)")
        #expect(
            both.output
                == "{\"applied\":0,\"duplicate\":0,\"rejected\":0,\"conflict\":0,\"pending\":0,"
                + "\"received\":1}\n")
        let cities = try ToolRun.logtool("views", mine.log, "cities").output
        #expect(cities.contains("oslo"))
        #expect(cities.contains("bergen"))
    }

    @Test(.verifies("TOOL-16")) func `events that could not be received are 75`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let server = try RunningServer(database: folder.path + "/events.sqlite")
        try importing(CitySaved(userId: "ada", cityId: "oslo"), folder)
        try #require(try replay(folder, "--to", server.url).status == 0)
        let url = server.url
        server.kill()
        #expect(try replay(folder, "--to", url).status == 0, "nothing is left to send")
        let run = try replay(folder, "--to", url, "--receive")
        #expect(run.status == 75)
        #expect(run.messages.contains("not all events"))
        #expect(run.output.contains("\"received\":0"))
    }

    @Test(.verifies("TOOL-16"), arguments: ["mine", "theirs"])
    func `replay decides conflicts with --keep`(side: String) async throws {
        let mine = try TemporaryFolder()
        defer { mine.remove() }
        let other = try TemporaryFolder()
        defer { other.remove() }
        let server = try RunningServer(database: mine.path + "/events.sqlite")
        try importing(
            NoteAdded(noteId: "n", cityId: "oslo", content: "Opera", createdBy: "ada"), mine)
        try #require(try replay(mine, "--to", server.url).status == 0)
        try #require(try ToolRun.logtool("import", other.log, "-", input: "").status == 0)
        try #require(try replay(other, "--to", server.url, "--receive").status == 0)
        for (folder, content) in [(mine, "mine"), (other, "theirs")] {
            let store = try await OfflineStore.open(at: URL(filePath: folder.log))
            try await store.notes.update("n", content, by: "ada")
            try await store.close()
        }
        try #require(try replay(other, "--to", server.url).status == 0)
        let undecided = try replay(mine, "--to", server.url)
        #expect(undecided.status == 1)
        #expect(undecided.output.contains("\"conflict\":1,\"pending\":1}"))
        let decided = try replay(mine, "--to", server.url, "--keep", side)
        #expect(decided.status == 0, "\(decided.messages)")
        #expect(decided.output.contains("\"pending\":0,\"resolved\":1}"))
        for folder in [mine, other] {
            _ = try replay(folder, "--to", server.url, "--receive")
            let notes = try ToolRun.logtool("views", folder.log, "notes").output
            #expect(notes.contains("\"content\":\"\(side)\""))
        }
    }

    /// A log whose records say that this device's clock is an hour ahead.
    private func ahead() async throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let clock = VirtualClock(milliseconds: 1_500_000_000_000)
        let store = try await EventStore.open(
            at: folder.log, catalogue: OfflineModel.catalogue, views: [Outbox.self],
            environment: clock.environment(fileSystem: POSIXFileSystem(), seed: 1))
        let saved = try await store.append(CitySaved(userId: "ada", cityId: "oslo"))
        var record = SyncSettled(by: store.incarnation)
        record.clockOffset = -3_600_000
        record.entries = [
            .init(position: 1, id: saved.id, outcome: .parked, retryCount: 0, code: "no")
        ]
        try await store.record(record)
        try await store.close()
        return folder
    }

    @Test(.verifies("TOOL-17")) func `an import and a decision use the server's clock`()
        async throws
    {
        let folder = try await ahead()
        defer { folder.remove() }
        try importing(CitySaved(userId: "ada", cityId: "bergen"), folder)
        #expect(try ToolRun.logtool("parked", folder.log, "--retry-all").status == 0)
        let events = try ToolRun.logtool("inspect", folder.log, "--events", "--from", "3").output
        var times: [Timestamp] = []
        for line in events.split(separator: "\n") {
            let event = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            let text = try #require(event?["time"] as? String)
            times.append(try #require(Timestamp(text)))
        }
        #expect(times.count == 2)
        for time in times {
            let behind = LogEnvironment.systemTime() - time.milliseconds
            #expect((3_600_000..<4_200_000).contains(behind))
        }
    }
}
