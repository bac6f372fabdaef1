// logtool export: the stored lines, byte for byte, in a file that appears atomically; and its import.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct ExportTests {
    private static func vector(_ name: String) -> String {
        Tool.root.appending(path: "Spec/vectors/\(name)").path
    }

    private func text(_ path: String) throws -> String {
        try String(contentsOfFile: path, encoding: .utf8)
    }

    private func objects(_ text: String) throws -> [[String: Any]] {
        try text.split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
    }

    @Test(.verifies("TOOL-10", "LINE-3"))
    func `lines are exported as stored, without their position`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        for vector in ["rolled", "sealed", "closed", "compacted"] {
            let stored = try ToolRun.logtool("inspect", Self.vector(vector), "--events").output
            // The lines of these logs that came from other logs have a position.
            let expected = stored.replacing(/"position":"[0-9]{20}",/, with: "")
            let export = folder.path + "/\(vector).ndjson"
            let run = try ToolRun.logtool("export", Self.vector(vector), export)
            #expect(run.status == 0, "\(run.messages)")
            #expect(try text(export) == expected)
            let plain = try ToolRun.logtool("export", Self.vector(vector), "-")
            #expect(plain.output == expected)
            #expect(run.output.contains("\"events\":\(expected.split(separator: "\n").count),"))
        }
    }

    @Test(.verifies("TOOL-10"))
    func `a log imported from an export has the same ids, types and data, in the same order`()
        throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        #expect(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        let export = folder.path + "/export.ndjson"
        #expect(try ToolRun.logtool("export", folder.log, export).status == 0)
        let other = folder.path + "/other"
        #expect(try ToolRun.logtool("import", other, export).status == 0)
        let members = ["id", "type", "subject", "partitionkey", "time", "baseid", "data"]
        let before = try objects(ToolRun.logtool("inspect", folder.log, "--events").output)
        let after = try objects(ToolRun.logtool("inspect", other, "--events").output)
        #expect(before.count == 56)
        #expect(after.count == 56)
        for (one, two) in zip(before, after) {
            for member in members {
                #expect((one[member] as? NSObject) == (two[member] as? NSObject))
            }
        }
        for view in ["cities", "notes", "preferences", "progress"] {
            #expect(
                try ToolRun.logtool("views", folder.log, view).output
                    == ToolRun.logtool("views", other, view).output)
        }
        // After a second import, all events are known.
        let again = try ToolRun.logtool("import", folder.log, export)
        #expect(again.output.contains("\"appended\":0,\"skipped\":56"))
    }

    @Test(.verifies("TOOL-10")) func `a part of a log can be exported`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        #expect(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        let notes = try ToolRun.logtool(
            "export", folder.log, "-", "--type", "daybook.note.added", "--from", "10", "--to", "40")
        let listed = try ToolRun.logtool(
            "inspect", folder.log, "--events", "--type", "daybook.note.added", "--from", "10",
            "--to", "40")
        #expect(!notes.output.isEmpty)
        #expect(notes.output == listed.output)
        let nothing = try ToolRun.logtool("export", folder.log, "-", "--from", "1000")
        #expect(nothing.status == 0)
        #expect(nothing.output.isEmpty)
    }

    @Test(.verifies("TOOL-10"))
    func
        `of a damaged log everything before the damage is exported, and the last position is printed`()
        throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        for (vector, events, place) in [("damaged", 2, "byte 1007"), ("cut", 4, "byte 1309")] {
            let export = folder.path + "/\(vector)"
            let run = try ToolRun.logtool("export", Self.vector(vector), export)
            #expect(run.status == 65)
            #expect(try text(export).split(separator: "\n").count == events)
            #expect(run.messages.contains("after position \(events)"))
            #expect(run.messages.contains(place))
            #expect(run.messages.contains("logtool repair"))
            let plain = try ToolRun.logtool("export", Self.vector(vector), "-")
            #expect(plain.status == 65)
            #expect(plain.output == (try text(export)))
        }
        let torn = try ToolRun.logtool("export", Self.vector("torn"), "-")
        #expect(torn.status == 0)
        #expect(torn.messages.contains("torn tail"))
    }

    @Test(.verifies("TOOL-10"), arguments: [SIGINT, SIGTERM, SIGHUP])
    func `a signal at any time leaves no file`(signal: Int32) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let filler = String(repeating: "x", count: 10_000)
        let lines = (0..<1_000).map { _ in
            """
            {"specversion":"1.0","id":"\(UUID().uuidString)","type":"com.example.x",\
            "data":{"x":"\(filler)"}}\n
            """
        }
        let input = lines.joined()
        try #require(try ToolRun.logtool("import", folder.log, "-", input: input).status == 0)
        for _ in 0..<5 {
            let process = Process()
            process.executableURL = Tool.binary("logtool")
            process.arguments = ["export", folder.log, folder.path + "/export"]
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.runAlone()
            func names() throws -> [String] {
                try FileManager.default.contentsOfDirectory(atPath: folder.path)
            }
            while process.isRunning, try !names().contains(where: { $0.hasSuffix(".part") }) {}
            kill(process.processIdentifier, signal)
            process.waitUntilExit()
            #expect(process.terminationReason == .exit)
            // On a busy machine the signal may come after the end.
            let isWhole = process.terminationStatus == 0
            #expect(isWhole || process.terminationStatus == 130)
            #expect(try names().sorted() == (isWhole ? ["export", "log"] : ["log"]))
            try? FileManager.default.removeItem(atPath: folder.path + "/export")
        }
    }

    @Test(.verifies("TOOL-10"))
    func `an app's export equals logtool's, byte for byte, while the store is used`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        #expect(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        let store = try await OfflineStore.open(at: URL(filePath: folder.log))
        try await store.settings.put(.themeMode, "dark")
        let (own, tool) = (folder.path + "/own.ndjson", folder.path + "/tool.ndjson")
        let summary = try await store.export(to: URL(filePath: own))
        #expect(try ToolRun.logtool("export", folder.log, tool).status == 0)
        #expect(try text(own) == text(tool))
        #expect(summary.events == 57)
        #expect(try summary.bytes == text(own).utf8.count)
        #expect(summary.first == Position(1))
        #expect(summary.last == Position(57))
        let attributes = try FileManager.default.attributesOfItem(atPath: own)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let notes = try await store.export(
            to: URL(filePath: own), types: ["daybook.note.added"], from: Position(10),
            replacing: true)
        let run = try ToolRun.logtool(
            "export", folder.log, tool, "--type", "daybook.note.added", "--from", "10", "--force")
        #expect(run.status == 0)
        #expect(try text(own) == text(tool))
        #expect(notes.events > 0)
        try await store.notes.add("Afterwards", city: "lisbon", by: "ada")
        try await store.close()
    }

    @Test(.verifies("TOOL-10"))
    func `an app's export replaces no file by default, and leaves none when it is cancelled`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        #expect(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        let store = try await OfflineStore.open(at: URL(filePath: folder.log))
        let file = URL(filePath: folder.path + "/own.ndjson")
        try Data("mine".utf8).write(to: file)
        for url in [file, URL(filePath: folder.log + "/own.ndjson")] {
            await #expect {
                try await store.export(to: url)
            } throws: {
                ($0 as? LogError)?.code == .io
            }
        }
        await #expect(throws: EventError.self) {
            try await store.export(to: URL(string: "https://x.example/file")!)
        }
        let export = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await store.export(to: file, replacing: true)
        }
        await #expect(throws: CancellationError.self) { try await export.value }
        #expect(try text(file.path) == "mine")
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
                == ["log", "own.ndjson"])
        try await store.close()
        await #expect(throws: LogError.self) { try await store.export(to: file, replacing: true) }
    }

    @Test(.verifies("TOOL-10", "TOOL-2"))
    func `a file is not overwritten, not written into the log, and never left incomplete`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        #expect(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        let export = try folder.file("export", content: "mine").path
        let refused = try ToolRun.logtool("export", folder.log, export)
        #expect(refused.status == 74)
        #expect(refused.messages.contains("--force"))
        #expect(try text(export) == "mine")
        #expect(try ToolRun.logtool("export", folder.log, export, "--force").status == 0)
        #expect(try text(export).split(separator: "\n").count == 56)
        let mode = try FileManager.default.attributesOfItem(atPath: export)[.posixPermissions]
        #expect(mode as? Int == 0o600)

        #expect(try ToolRun.logtool("export", folder.log, folder.log + "/export").status == 74)
        #expect(
            try ToolRun.logtool("export", folder.log, "/dev/null", "--force").status == 74)
        #expect(
            try ToolRun.logtool("export", folder.path + "/none", folder.path + "/x").status == 66)
        #expect(try ToolRun.logtool("export", folder.log, "-", "--output", "table").status == 64)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.sorted() == ["export", "log"])
        #expect(try ToolRun.logtool("verify", folder.log).status == 0)
    }
}
