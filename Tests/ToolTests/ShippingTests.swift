// Shipping with the real tools: import, ship, kill, restart, and the server's events afterwards.

import DaybookTestKit
import Foundation
import LogFormat
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite struct ShippingTests {
    /// Reads all events of a server as parsed JSON.
    private func held(by server: RunningServer) async throws -> [NSDictionary] {
        var events: [NSDictionary] = []
        var next = "/v1/events"
        while true {
            let url = try #require(URL(string: server.url + next))
            let (data, response) = try await URLSession.shared.data(from: url)
            let page = try #require(
                try JSONSerialization.jsonObject(with: data) as? [NSDictionary])
            if page.isEmpty { return events }
            events += page
            let link = try #require(
                (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Link"))
            next = String(link.dropFirst().prefix { $0 != ">" })
        }
    }

    @Test(.verifies("RPL-1", "SYNC-31", "TOOL-5"))
    func `the server has the log's events, and shipping again ships nothing`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try #require(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        let server = try RunningServer(database: folder.path + "/events.sqlite")
        let first = try ToolRun.logtool("replay", folder.log, "--to", server.url, "--once")
        #expect(first.status == 0, "\(first.messages)")
        #expect(first.output.contains("\"applied\":56"))
        let second = try ToolRun.logtool("replay", folder.log, "--to", server.url, "--once")
        #expect(second.status == 0)
        #expect(second.output.contains("\"applied\":0,\"duplicate\":0"))
        let log = try ToolRun.logtool("inspect", folder.log, "--events", "--to", "56")
        let lines = try log.output.split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? NSDictionary)
        }
        #expect(try await held(by: server) == lines)
    }

    @Test(.verifies("SYNC-18", "SYNC-24"))
    func `a restarted server has each event once`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try #require(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        let database = folder.path + "/events.sqlite"
        let server = try RunningServer(database: database)
        _ = try ToolRun.logtool("replay", folder.log, "--to", server.url, "--once")
        server.kill()
        // The log loses the verdicts, as if it had been killed before recording them.
        let records = folder.log + "/00000000000000000001.lz4"
        try FileManager.default.removeItem(atPath: records)
        try FileManager.default.removeItem(atPath: folder.log)
        try #require(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        let again = try RunningServer(database: database)
        let run = try ToolRun.logtool("replay", folder.log, "--to", again.url, "--once")
        #expect(run.status == 0)
        #expect(run.output.contains("\"applied\":0,\"duplicate\":56"))
        #expect(try await held(by: again).count == 56)
    }

    @Test(.verifies("TOOL-5"))
    func `rejected events are 1, also in later runs, and are counted`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let other = try TemporaryFolder()
        defer { other.remove() }
        let server = try RunningServer(database: folder.path + "/events.sqlite")
        let id = UUID().uuidString.lowercased()
        // Two logs with one id and different content: the second to ship is rejected.
        for (place, user, status) in [(folder, "ana", Int32(0)), (other, "bob", 1)] {
            let line = """
                {"specversion":"1.0","id":"\(id)","type":"daybook.city.saved",\
                "data":{"userId":"\(user)","cityId":"lisbon"}}
                """
            try #require(try ToolRun.logtool("import", place.log, "-", input: line).status == 0)
            let run = try ToolRun.logtool("replay", place.log, "--to", server.url, "--once")
            #expect(run.status == status, "\(run.messages)")
            #expect(
                run.output
                    == "{\"applied\":\(1 - status),\"duplicate\":0,\"rejected\":\(status),"
                    + "\"conflict\":0,\"pending\":\(status)}\n")
        }
        let again = try ToolRun.logtool("replay", other.log, "--to", server.url, "--once")
        #expect(again.status == 1)
        #expect(again.output.contains("\"rejected\":0,\"conflict\":0,\"pending\":1"))
    }

    @Test(.verifies("RPL-5", "TOOL-5"))
    func `an unexpected answer is 75, with its reason, and counts no retry`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try #require(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        let server = try RunningServer(database: folder.path + "/events.sqlite")
        let run = try ToolRun.logtool(
            "replay", folder.log, "--to", server.url + "/healthz", "--once")
        #expect(run.status == 75)
        #expect(run.messages.contains("check the endpoint"))
        let outbox = try ToolRun.logtool("views", folder.log, "outbox")
        #expect(outbox.output.split(separator: "\n").count == 56)
        #expect(!outbox.output.contains("\"retryCount\":1"))
    }
}
