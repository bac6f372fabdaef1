// inspect --events --follow: events that another process appends are listed, and a signal ends it cleanly.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct FollowTests {
    /// A logtool that runs until a signal.
    private final class Following {
        private let process = Process()
        private let output: URL

        init(_ arguments: [String], in folder: TemporaryFolder) throws {
            output = try folder.file("followed-\(UUID().uuidString)")
            process.executableURL = Tool.binary("logtool")
            process.arguments = arguments
            process.standardOutput = try FileHandle(forWritingTo: output)
            process.standardError = FileHandle.nullDevice
            try process.runAlone()
        }

        /// Waits for a number of lines and returns the lines so far.
        func lines(_ count: Int) async throws -> [String] {
            var lines: [String] = []
            try await eventually("lines", where: { (seen: Int) in seen >= count }) {
                let text = try String(contentsOf: output, encoding: .utf8)
                // A line without its end is still being written.
                lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                    .map(String.init)
                return lines.count
            }
            return lines
        }

        var isRunning: Bool { process.isRunning }

        func end(with signal: Int32) -> Int32 {
            kill(process.processIdentifier, signal)
            process.waitUntilExit()
            return process.terminationReason == .exit ? process.terminationStatus : -1
        }

        deinit { if process.isRunning { _ = end(with: SIGKILL) } }
    }

    private func halves() throws -> (first: String, second: String) {
        let lines = try String(contentsOfFile: Tool.sample, encoding: .utf8)
            .split(separator: "\n")
        let middle = lines.count / 2
        return (
            lines[..<middle].joined(separator: "\n") + "\n",
            lines[middle...].joined(separator: "\n") + "\n"
        )
    }

    @Test(.verifies("TOOL-3", "FOL-1"), arguments: [SIGINT, SIGTERM])
    func `following lists appended events, and a signal ends it with 0`(
        signal: Int32
    ) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let (first, second) = try halves()
        try #require(try ToolRun.logtool("import", folder.log, "-", input: first).status == 0)
        let following = try Following(
            ["inspect", folder.log, "--events", "--follow"], in: folder)
        let before = try await following.lines(first.split(separator: "\n").count)
        try #require(try ToolRun.logtool("import", folder.log, "-", input: second).status == 0)
        let all = try ToolRun.logtool("inspect", folder.log, "--events").output
            .split(separator: "\n").map(String.init)
        #expect(Array(all.prefix(before.count)) == before)
        #expect(try await following.lines(all.count) == all)
        #expect(following.isRunning)
        #expect(following.end(with: signal) == 0)
    }

    @Test(.verifies("TOOL-3"))
    func `following ends at its limit and at its last position`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let (first, second) = try halves()
        try #require(try ToolRun.logtool("import", folder.log, "-", input: first).status == 0)
        let count = first.split(separator: "\n").count
        let limited = try Following(
            ["inspect", folder.log, "--events", "--follow", "--limit", "\(count + 2)"], in: folder)
        let bounded = try Following(
            ["inspect", folder.log, "--events", "--follow", "--from", "3", "--to", "\(count + 2)"],
            in: folder)
        _ = try await limited.lines(count)
        try #require(try ToolRun.logtool("import", folder.log, "-", input: second).status == 0)
        #expect(try await limited.lines(count + 2).count == count + 2)
        #expect(try await bounded.lines(count).count == count)
        for following in [limited, bounded] {
            try await eventually("logtool is running", is: false) { following.isRunning }
        }
        // The requested events are in the log already, or there are none.
        for (arguments, lines) in [
            (["--limit", "0"], 0), (["--to", "2"], 2), (["--from", "3", "--to", "2"], 0),
        ] {
            let run = try ToolRun.logtool(
                "inspect", [folder.log, "--events", "--follow"] + arguments)
            #expect(run.status == 0)
            #expect(run.output.split(separator: "\n").count == lines)
        }
    }

    @Test(.verifies("TOOL-2"))
    func `following a log that does not exist is 66`() throws {
        let run = try ToolRun.logtool("inspect", "/nowhere/at-all", "--events", "--follow")
        #expect(run.status == 66)
        #expect(run.output.isEmpty)
        #expect(run.messages.contains("/nowhere/at-all"))
    }
}
