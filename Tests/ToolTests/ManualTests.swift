// The shell completions and the man page of logtool.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct ManualTests {
    /// A program on the path, if it is installed.
    private static func installed(_ name: String) -> URL? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return path.split(separator: ":").map { URL(filePath: "\($0)/\(name)") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    private func run(
        _ program: URL, _ arguments: [String]
    ) throws -> (status: Int32, output: String) {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let output = try folder.file("output")
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = process.standardOutput
        process.standardInput = FileHandle.nullDevice
        try process.runAlone()
        process.waitUntilExit()
        return (
            process.terminationStatus,
            String(decoding: try Data(contentsOf: output), as: UTF8.self)
        )
    }

    @Test(.verifies("TOOL-14"), arguments: ["bash", "zsh", "fish"])
    func `each shell accepts its completions, which have every command`(shell: String) throws {
        let made = try ToolRun.logtool("--generate-completion-script", [shell])
        #expect(made.status == 0)
        for command in [
            "import", "inspect", "verify", "doctor", "views", "why", "parked", "compact", "replay",
            "export",
        ] {
            #expect(made.output.contains(command))
        }
        #expect(made.output.contains("preferences"), "the names of the views")
        // Skips shells that are not installed.
        guard let program = Self.installed(shell) else { return }
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let script = try folder.file("completions", content: made.output)
        let (status, messages) = try run(program, ["-n", script.path])
        #expect(status == 0, "\(messages)")
    }

    private func manual() throws -> String {
        let (status, page) = try run(
            Tool.root.appending(path: "Tools/checks/manual"),
            ["--date", "March 1, 2026", Tool.binary("logtool").path])
        #expect(status == 0, "\(page)")
        return page
    }

    @Test(.verifies("TOOL-14"), .enabled(if: installed("python3") != nil))
    func `the man page contains all help texts`() throws {
        let page = GoldenTests.replacingVariableParts(try manual())
        let golden = Tool.root.appending(path: "Tests/ToolTests/Golden/manual.txt")
        if ProcessInfo.processInfo.environment["DAYBOOK_UPDATE_GOLDEN"] != nil {
            try Data(page.utf8).write(to: golden)
        }
        #expect(try page == String(contentsOf: golden, encoding: .utf8))
        for command in [
            "import", "inspect", "verify", "doctor", "views", "why", "parked", "compact", "replay",
            "export", "backup", "repair", "companions", "studio",
        ] {
            #expect(page.contains("\n.Ss \(command)\n"))
            #expect(page.contains("\n.Dl logtool \(command) "))
        }
    }

    /// Returns the exit codes of a page, and checks that the help lists them with the same meanings.
    private func codes(of page: String, in help: String) throws -> [String] {
        let text = try String(
            contentsOf: Tool.root.appending(path: "Spec/operations/\(page)"), encoding: .utf8)
        let rows = text.matches(of: /(?m)^\| (\d+) \| (.+) \|$/)
        let words = help.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        for row in rows { #expect(words.contains(" \(row.1) \(row.2)")) }
        return rows.map { String($0.1) }
    }

    @Test(.verifies("TOOL-2"))
    func `help and page of each tool list the same exit codes with the same meanings`() throws {
        #expect(
            try codes(of: "logtool.md", in: ToolRun.logtool("--help", []).output)
                == ["0", "1", "64", "65", "66", "74", "75", "130"])
        #expect(
            try codes(of: "operating.md", in: ToolRun.syncserver("--help").output)
                == ["0", "1", "64", "65", "66", "69", "74"])
    }

    @Test(
        .verifies("TOOL-14"),
        .enabled(if: installed("python3") != nil && installed("mandoc") != nil))
    func `mandoc accepts the man page`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let file = try folder.file("logtool.1", content: try manual())
        let mandoc = try #require(Self.installed("mandoc"))
        let (status, messages) = try run(mandoc, ["-Tlint", "-W", "warning", file.path])
        #expect(status == 0, "\(messages)")
        #expect(messages.isEmpty, "\(messages)")
    }
}
