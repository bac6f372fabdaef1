// The exact output of logtool. After an intended change: DAYBOOK_UPDATE_GOLDEN=1 swift test
// --filter GoldenTests, and read the difference before committing it.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct GoldenTests {
    private func check(_ name: String, _ run: ToolRun, status: Int32 = 0) throws {
        #expect(run.status == status, "\(run.messages)")
        try check(name, text: run.output)
    }

    private func check(_ name: String, text output: String) throws {
        let text = Self.replacingVariableParts(output)
        let file = Tool.root.appending(path: "Tests/ToolTests/Golden/\(name).txt")
        if ProcessInfo.processInfo.environment["DAYBOOK_UPDATE_GOLDEN"] != nil {
            try Data(text.utf8).write(to: file)
        }
        let golden = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        #expect(text == golden)
    }

    /// Replaces the variable parts. Ids are random, and the compressed size varies with them and with the
    /// version of liblz4. A new view changes the list of names and its line breaks.
    static func replacingVariableParts(_ output: String) -> String {
        var text = output
        text.replace(/\nViews:\s[a-z,\s]+\./, with: "\nViews: <names>.")
        text.replace(/"log":"[0-9a-f-]{36}"/, with: "\"log\":\"<id>\"")
        text.replace(/log {13}[0-9a-f-]{36}/, with: "log             <id>")
        text.replace(/urn:uuid:[0-9a-f-]{36}/, with: "urn:uuid:<incarnation>")
        text.replace(/"bytes":[0-9]+/, with: "\"bytes\":<n>")
        text.replace(/\nbytes {3}[0-9]+/, with: "\nbytes   <n>")
        text.replace(/\nbytes {11}[0-9]+/, with: "\nbytes           <n>")
        text.replace(/"ratio":[0-9.]+/, with: "\"ratio\":<r>")
        text.replace(/\nratio {11}[0-9.]+/, with: "\nratio           <r>")
        text.replace(/at byte [0-9]+/, with: "at byte <n>")
        text.replace(/"bytes(Before|After)":[0-9]+/) { "\"bytes\($0.output.1)\":<n>" }
        text.replace(/\nbytes(Before|After)( +)[0-9]+/) {
            "\nbytes\($0.output.1)\($0.output.2)<n>"
        }
        return text
    }

    private func importedSample() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let run = try ToolRun.logtool("import", folder.log, Tool.sample)
        try #require(run.status == 0, "\(run.messages)")
        return folder
    }

    @Test(.verifies("TOOL-1", "TOOL-4")) func `import prints its counts`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try check("import", ToolRun.logtool("import", folder.log, Tool.sample))
        try check("import-again", ToolRun.logtool("import", folder.log, Tool.sample))
        let other = try TemporaryFolder()
        defer { other.remove() }
        try check(
            "import-ack",
            ToolRun.logtool("import", other.log, Tool.sample, "--ack", "--batch", "7"))
    }

    @Test(.verifies("TOOL-1"))
    func `a summary is one object in json and ndjson alike, and a list in json is one array`()
        throws
    {
        let folder = try importedSample()
        defer { folder.remove() }
        let lines = try ToolRun.logtool("inspect", folder.log)
        #expect(
            try ToolRun.logtool("inspect", folder.log, "--output", "json").output == lines.output)
        #expect(
            try ToolRun.logtool("inspect", folder.log, "--output", "ndjson").output
                == lines.output)
        #expect(lines.output.split(separator: "\n").count == 1)
        for arguments in [["views"], ["inspect", "--events"], ["verify"]] {
            let list = try ToolRun.logtool(
                arguments[0], [folder.log] + arguments.dropFirst() + ["--output", "json"])
            #expect(list.status == 0)
            let rows = try JSONSerialization.jsonObject(with: Data(list.output.utf8)) as? [Any]
            let plain = try ToolRun.logtool(arguments[0], [folder.log] + arguments.dropFirst())
            #expect(rows?.count == plain.output.split(separator: "\n").count)
        }
    }

    @Test(.verifies("TOOL-1")) func `inspect shows a summary and the events`() throws {
        let folder = try importedSample()
        defer { folder.remove() }
        try check("inspect", ToolRun.logtool("inspect", folder.log, "--output", "ndjson"))
        try check("inspect-table", ToolRun.logtool("inspect", folder.log, "--output", "table"))
        try check(
            "inspect-events",
            ToolRun.logtool("inspect", folder.log, "--events", "--from", "5", "--limit", "3"))
        try check(
            "inspect-events-table",
            ToolRun.logtool(
                "inspect", folder.log, "--events", "--type", "daybook.note.added", "--output",
                "table"))
        try check(
            "inspect-events-json",
            ToolRun.logtool(
                "inspect", folder.log, "--events", "--subject", "ana", "--output", "json"))
    }

    @Test(
        .verifies("TOOL-1", "VIEW-9"),
        arguments: ["cities", "notes", "preferences", "progress", "outbox"])
    func `views are printed by key`(view: String) throws {
        let folder = try importedSample()
        defer { folder.remove() }
        try check("view-\(view)", ToolRun.logtool("views", folder.log, view))
        try check(
            "view-\(view)-table", ToolRun.logtool("views", folder.log, view, "--output", "table"))
        try check("view-\(view)-at-20", ToolRun.logtool("views", folder.log, view, "--at", "20"))
    }

    @Test(.verifies("VIEW-11")) func `downloads are printed by their ids`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        #expect(try ToolRun.logtool("import", folder.log, Tool.sampleDownloads).status == 0)
        try check("view-downloads", ToolRun.logtool("views", folder.log, "downloads"))
        try check(
            "view-downloads-table",
            ToolRun.logtool("views", folder.log, "downloads", "--output", "table"))
        try check(
            "view-downloads-at-4", ToolRun.logtool("views", folder.log, "downloads", "--at", "4"))
    }

    @Test(.verifies("TOOL-30", "TOOL-31", "VIEW-16", "VIEW-17"))
    func `content is listed without its HTML, and written as a folder`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        #expect(try ToolRun.logtool("import", folder.log, Tool.sampleContent).status == 0)
        for view in ["pages", "content"] {
            try check("view-\(view)", ToolRun.logtool("views", folder.log, view))
            try check(
                "view-\(view)-table",
                ToolRun.logtool("views", folder.log, view, "--output", "table"))
            try check(
                "view-\(view)-at-4", ToolRun.logtool("views", folder.log, view, "--at", "4"))
        }
        let out = folder.path + "/out"
        let options = ["--layout", "content-cache"]
        try check(
            "export-content-cache", ToolRun.logtool("export", [folder.log, out] + options))
        let names = try FileManager.default.subpathsOfDirectory(atPath: out).sorted()
        let texts = names.compactMap { name in
            FileManager.default.contents(atPath: "\(out)/\(name)").map {
                "\(name):\n\(String(decoding: $0, as: UTF8.self))"
            }
        }
        try check("content-cache", text: texts.joined(separator: "\n"))
        try check(
            "import-content-cache",
            ToolRun.logtool("import", [folder.path + "/other", out] + options))
    }

    @Test(.verifies("CMP-28", "OUT-7", "TOOL-1", "TOOL-20", "TOOL-21"))
    func `compact prints what was removed and kept, and the views are unchanged`() throws {
        let folder = try importedSample()
        defer { folder.remove() }
        func ship() throws {
            let server = try RunningServer(database: folder.path + "/server.sqlite")
            defer { server.kill() }
            let run = try ToolRun.logtool("replay", folder.log, "--to", server.url, "--once")
            try #require(run.status == 0, "\(run.messages)")
        }
        func views() throws -> [String] {
            try ["cities", "notes", "preferences", "progress", "outbox"].map {
                try ToolRun.logtool("views", folder.log, $0).output
            }
        }
        // Nothing is settled yet.
        try check("compact-unsettled", ToolRun.logtool("compact", folder.log, "--dry-run"))
        try ship()
        let before = try views()
        let image = try folder.image()
        try check("compact-dry-run", ToolRun.logtool("compact", folder.log, "--dry-run"))
        #expect(try folder.image() == image)
        try check("compact", ToolRun.logtool("compact", folder.log))
        #expect(try views() == before)
        #expect(try ToolRun.logtool("verify", folder.log).status == 0)
        try check(
            "compact-again", ToolRun.logtool("compact", folder.log, "--output", "table"))
        #expect(try views() == before)
        // The removed events are still known.
        try check("import-compacted", ToolRun.logtool("import", folder.log, Tool.sample))
        let past = try ToolRun.logtool("views", folder.log, "notes", "--at", "20")
        #expect(past.status == 65)
        #expect(past.output.isEmpty)
        #expect(past.messages.contains("compacted through position 58"))
    }

    @Test(.verifies("REC-7", "TOOL-2"))
    func `verify prints nothing for a sound log and its findings for another`() throws {
        let folder = try importedSample()
        defer { folder.remove() }
        try check("verify", ToolRun.logtool("verify", folder.log))
        let segment = folder.log + "/00000000000000000001.lz4"
        var bytes = try Data(contentsOf: URL(filePath: segment))
        bytes[700] ^= 1
        try bytes.write(to: URL(filePath: segment))
        try check(
            "verify-damaged", ToolRun.logtool("verify", folder.log, "--output", "json"), status: 1)
    }

    @Test(.verifies("DIA-1", "DIA-4"))
    func `doctor prints what needs attention, and writes a report that only its owner may read`()
        throws
    {
        let folder = try importedSample()
        defer { folder.remove() }
        let file = folder.path + "/report.json"
        try check("doctor", ToolRun.logtool("doctor", folder.log), status: 1)
        let image = try folder.image()
        let run = try ToolRun.logtool("doctor", folder.log, "--bundle", file)
        #expect(run.status == 1)
        #expect(run.messages.contains("the report is in \(file)"))
        #expect(try folder.image() == image)
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let report = try #require(
            try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: file)))
                as? [String: Any])
        let types = (report["log"] as? [String: Any])?["types"] as? [String: Int]
        #expect(types?["daybook.note.added"] ?? 0 > 0)
        #expect((report["sync"] as? [String: Any])?["connection"] == nil)
        let again = try ToolRun.logtool("doctor", folder.log, "--bundle", file)
        #expect(again.status == 74)
        #expect(again.messages.contains("--force"))
        #expect(
            try ToolRun.logtool("doctor", folder.log, "--bundle", file, "--force").status == 1)
        #expect(try ToolRun.logtool("doctor", folder.path + "/none").status == 66)
    }

    @Test(.verifies("TOOL-10")) func `export prints its counts`() throws {
        let folder = try importedSample()
        defer { folder.remove() }
        let file = folder.path + "/export"
        try check("export", ToolRun.logtool("export", folder.log, file))
        try check(
            "export-table",
            ToolRun.logtool("export", folder.log, file, "--force", "--output", "table"))
        try check("export-events", ToolRun.logtool("export", folder.log, "-", "--to", "2"))
    }

    @Test(.verifies("TOOL-11")) func `repair prints its plan and its steps`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = URL(filePath: folder.log)
        try FileManager.default.copyItem(
            at: Tool.root.appending(path: "Spec/vectors/damaged"), to: log)
        try check("repair", ToolRun.logtool("repair", folder.log), status: 1)
        try check(
            "repair-table", ToolRun.logtool("repair", folder.log, "--output", "table"), status: 1)
        let run = try ToolRun.logtool("repair", folder.log, "--yes")
        #expect(run.output.contains("\(folder.log)/quarantine/"))
        try check("repair-messages", text: run.messages.replacing(folder.log, with: "<log>"))
    }

    @Test(.verifies("TOOL-23")) func `inspect shows the positions of stored states`() async throws {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        let log = try await AnsweredLog(folder, minute: 1)
        try await log.store.checkpoint()
        try await log.answer(applied: [8...8])
        try await log.store.checkpoint()
        try await log.answer(applied: [1...2])
        try await log.store.close()
        try check("inspect-checkpoints", ToolRun.logtool("inspect", folder.log))
        let slot = folder.log + "/checkpoints/a"
        try Data("no checkpoint".utf8).write(to: URL(filePath: slot))
        let table = try ToolRun.logtool("inspect", folder.log, "--output", "table").output
        try check(
            "inspect-checkpoints-table",
            text: table.split(separator: "\n").filter { $0.hasPrefix("checkpoints") }
                .joined(separator: "\n"))
    }

    @Test(.verifies("TOOL-22")) func `why prints the history of an event`() async throws {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        try check("why", text: Self.stories(1...8, folder))
        try check(
            "why-table",
            ToolRun.logtool("why", folder.log, AnsweredLog.id(1), "--output", "table"))
        try check(
            "why-json", ToolRun.logtool("why", folder.log, AnsweredLog.id(2), "--output", "json"))
        try await AnsweredLog.decide(in: folder)
        try check("why-decided", text: Self.stories(1...8, folder))
    }

    private static func stories(
        _ numbers: ClosedRange<Int>, _ folder: TemporaryFolder
    ) throws -> String {
        try numbers.map { try ToolRun.logtool("why", folder.log, AnsweredLog.id($0)).output }
            .joined(separator: "\n")
    }

    @Test(.verifies("TOOL-18")) func `parked lists the events that block the outbox`() async throws
    {
        let folder = try await AnsweredLog.folder()
        defer { folder.remove() }
        try check("parked", ToolRun.logtool("parked", folder.log), status: 1)
        try check(
            "parked-table", ToolRun.logtool("parked", folder.log, "--output", "table"), status: 1)
        try check(
            "parked-dependents",
            ToolRun.logtool("parked", [folder.log, "--discard", AnsweredLog.id(1)]), status: 1)
    }

    @Test(arguments: [
        "", "import", "inspect", "verify", "doctor", "views", "why", "parked", "compact", "replay",
        "export", "backup", "repair", "companions", "sql", "studio", "mcp",
    ])
    func `every command has help with an example`(command: String) throws {
        let arguments = command.isEmpty ? ["--help"] : [command, "--help"]
        let run =
            command.isEmpty
            ? try ToolRun.logtool(arguments[0]) : try ToolRun.logtool(arguments[0], arguments[1])
        #expect(run.status == 0)
        #expect(command.isEmpty || run.output.contains("Example: logtool \(command)"))
        try check("help-\(command.isEmpty ? "logtool" : command)", run)
    }
}
