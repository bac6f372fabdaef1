// logtool parked: the list and the decisions.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct ParkedTests {
    private func id(_ number: Int) -> String { AnsweredLog.id(number) }

    /// The ids and states of the listed events.
    private func listed(_ folder: TemporaryFolder) throws -> [String] {
        let run = try ToolRun.logtool("parked", folder.log)
        return try run.output.split(separator: "\n").map { line in
            let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return "\(row?["position"] ?? "") \(row?["syncStatus"] ?? "") \(row?["behind"] ?? "")"
        }
    }

    private func parked(_ folder: TemporaryFolder, _ options: String...) throws -> ToolRun {
        try ToolRun.logtool("parked", [folder.log] + options)
    }

    @Test(.verifies("TOOL-18")) func `a log without anything parked is 0`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try #require(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        let run = try parked(folder)
        #expect(run.status == 0)
        #expect(run.output.isEmpty)
        #expect(run.messages.contains("nothing is parked"))
        let json = try parked(folder, "--output", "json")
        #expect(json.status == 0)
        #expect(json.output == "[]\n")
        #expect(try parked(folder, "--retry-all").status == 0)
    }

    @Test(.verifies("TOOL-18")) func `parked events and conflicts are listed with 1`()
        async throws
    {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        #expect(try parked(folder).status == 1)
        #expect(try listed(folder) == ["1 FAILED 1", "4 CONFLICT 1", "7 FAILED 0"])
    }

    @Test(.verifies("TOOL-18")) func `listing works beside a writer, deciding is 75`()
        async throws
    {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        let log = try await AnsweredLog(folder, minute: 1)
        #expect(try parked(folder).status == 1)
        #expect(try parked(folder, "--retry-all").status == 75)
        #expect(try parked(folder, "--discard", id(7)).status == 75)
        try await log.store.close()
    }

    @Test(.verifies("TOOL-19")) func `a retried event waits for the server again`() async throws {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        let run = try parked(folder, "--retry", id(7), "--retry", id(1), "--retry", id(7))
        #expect(run.status == 0, "\(run.messages)")
        #expect(
            run.output == "{\"id\":\"\(id(7))\",\"done\":\"retried\"}\n"
                + "{\"id\":\"\(id(1))\",\"done\":\"retried\"}\n")
        #expect(try listed(folder) == ["4 CONFLICT 1"])
    }

    @Test(.verifies("TOOL-19")) func `retrying all leaves conflicts alone`() async throws {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        #expect(try parked(folder, "--retry-all").status == 0)
        #expect(try listed(folder) == ["4 CONFLICT 1"])
    }

    @Test(.verifies("TOOL-19"))
    func `discarding lists the dependents, and does nothing without --with-dependents`()
        async throws
    {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        let image = try ToolRun.logtool("export", folder.log, "-").output
        let refused = try parked(folder, "--discard", id(7), "--discard", id(1))
        #expect(refused.status == 1)
        #expect(refused.output.contains(id(2)))
        #expect(!refused.output.contains(id(7)))
        #expect(refused.messages.contains("--with-dependents"))
        #expect(try ToolRun.logtool("export", folder.log, "-").output == image)
        let run = try parked(
            folder, "--discard", id(7), "--discard", id(1), "--with-dependents")
        #expect(run.status == 0, "\(run.messages)")
        #expect(run.output.split(separator: "\n").count == 3)
        #expect(try listed(folder) == ["4 CONFLICT 1"])
        #expect(try !ToolRun.logtool("views", folder.log, "notes").output.contains("note-1"))
    }

    @Test(.verifies("TOOL-19"))
    func `dependents that are named themselves need no --with-dependents`() async throws {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        let run = try parked(folder, "--discard", id(1), "--discard", id(2))
        #expect(run.status == 0, "\(run.messages)")
        #expect(try listed(folder) == ["4 CONFLICT 1", "7 FAILED 0"])
    }

    @Test(.verifies("TOOL-19"), arguments: ["mine", "theirs"])
    func `a conflict is decided for a side`(side: String) async throws {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        let run = try parked(folder, "--resolve", id(4), "--keep", side)
        #expect(run.status == 0, "\(run.messages)")
        #expect(run.output.contains("{\"id\":\"\(id(4))\",\"done\":\"superseded\"}"))
        let recorded = run.output.split(separator: "\n").count { $0.contains("recorded") }
        #expect(recorded == (side == "mine" ? 2 : 0))
        #expect(try listed(folder) == ["1 FAILED 1", "7 FAILED 0"])
        let notes = try ToolRun.logtool("views", folder.log, "notes").output
        #expect(notes.contains("\"content\":\"Opera roof, at dusk\"") == (side == "mine"))
        #expect(notes.contains("\"content\":\"Opera\"") == (side == "theirs"))
    }

    @Test(.verifies("TOOL-2", "TOOL-19")) func `a decision on another event is refused`()
        async throws
    {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        // Settled; pending, which can be discarded only; parked and not in conflict.
        #expect(try parked(folder, "--retry", id(3)).status == 66)
        #expect(try parked(folder, "--retry", id(7), "--retry", id(8)).status == 65)
        #expect(try parked(folder, "--discard", id(3)).status == 66)
        #expect(try parked(folder, "--resolve", id(7), "--keep", "mine").status == 65)
        // Of several ids none is decided if one is refused.
        #expect(try listed(folder).count == 3)
        for wrong in [
            ["--retry", "7"], ["--retry", id(7), "--discard", id(7)], ["--with-dependents"],
            ["--resolve", id(4)], ["--keep", "mine"], ["--resolve", id(4), "--keep", "both"],
        ] {
            #expect(try ToolRun.logtool("parked", [folder.log] + wrong).status == 64)
        }
        #expect(try ToolRun.logtool("parked", "/nowhere/at-all").status == 66)
        #expect(try ToolRun.logtool("parked", ["/nowhere/at-all", "--retry-all"]).status == 66)
    }
}
