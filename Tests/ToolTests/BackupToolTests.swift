// logtool backup beside a process that writes the log, and after that process was killed. Spec/format/backup.md.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct BackupToolTests {
    private struct Summary: Decodable {
        var events: Int
        var last: Int
    }

    /// A logtool that imports endless events one by one and names each as soon as it is durable.
    private final class Importing {
        private let generator = Process()
        private let process = Process()
        private let acknowledgements: URL

        init(in folder: TemporaryFolder) throws {
            let event =
                #"{"specversion":"1.0","id":"%08x-0000-4000-8000-000000000000","#
                + #""type":"com.example.step","data":{"n":%d}}"#
            let format = event.replacing("\"", with: "\\\"") + "\\n"
            let events = Pipe()
            generator.executableURL = URL(filePath: "/usr/bin/env")
            generator.arguments = [
                "awk", "BEGIN { for (n = 1; ; n++) printf \"\(format)\", n, n }",
            ]
            generator.standardOutput = events
            generator.standardError = FileHandle.nullDevice
            acknowledgements = try folder.file("acknowledged")
            process.executableURL = Tool.binary("logtool")
            process.arguments = ["import", folder.log, "-", "--batch", "1", "--ack"]
            process.standardInput = events
            process.standardOutput = try FileHandle(forWritingTo: acknowledgements)
            process.standardError = FileHandle.nullDevice
            try generator.runAlone()
            try process.runAlone()
        }

        /// The number of events that were acknowledged so far.
        func acknowledged() throws -> Int {
            try Data(contentsOf: acknowledgements).count(where: { $0 == UInt8(ascii: "\n") })
        }

        /// Ends both processes as the system does, without giving them time to close the log.
        func end() {
            for process in [process, generator] where process.isRunning {
                kill(process.processIdentifier, SIGKILL)
                process.waitUntilExit()
            }
        }

        deinit { end() }
    }

    private func backUp(_ folder: TemporaryFolder, _ name: String) throws -> Summary {
        let run = try ToolRun.logtool("backup", folder.log, folder.appending(name).path)
        try #require(run.status == 0, "\(run.messages)")
        return try JSONDecoder().decode(Summary.self, from: Data(run.output.utf8))
    }

    @Test(.verifies("TOOL-54", "TOOL-3", "BAK-1", "BAK-2"))
    func `a backup beside a writer has every event that was acknowledged before`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let writer = try Importing(in: folder)
        try await eventually("acknowledged events", where: { (count: Int) in count > 0 }) {
            try writer.acknowledged()
        }
        var backups: [(name: String, summary: Summary)] = []
        for number in 0..<6 {
            let acknowledged = try writer.acknowledged()
            let name = "backup-\(number)"
            let summary = try backUp(folder, name)
            #expect(summary.last >= acknowledged)
            backups.append((name, summary))
        }
        writer.end()
        let acknowledged = try writer.acknowledged()
        backups.append(("killed", try backUp(folder, "killed")))
        #expect(backups.last.map { $0.summary.last >= acknowledged } ?? false)
        for (name, summary) in backups {
            let verified = try ToolRun.logtool("verify", folder.appending(name).path)
            #expect(verified.status == 0, "\(verified.messages)")
            let lines = try ToolRun.logtool("export", folder.appending(name).path, "-").output
            #expect(lines.utf8.count(where: { $0 == UInt8(ascii: "\n") }) == summary.last)
            #expect(summary.events == summary.last)
        }
        let taken = try ToolRun.logtool("backup", folder.log, folder.appending("killed").path)
        #expect(taken.status == 74)
        #expect(taken.messages.contains("exists"))
        #expect(
            try ToolRun.logtool("backup", folder.path + "/none", folder.path + "/b").status == 66)
        #expect(try !folder.names(in: ".").contains { $0.hasSuffix(".part") || $0 == "b" })
    }
}
