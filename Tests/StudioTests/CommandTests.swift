// logtool studio as a process.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import Studio

@Suite(.serialized) struct CommandTests {
    private func log() throws -> SampleLog {
        let log = try SampleLog(Histories.statuses())
        try log.close()
        return log
    }

    @Test(.verifies("STU-1"), arguments: [SIGINT, SIGTERM, SIGHUP])
    func `the command prints its address, answers, and ends with 0 after a signal`(
        signal: Int32
    ) throws {
        let log = try log()
        defer { log.remove() }
        let studio = try RunningStudio(log.directory)
        let page = try studio.get("/?token=\(studio.token)")
        #expect(page.hasPrefix("HTTP/1.1 200"))
        #expect(page.contains("Daybook Studio"))
        #expect(try studio.get("/api/log").hasPrefix("HTTP/1.1 401"))
        #expect(try studio.get("/api/log", key: studio.token).contains("\"writable\":false"))
        #expect(studio.end(with: signal) == 0)
    }

    @Test(.verifies("STU-1", "STU-4"))
    func `two runs have two tokens, and a port that is in use is 74`() throws {
        let log = try log()
        defer { log.remove() }
        let one = try RunningStudio(log.directory)
        let other = try RunningStudio(log.directory, "--write")
        #expect(one.token != other.token)
        #expect(one.port != other.port)
        #expect(try other.get("/api/log", key: other.token).contains("\"writable\":true"))
        let port = "\(one.port)"
        let refused = try Logtool.run(["studio", log.directory, "--port", port])
        #expect(refused.status == 74)
        #expect(refused.output.isEmpty)
        #expect(refused.messages.contains("port"))
        #expect(one.end(with: SIGTERM) == 0)
        let next = try RunningStudio(log.directory, "--port", port)
        #expect(next.port == one.port)
        #expect(next.end(with: SIGTERM) == 0)
        #expect(other.end(with: SIGTERM) == 0)
    }

    @Test(.verifies("STU-4")) func `the server listens at 127.0.0.1 only`() throws {
        let log = try log()
        defer { log.remove() }
        let studio = try RunningStudio(log.directory)
        // The hexadecimal columns of Linux: the local address and port, and the state "listening".
        let port = String(studio.port, radix: 16, uppercase: true)
        let suffix = ":" + String(repeating: "0", count: 4 - port.count) + port
        var addresses: [String] = []
        for name in ["tcp", "tcp6"] {
            // The size of such a file is 0, so it is read to its end.
            let file = FileHandle(forReadingAtPath: "/proc/net/\(name)")
            let table = String(decoding: try file?.readToEnd() ?? Data(), as: UTF8.self)
            for line in table.split(separator: "\n") {
                let columns: [Substring] = line.split(separator: " ")
                guard columns.count > 3, columns[1].hasSuffix(suffix), columns[3] == "0A" else {
                    continue
                }
                addresses.append(String(columns[1].dropLast(suffix.count)))
            }
        }
        #if os(Linux)
            #expect(addresses == ["0100007F"])
        #endif
        #expect(studio.end(with: SIGTERM) == 0)
    }

    @Test(.verifies("STU-14")) func `requests without the key keep no browser out, and no signal`()
        throws
    {
        let log = try log()
        defer { log.remove() }
        let studio = try RunningStudio(log.directory, "--write")
        let head = "POST /api/outbox/retry HTTP/1.1\r\nHost: 127.0.0.1:\(studio.port)\r\n"
        // Each would be of 40 MB. The server does not read them.
        let posts = try (0..<8).map { _ in
            let socket = try studio.connect()
            try socket.send("\(head)Content-Length: 41943040\r\n\r\n".utf8)
            try socket.send(repeatElement(UInt8(ascii: "x"), count: 65_536))
            return socket
        }
        // More connections than the server has, which send the beginning of a head.
        let others = try (0..<64).map { _ in
            let socket = try studio.connect()
            try socket.send("GET / HTTP".utf8)
            return socket
        }
        #expect(try studio.get("/api/log", key: studio.token).contains("\"writable\":true"))
        // A line that does not end.
        let endless = try studio.connect()
        try endless.send(repeatElement(UInt8(ascii: "x"), count: 32_768))
        #expect(try RunningStudio.reply(from: endless).hasPrefix("HTTP/1.1 431"))
        // A whole head in one piece.
        let long = try studio.connect()
        let field = String(repeating: "x", count: 20_480)
        try long.send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: \(field)\r\n\r\n".utf8)
        #expect(try RunningStudio.reply(from: long).hasPrefix("HTTP/1.1 431"))
        #expect(studio.end(with: SIGINT) == 0)
        withExtendedLifetime((posts, others)) {}
    }

    @Test(.verifies("STU-13"))
    func `the browser gets the path of a private file, and no key`() async throws {
        let log = try log()
        defer { log.remove() }
        // A command in place of the system's, which writes what it was given.
        let tools = log.folder.appending("tools").path
        try FileManager.default.createDirectory(atPath: tools, withIntermediateDirectories: false)
        let (given, page) = (tools + "/given", tools + "/page")
        for name in ["xdg-open", "open"] {
            let script =
                "#!/bin/sh\ncp -p \"$1\" '\(page)'; echo \"$1\" > '\(given).part'; mv '\(given).part' '\(given)'\n"
            try Data(script.utf8).write(to: URL(filePath: "\(tools)/\(name)"))
            chmod("\(tools)/\(name)", 0o700)
        }
        let studio = try RunningStudio(log.directory, "--open", pathFirst: tools)
        try await eventually("the command has run", is: true) {
            FileManager.default.fileExists(atPath: given)
        }
        let path = try String(contentsOfFile: given, encoding: .utf8).trimmingCharacters(
            in: .newlines)
        #expect(!path.contains(studio.token))
        let folder = URL(filePath: path).deletingLastPathComponent().path
        for (path, mode) in [(path, 0o600), (folder, 0o700)] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == mode, "\(path)")
        }
        let text = try String(contentsOfFile: page, encoding: .utf8)
        #expect(!text.contains(studio.token))
        let code = try #require(text.firstMatch(of: #/\/\?code=([0-9a-f]{32})"/#)).1
        let body = "{\"code\":\"\(code)\"}"
        let socket = try studio.connect()
        let origin = "127.0.0.1:\(studio.port)"
        try socket.send(
            "POST /api/key HTTP/1.1\r\nHost: \(origin)\r\nOrigin: http://\(origin)\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
                .utf8)
        #expect(try RunningStudio.reply(from: socket).contains(studio.token))
        #expect(!FileManager.default.fileExists(atPath: folder))
        #expect(studio.end(with: SIGTERM) == 0)
    }

    @Test(.verifies("STU-3")) func `a log that does not exist is shown with its problem`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let studio = try RunningStudio(folder.log)
        try await eventually("log", where: { $0.contains("\"code\":\"noLog\"") }) {
            try studio.get("/api/log", key: studio.token)
        }
        #expect(studio.end(with: SIGTERM) == 0)
    }

    @Test(.verifies("STU-1", "STU-11")) func `a file is written once, and instead of a server`()
        throws
    {
        let log = try log()
        defer { log.remove() }
        let file = log.folder.appending("studio.html").path
        for option in [["--port", "8080"], ["--open"], ["--write"]] {
            let refused = try Logtool.run(["studio", log.directory, "--html", file] + option)
            #expect(refused.status == 64, "\(option)")
            #expect(!FileManager.default.fileExists(atPath: file))
        }
        let run = try Logtool.run(["studio", log.directory, "--html", file])
        #expect(run.status == 0, "\(run.messages)")
        #expect(run.messages.contains("11 events"), "\(run.messages)")
        #expect(try String(contentsOfFile: file, encoding: .utf8).hasPrefix("<!DOCTYPE html>"))
        #expect(try Logtool.run(["studio", log.directory, "--html", file]).status == 74)
        let nowhere = log.folder.appending("nowhere").path
        let other = log.folder.appending("other.html").path
        #expect(try Logtool.run(["studio", nowhere, "--html", other]).status == 66)
        #expect(!FileManager.default.fileExists(atPath: other))
    }

    @Test(.verifies("STU-11")) func `a full disk leaves nothing of the file`() throws {
        let log = try log()
        defer { log.remove() }
        let file = log.folder.appending("studio.html").path
        let run = try Logtool.run(
            ["studio", log.directory, "--html", file], fileBytesMax: 32 * 1_024)
        #expect(run.status == 74, "\(run.messages)")
        #expect(run.messages.hasPrefix("logtool: "))
        #expect(try log.folder.names(in: ".") == ["log"])
    }
}
