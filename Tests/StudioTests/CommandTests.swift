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
        let cookie = "daybook-studio-\(studio.port)=\(studio.token)"
        let welcome = try studio.get("/?token=\(studio.token)")
        #expect(welcome.hasPrefix("HTTP/1.1 303"))
        #expect(welcome.contains("\(cookie);"))
        #expect(try studio.get("/").hasPrefix("HTTP/1.1 401"))
        let page = try studio.get("/", cookie: cookie)
        #expect(page.hasPrefix("HTTP/1.1 200"))
        #expect(page.contains("Daybook Studio"))
        #expect(try studio.get("/api/log", cookie: cookie).contains("\"writable\":false"))
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
        let cookie = "daybook-studio-\(other.port)=\(other.token)"
        #expect(try other.get("/api/log", cookie: cookie).contains("\"writable\":true"))
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

    @Test(.verifies("STU-3")) func `a log that does not exist is shown with its problem`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let studio = try RunningStudio(folder.log)
        let cookie = "daybook-studio-\(studio.port)=\(studio.token)"
        try await eventually("log", where: { $0.contains("\"code\":\"noLog\"") }) {
            try studio.get("/api/log", cookie: cookie)
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
}
