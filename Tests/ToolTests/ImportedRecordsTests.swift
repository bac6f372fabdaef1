// Sync records in an imported file: they refer to positions in the log that wrote them, also if that was
// this log before a backup was restored.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct ImportedRecordsTests {
    private func outbox(_ folder: TemporaryFolder) throws -> [OutboxEntry] {
        let reader = LogReader(folder.log)
        return Array(
            try reader.fold(catalogue: OfflineModel.catalogue, from: { Outbox() }) { $0.fold($1) }
                .state.entries)
    }

    private func line(_ record: some EventPayload) throws -> String {
        let data = String(decoding: try record.json(), as: UTF8.self)
        return """
            {"specversion":"1.0","id":"\(UUID().uuidString)","type":"\(Swift.type(of: record).type)",\
            "data":\(data)}

            """
    }

    @Test(.verifies("TOOL-32", "EVT-14", "OUT-3"))
    func `imported sync records settle, retract and reinstate nothing`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await OfflineStore.open(at: URL(filePath: folder.log))
        let by = store.events.incarnation
        let cities = ["oslo", "bergen", "hamar"]
        for city in cities { try await store.cities.save(city, by: "ada") }
        try await store.close()
        let waiting = try outbox(folder)
        var settled = SyncSettled(by: by)
        settled.applied = [1...2]
        settled.entries = [
            .init(position: 3, id: waiting[2].id, outcome: .parked, retryCount: 0, code: "no")
        ]
        let targets = waiting.map { EventTarget(position: $0.position, id: $0.id) }
        var file = try line(settled)
        file += try line(EventsDiscarded(by: by, events: targets, reason: .discarded))
        file += try line(EventsReinstated(by: by, events: targets))
        file += try line(SyncPulled(by: by, next: "s99"))
        file += try line(CitySaved(userId: "ada", cityId: "voss"))
        let run = try ToolRun.logtool("import", folder.log, "-", input: file)
        #expect(run.status == 0)
        #expect(run.output == "{\"appended\":1,\"skipped\":4,\"lines\":5}\n")
        #expect(run.messages.contains("skipped 4 sync records"))
        #expect(try outbox(folder).map(\.status) == [.pending, .pending, .pending, .pending])
        let acked = try ToolRun.logtool("import", folder.log, "-", "--ack", input: file)
        #expect(acked.status == 0)
        #expect(acked.output.split(separator: "\n").count == 1)
        #expect(try ToolRun.logtool("views", folder.log, "cities").output.contains("oslo"))
    }

    @Test(.verifies("TOOL-32", "OUT-3"))
    func `an export from before a restore settles nothing recorded after it`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let backup = folder.path + "/backup"
        func record(_ cities: [String], _ body: (OfflineStore) async throws -> Void = { _ in })
            async throws
        {
            let store = try await OfflineStore.open(at: URL(filePath: folder.log))
            for city in cities { try await store.cities.save(city, by: "ada") }
            try await body(store)
            try await store.close()
        }
        try await record(["a", "b"])
        try FileManager.default.copyItem(atPath: folder.log, toPath: backup)
        try await record(["c", "d", "e", "f", "g"]) { store in
            var settled = SyncSettled(by: store.events.incarnation)
            settled.applied = [1...7]
            try await store.events.record(settled)
        }
        let export = folder.path + "/export.ndjson"
        try #require(try ToolRun.logtool("export", folder.log, export).status == 0)
        // The backup is written into the folder's files: they stay the same files, so the log keeps its
        // incarnation.
        let copying = try ToolRun.shell(
            "cd '\(folder.log)' && cp -r '\(backup)'/. .")
        try #require(copying.status == 0, "\(copying.messages)")
        try await record(["p", "q", "r", "s", "t"])
        let new = try outbox(folder).suffix(5).map(\.id)
        let run = try ToolRun.logtool("import", folder.log, export)
        #expect(run.output == "{\"appended\":5,\"skipped\":3,\"lines\":8}\n", "\(run.messages)")
        let waiting = try outbox(folder)
        // The events that the server has are sent again and are duplicates there.
        #expect(waiting.count == 12)
        #expect(Set(new).isSubset(of: Set(waiting.map(\.id))))
    }

    @Test(.verifies("TOOL-10", "TOOL-32"))
    func `an export imported into a new log is pending there, without sync records`()
        async throws
    {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        try await AnsweredLog.decide(in: folder)
        let exported = try ToolRun.logtool("export", folder.log, "-").output
        let lines = exported.split(separator: "\n")
        let records = lines.count { $0.contains("\"type\":\"daybook.sync.") }
        #expect(records > 3)
        let other = try TemporaryFolder()
        defer { other.remove() }
        let run = try ToolRun.logtool("import", other.log, "-", input: exported)
        #expect(run.status == 0)
        #expect(
            run.output
                == "{\"appended\":\(lines.count - records),\"skipped\":\(records),"
                + "\"lines\":\(lines.count)}\n")
        #expect(try outbox(other).count == lines.count - records)
    }
}
