// Arguments, paths and statements that are not UTF-8: used as they are, or refused.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite(.verifies("TOOL-57")) struct ArgumentTests {
    /// Runs shell commands in a folder; `$odd` is a name that is not UTF-8.
    private func shell(in folder: TemporaryFolder, _ commands: String) throws -> ToolRun {
        try ToolRun.shell(
            """
            cd '\(folder.path)' || exit 99
            logtool='\(Tool.binary("logtool").path)'; syncserver='\(Tool.binary("syncserver").path)'
            log='\(folder.log)'; sample='\(Tool.sample)'; odd="name-$(printf '\\344')"
            \(commands)
            """)
    }

    @Test(arguments: [
        "\"$logtool\" import \"$odd\" \"$sample\"",
        "\"$logtool\" export \"$log\" \"$odd\" --force",
        "\"$logtool\" sql \"$log\" \"select '$odd'\"",
        "\"$syncserver\" migrate --database \"sqlite:$odd\"",
        "\"$syncserver\" --port 0 --database \"sqlite:$odd\"",
    ])
    func `an argument that is not UTF-8 is 64, and no other file is used`(command: String) throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try #require(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        // The name that Swift would make of it.
        let other = try folder.file("name-\u{FFFD}", content: "kept")
        let run = try shell(in: folder, command)
        #expect(run.status == 64)
        #expect(run.messages.contains("name-\\xe4"))
        #expect(run.output.isEmpty)
        #expect(try String(contentsOf: other, encoding: .utf8) == "kept")
        let listed = try shell(in: folder, "ls | LC_ALL=C grep -c name-")
        #expect(listed.output == "1\n")
    }

    @Test func `the value of an option may begin with a combining character`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let event = #"{"specversion":"1.0","id":"\#(UUID())","type":"t","subject":"\#u{301}x"}"#
        let file = try folder.file("event.ndjson", content: event)
        try #require(try ToolRun.logtool("import", folder.log, file.path).status == 0)
        for arguments in [
            ["--subject=\u{301}x"], ["--subject", "\u{301}x"], ["--subject=\u{301}x", "--limit=1"],
        ] {
            let run = try ToolRun.logtool("inspect", [folder.log, "--events"] + arguments)
            #expect(Data(run.output.utf8).range(of: Data("\u{301}x".utf8)) != nil, "\(run)")
        }
    }

    @Test func `a path in the log's folder that begins with a combining character is refused`()
        throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try #require(try ToolRun.logtool("import", folder.log, Tool.sampleContent).status == 0)
        let inside = folder.log + "/\u{301}d"
        for arguments in [
            ["export", folder.log, inside, "--layout", "content-cache"],
            ["backup", folder.log, inside],
        ] {
            let run = try ToolRun.logtool(arguments[0], Array(arguments.dropFirst()))
            #expect(run.status == 74, "\(run)")
        }
        let doctor = try ToolRun.logtool("doctor", folder.log)
        #expect(doctor.status == 0, "\(doctor)")
    }

    @Test
    func `a folder is exported from a working folder that is not UTF-8 by its absolute path only`()
        throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let run = try ToolRun.logtool("import", folder.log, Tool.sampleContent)
        try #require(run.status == 0, "\(run.messages)")
        func export(to path: String) throws -> ToolRun {
            try shell(
                in: folder,
                """
                mkdir -p "$odd" "$(printf 'name-\\357\\277\\275')"; cd "$odd"
                "$logtool" export "$log" \(path) --layout content-cache
                status=$?; cd ..; rmdir "$odd"; exit $status
                """)
        }
        let relative = try export(to: "exported")
        #expect(relative.status == 64)
        #expect(relative.messages.contains("absolute"))
        #expect(try export(to: folder.path + "/exported").status == 0)
        #expect(try shell(in: folder, "ls -d */exported").status != 0)
    }

    @Test(.verifies("TOOL-52"))
    func `statements that are not UTF-8 are 64`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try #require(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        let statement = "printf \"select 'caf\\\\351' as a\""
        for command in [
            "\(statement) | \"$logtool\" sql \"$log\"",
            "\(statement) > s.sql; \"$logtool\" sql \"$log\" --file s.sql",
        ] {
            let run = try shell(in: folder, command)
            #expect(run.status == 64, "\(command)")
            #expect(run.messages.contains("UTF-8"))
            #expect(run.output.isEmpty)
        }
    }
}
