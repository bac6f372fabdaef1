// logtool export: what is stored goes out as it is, and comes back.

import Foundation
import TestSupport
import Testing

@Suite struct ExportTests {
    private func contents(_ path: String) throws -> String {
        try String(contentsOfFile: path, encoding: .utf8)
    }

    @Test(.verifies("TOOL-12"))
    func `an export is the stored lines, and its import is the same log again`() throws {
        let folder = try TemporaryFolder()
        try #require(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        let file = folder.log + ".ndjson"
        let run = try ToolRun.logtool("export", folder.log, file)
        #expect(run.status == 0 && run.output.hasPrefix("{\"exported\":"))
        let stored = try ToolRun.logtool("inspect", folder.log, "--events").output
        #expect(try contents(file) == stored)
        #expect(try ToolRun.logtool("export", folder.log, "-").output == stored)
        let permissions = try FileManager.default.attributesOfItem(atPath: file)[
            .posixPermissions]
        #expect(permissions as? Int == 0o600)

        let again = folder.log + "2"
        try #require(try ToolRun.logtool("import", again, file).status == 0)
        for view in ["cities", "notes", "preferences", "progress", "outbox"] {
            let one = try ToolRun.logtool("views", folder.log, view).output
            #expect(try ToolRun.logtool("views", again, view).output == one && !one.isEmpty)
        }
        // What is there is not written over.
        #expect(try ToolRun.logtool("export", folder.log, file, "--to", "3").status == 74)
        #expect(try contents(file) == stored)
        #expect(
            try ToolRun.logtool("export", folder.log, file, "--to", "3", "--force").status == 0)
        #expect(try contents(file).split(separator: "\n").count == 3)
        #expect(
            try ToolRun.logtool(
                "export", folder.log, "-", "--type", "daybook.note.added", "--from", "2"
            ).output.split(separator: "\n").allSatisfy { $0.contains("daybook.note.added") })
    }

    @Test(.verifies("TOOL-12"))
    func `a line from elsewhere leaves without the place it had here`() throws {
        let folder = try TemporaryFolder()
        let log = URL(filePath: folder.log)
        try FileManager.default.copyItem(
            at: Tool.root.appending(path: "Spec/vectors/rolled"), to: log)
        let stored = try ToolRun.logtool("inspect", folder.log, "--events").output
        let exported = try ToolRun.logtool("export", folder.log, "-").output
        #expect(stored.contains("\",\"position\":\""))
        #expect(!exported.contains("\",\"position\":\""))
        #expect(
            exported == stored.replacing(/","position":"[0-9]{20}/, with: ""))
    }

    @Test(.verifies("TOOL-12"))
    func `a damaged log gives what is intact before the damage, and says so`() throws {
        let folder = try TemporaryFolder()
        let log = URL(filePath: folder.log)
        try FileManager.default.copyItem(
            at: Tool.root.appending(path: "Spec/vectors/damaged"), to: log)
        let file = folder.log + ".ndjson"
        let run = try ToolRun.logtool("export", folder.log, file)
        #expect(run.status == 65 && run.messages.contains("repair"))
        #expect(try contents(file).split(separator: "\n").count == 2)
        #expect(try ToolRun.logtool("export", "/nowhere/at-all", file + "2").status == 66)
        #expect(!FileManager.default.fileExists(atPath: file + "2"))
    }
}
