// Bad input: each kind has its own exit code and message, and no data are lost.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogFormat
import TestSupport
import Testing

@Suite struct ExitCodeTests {
    @Test(.verifies("TOOL-35"))
    func `damage found after a recovery is reported together with the recovery`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let copy = try TemporaryFolder()
        defer { copy.remove() }
        let store = try await EventStore.open(
            at: folder.log, catalogue: OfflineModel.catalogue, views: [Outbox.self])
        for number in 0..<50 {
            try await store.append(CitySaved(userId: "ada", cityId: "\(number)"))
        }
        try store.log.roll()
        try await store.append(CitySaved(userId: "ada", cityId: "oslo"))
        try await store.checkpoint()
        for number in 0..<5 {
            try await store.append(CitySaved(userId: "ada", cityId: "b\(number)"))
        }
        // A copy of the files, as a kill would leave them.
        try FileManager.default.copyItem(atPath: folder.log, toPath: copy.log)
        try await store.close()
        let segments = try FileManager.default.contentsOfDirectory(atPath: copy.log)
            .filter { $0.hasSuffix(".lz4") }.sorted().map { URL(filePath: copy.log + "/" + $0) }
        #expect(segments.count == 2)
        // The last commit is torn, and the first segment is damaged.
        for (segment, place) in [
            (segments[0], { $0.count / 2 }),
            (segments[1], { ($0.lastIndex { $0 != 0 } ?? 0) - 30 }),
        ] as [(URL, (Data) -> Int)] {
            var bytes = try Data(contentsOf: segment)
            bytes[place(bytes)] ^= 0x10
            try bytes.write(to: segment)
        }
        let run = try ToolRun.logtool("import", copy.log, "-", input: "")
        #expect(run.status == 65)
        #expect(!run.messages.contains("Nothing was changed"), "\(run.messages)")
        #expect(run.messages.contains("Before that the last segment was recovered: "))
        #expect(run.messages.contains("Nothing else was changed"))
    }

    private func sampleLines() throws -> [String] {
        try String(contentsOfFile: Tool.sample, encoding: .utf8).split(separator: "\n")
            .map(String.init)
    }

    private func importedSample() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try #require(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        return folder
    }

    /// Changes a log's only segment.
    private func damage(_ folder: TemporaryFolder, _ body: (inout [UInt8]) -> Void) throws {
        let segment = URL(filePath: folder.log + "/00000000000000000001.lz4")
        var bytes = Array(try Data(contentsOf: segment))
        body(&bytes)
        try Data(bytes).write(to: segment)
    }

    @Test(.verifies("TOOL-2"), arguments: ["inspect", "verify", "views", "compact"])
    func `a missing folder is 66`(command: String) throws {
        let run = try ToolRun.logtool(command, "/nowhere/at-all")
        #expect(run.status == 66)
        #expect(run.output.isEmpty)
        #expect(run.messages.contains("/nowhere/at-all"))
    }

    @Test(.verifies("SEG-1", "TOOL-2"))
    func `a folder with other files is 66 and is not changed`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        _ = try folder.file("holiday.jpg", content: "x")
        for command in ["inspect", "verify", "views", "compact"] {
            #expect(try ToolRun.logtool(command, folder.path).status == 66)
        }
        let run = try ToolRun.logtool("import", folder.path, Tool.sample)
        #expect(run.status == 66)
        #expect(run.messages.contains("holiday.jpg"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["holiday.jpg"])
    }

    @Test(.verifies("TOOL-2", "TOOL-4"))
    func `a broken line stops an import with its number, and the corrected file completes it`()
        throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        var lines = try sampleLines()
        let sound = lines
        lines[29] = String(lines[29].dropLast(3))
        let broken = try folder.file("broken.ndjson", content: lines.joined(separator: "\n"))
        let run = try ToolRun.logtool("import", folder.log, broken.path)
        #expect(run.status == 65)
        #expect(run.messages.contains("line 30"))
        let mended = try folder.file("mended.ndjson", content: sound.joined(separator: "\n"))
        let again = try ToolRun.logtool("import", folder.log, mended.path)
        #expect(again.status == 0)
        #expect(again.output.contains("\"appended\":\(sound.count - 29),\"skipped\":29"))
    }

    @Test(.verifies("TOOL-2"))
    func `an id with other content stops an import with its number`() throws {
        let folder = try importedSample()
        defer { folder.remove() }
        let lines = try sampleLines()
        let changed = lines[0].replacing(
            "\"wifiOnlyDownload\":false", with: "\"wifiOnlyDownload\":true")
        #expect(changed != lines[0])
        let run = try ToolRun.logtool(
            "import", folder.log, "-", input: lines[3] + "\n\n" + changed + "\n")
        #expect(run.status == 65)
        #expect(run.messages.contains("line 3"))
    }

    @Test(.verifies("TOOL-2")) func `a newer format is 65 and says to update`() throws {
        let folder = try importedSample()
        defer { folder.remove() }
        try damage(folder) { bytes in
            bytes[16] = 2
            bytes.replaceSubrange(508..<512, with: Self.checksum(bytes))
        }
        for command in ["inspect", "verify"] {
            let run = try ToolRun.logtool(command, folder.log)
            #expect(run.status == 65)
            #expect(run.messages.contains("format 2"))
        }
        #expect(try ToolRun.logtool("import", folder.log, Tool.sample).status == 65)
    }

    @Test(.verifies("SEG-2", "TOOL-2"))
    func `an unknown incompatible feature is 65, an unknown compatible one is ignored`()
        throws
    {
        let folder = try importedSample()
        defer { folder.remove() }
        try damage(folder) { bytes in
            bytes[24] = 0x80
            bytes.replaceSubrange(508..<512, with: Self.checksum(bytes))
        }
        #expect(try ToolRun.logtool("verify", folder.log).status == 0)
        try damage(folder) { bytes in
            bytes[20] = 0x01
            bytes.replaceSubrange(508..<512, with: Self.checksum(bytes))
        }
        let run = try ToolRun.logtool("inspect", folder.log)
        #expect(run.status == 65)
        #expect(run.messages.contains("0x1"))
    }

    private static func checksum(_ bytes: [UInt8]) -> [UInt8] {
        let value = XXH32.hash(bytes.span.bytes.extracting(0..<508))
        return withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }

    @Test(.verifies("TOOL-2", "TOOL-3", "TOOL-21"))
    func `of two writers, the second gets 75, and readers continue`() throws {
        let folder = try importedSample()
        defer { folder.remove() }
        let writer = try RunningImport(into: folder.log)
        let second = try ToolRun.logtool("import", folder.log, Tool.sample)
        #expect(second.status == 75)
        #expect(second.messages.contains("another writer"))
        #if os(Linux)
            #expect(second.messages.contains("(pid \(writer.processID), logtool)"))
        #endif
        #expect(try ToolRun.logtool("compact", folder.log).status == 75)
        #expect(try ToolRun.logtool("compact", folder.log, "--dry-run").status == 0)
        #expect(try ToolRun.logtool("verify", folder.log).status == 0)
        #expect(try writer.finish() == 0)
    }

    @Test(.verifies("TOOL-2")) func `a position that the log does not have yet is 65`() throws {
        let folder = try importedSample()
        defer { folder.remove() }
        let run = try ToolRun.logtool("views", folder.log, "notes", "--at", "10000")
        #expect(run.status == 65)
    }

    @Test(
        .verifies("TOOL-2"),
        arguments: [
            ["inspect"], ["views", "x", "weather"], ["import", "x", "y", "--batch", "0"],
            ["inspect", "x", "--limit", "3"], ["replay", "x", "--to", "ftp://elsewhere"],
            ["replay", "x", "--to", "file:///etc/passwd"], ["replay", "x", "--to", "elsewhere"],
            ["replay", "x", "--to", "http:///v1"], ["replay", "x", "--to", "http://a:b@127.0.0.1"],
            ["replay", "x", "--to", "http://127.0.0.1", "--timeout", "0"],
            ["replay", "x", "--to", "http://127.0.0.1", "--account", "a", "--any-account"],
            ["replay", "x", "--to", "http://127.0.0.1", "--account", ""],
            ["replay", "x", "--to", "http://192.0.2.1", "--token-file", "t"],
            ["frobnicate"],
        ])
    func `wrong usage is 64`(arguments: [String]) throws {
        let process = Process()
        process.executableURL = Tool.binary("logtool")
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.runAlone()
        process.waitUntilExit()
        #expect(process.terminationStatus == 64)
    }

    @Test(.verifies("TOOL-51", "SEC-23"))
    func `an unencrypted token is refused, naming the option that allows it`() throws {
        let folder = try importedSample()
        defer { folder.remove() }
        try "xyzzy".write(toFile: folder.log + ".token", atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: folder.log + ".token") }
        let arguments = [
            folder.log, "--to", "HTTP://daybook.invalid", "--token-file", folder.log + ".token",
            "--once",
        ]
        let refused = try ToolRun.logtool("replay", arguments)
        #expect(refused.status == 64)
        #expect(refused.messages.contains("--allow-plain-http"))
        let allowed = try ToolRun.logtool("replay", arguments + ["--allow-plain-http"])
        #expect(allowed.status == 75)
        #expect(!(refused.messages + allowed.messages).contains("xyzzy"))
    }

    @Test(.verifies("SEC-30"))
    func `a token file that all may write is 65, and one that others may read is used with a note`()
        throws
    {
        let folder = try importedSample()
        defer { folder.remove() }
        let server = try LocalServer { _ in .reply(503) }
        let file = folder.log + ".token"
        defer { try? FileManager.default.removeItem(atPath: file) }
        func replay(_ mode: Int) throws -> ToolRun {
            try "xyzzy".write(toFile: file, atomically: true, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
            return try ToolRun.logtool(
                "replay", folder.log, "--to", server.base, "--token-file", file, "--once")
        }
        let refused = try replay(0o666)
        #expect(refused.status == 65)
        #expect(refused.messages.contains("(mode 666): run chmod 600 \(file)"))
        #expect(server.requests.isEmpty)
        for (mode, isNoted) in [(0o644, true), (0o660, true), (0o600, false), (0o400, false)] {
            let run = try replay(mode)
            #expect(run.status == 75)
            #expect(run.messages.contains("chmod 600 \(file)") == isNoted, "\(mode)")
        }
    }

    @Test(.verifies("SEC-23"))
    func `a proxy of the environment sees no token and no plain request`() throws {
        let folder = try importedSample()
        defer { folder.remove() }
        let proxy = try LocalServer { _ in .reply(502) }
        let server = try LocalServer { _ in .reply(503) }
        try "xyzzy".write(toFile: folder.log + ".token", atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: folder.log + ".token") }
        let environment = [
            "http_proxy": proxy.base, "HTTP_PROXY": proxy.base, "https_proxy": proxy.base,
            "all_proxy": proxy.base, "ALL_PROXY": proxy.base, "no_proxy": "", "NO_PROXY": "",
        ]
        func replay(_ url: String) throws -> ToolRun {
            try ToolRun.logtool(
                "replay",
                [folder.log, "--to", url, "--token-file", folder.log + ".token", "--once"],
                environment: environment)
        }
        #expect(try replay(server.base).status == 75)
        #expect(!server.requests.isEmpty)
        #expect(proxy.requests.isEmpty)
        #expect(try replay("https://daybook.invalid").status == 75)
        #expect(!proxy.requests.isEmpty)
        for request in proxy.requests {
            #expect(request.method == "CONNECT")
            #expect(request.target == "daybook.invalid:443")
            #expect(!request.headers.contains { $0.value.contains("xyzzy") })
        }
    }

    @Test(.verifies("TOOL-51", "RPL-12"))
    func `replay waits for a silent server once`() throws {
        let folder = try importedSample()
        defer { folder.remove() }
        let server = try LocalServer { _ in .script { $0.waitForEnd() } }
        let run = try ToolRun.logtool(
            "replay", folder.log, "--to", server.base, "--once", "--timeout", "0.5")
        #expect(run.status == 75)
        #expect(run.messages.contains("did not answer in time"))
        #expect(server.requests.count <= 2)
    }

    @Test(.verifies("TOOL-51"))
    func `a token of another account is 75 if events are pending, otherwise unchecked`()
        async throws
    {
        let folder = try importedSample()
        defer { folder.remove() }
        let empty = try TemporaryFolder()
        defer { empty.remove() }
        try #require(try ToolRun.logtool("import", empty.log, "-", input: "").status == 0)
        let server = try LocalServer { _ in
            .reply(200, headers: [("Daybook-Account", "bob")], body: Array("[]".utf8))
        }
        func replay(_ folder: TemporaryFolder, _ options: String...) throws -> ToolRun {
            try ToolRun.logtool(
                "replay",
                [folder.log, "--to", server.base, "--once", "--account", "ana"] + options)
        }
        #expect(try replay(empty).status == 0)
        #expect(server.requests.isEmpty)
        for run in [try replay(empty, "--receive"), try replay(folder)] {
            #expect(run.status == 75)
            #expect(run.messages.contains("sign in as ana"))
        }
    }

    @Test(.verifies("RPL-7", "TOOL-2", "TOOL-5"))
    func `a refused connection is 75, and the outbox is unchanged`() throws {
        let folder = try importedSample()
        defer { folder.remove() }
        let run = try ToolRun.logtool(
            "replay", folder.log, "--to", "http://127.0.0.1:9", "--once")
        #expect(run.status == 75)
        #expect(run.output.contains("\"applied\":0"))
        #expect(run.output.contains("\"pending\":56"))
        #expect(try ToolRun.logtool("verify", folder.log).status == 0)
    }
}
