// Features for operators: tokens, TLS, probes, counters, the log, shutdown. Spec/operations/operating.md.

import Foundation
import GRDB
import TestSupport
import Testing

extension Trait where Self == ConditionTrait {
    /// The server of an ordinary build speaks no TLS. Tools/checks/tls runs these tests.
    static var needsTLS: Self {
        .enabled(if: ServerProcess.binaryWithTLS != nil, "run by Tools/checks/tls")
    }
}

@Suite struct OperationTests {
    let fixture: StorageFixture

    init() throws { fixture = try StorageFixture() }

    private func file(_ name: String, _ text: String) throws -> String {
        let file = fixture.folder.appending(name)
        try text.write(to: file, atomically: true, encoding: .utf8)
        return file.path
    }

    /// Runs a system tool.
    private func run(_ tool: String, _ arguments: String...) throws -> (status: Int32, text: String)
    {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [tool] + arguments
        process.standardError = FileHandle.nullDevice
        let output = Pipe.betweenStarts()
        process.standardOutput = output
        try process.runAlone()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: text, as: UTF8.self))
    }

    @Test(.verifies("OPS-1"))
    func `a generated token opens its account, and the file has only its digest`()
        async throws
    {
        let made = try run(ServerProcess.binary.path, "token", "ana")
        #expect(made.status == 0)
        let lines = made.text.split(separator: "\n")
        try #require(lines.count == 2)
        #expect(lines[0].count == 43)
        #expect(!lines[1].contains(lines[0]))
        #expect(lines[1].hasPrefix("sha256:"))
        #expect(lines[1].hasSuffix(" ana"))
        let tokens = try file("tokens", "\(lines[1])\nplain-token bob\n")
        let server = try ServerProcess(database: fixture.path, "--token-file", tokens)
        let ana = ServerClient(base: server.base, token: String(lines[0]))
        let bob = ServerClient(base: server.base, token: "plain-token")
        #expect(try await ana.post(Sample.cities(1).body).statuses == ["applied"])
        #expect(try await bob.allIDs().isEmpty)
        // The file's content is no token.
        for text in [lines[1].prefix(71), lines[1].prefix(71).dropFirst(7)] {
            let thief = ServerClient(base: server.base, token: String(text))
            #expect(try await thief.get("/v1/events").status == 401)
        }
        let again = try run(ServerProcess.binary.path, "token", "ana")
        #expect(again.text != made.text)
        #expect(try run(ServerProcess.binary.path, "token", "a b").status == 64)
    }

    @Test(.verifies("OPS-3"))
    func `a world-writable or invalid token file is refused`() throws {
        func end(_ text: String, mode: Int = 0o600) throws -> (status: Int32, message: String) {
            let path = try file("tokens", text)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            return try ServerProcess.run([
                "--port", "0", "--database", "sqlite:\(fixture.path)", "--token-file", path,
            ])
        }
        let open = try end("secret ana\n", mode: 0o666)
        #expect(open.status == 65)
        #expect(open.message.contains("chmod 600"))
        for line in ["sha256:abc ana", "sha256:\(String(repeating: "g", count: 64)) ana", "x", ""] {
            let end = try end("\(line)\n")
            #expect(end.status == 65)
            #expect(!end.message.contains("ggg"))
        }
    }

    @Test(.verifies("OPS-3"))
    func `a readable token file is used with a warning, one of digests without`()
        async throws
    {
        let made = try run(ServerProcess.binary.path, "token", "ana").text.split(separator: "\n")
        for (text, mode, isWarned) in [
            ("secret ana\n", 0o644, true), ("secret ana\n", 0o600, false),
            ("\(made[1])\n", 0o644, false), ("\(made[1])\n", 0o660, true),
        ] {
            let path = try file("tokens", text)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            let messages = fixture.folder.appending("messages")
            try Data().write(to: messages)
            let server = try ServerProcess(
                database: fixture.path, messages: FileHandle(forWritingTo: messages),
                options: ["--token-file", path])
            #expect(server.stop() == 0)
            let log = try String(contentsOf: messages, encoding: .utf8)
            #expect(log.contains("chmod 600") == isWarned, "\(text) \(mode)")
            #expect(!log.contains("secret ana"))
        }
    }

    @Test(.verifies("OPS-3"))
    func `SIGHUP makes the server read its tokens again, and an invalid file changes nothing`()
        async throws
    {
        let path = try file("tokens", "first ana\n")
        let server = try ServerProcess(database: fixture.path, "--token-file", path)
        let first = ServerClient(base: server.base, token: "first")
        let second = ServerClient(base: server.base, token: "second")
        #expect(try await first.get("/v1/events").status == 200)
        #expect(try await second.get("/v1/events").status == 401)
        _ = try file("tokens", "second ana\n")
        server.signal(SIGHUP)
        try await eventually("status", is: 200) { try await second.get("/v1/events").status }
        #expect(try await first.get("/v1/events").status == 401)
        _ = try file("tokens", "second\n")
        server.signal(SIGHUP)
        try FileManager.default.removeItem(atPath: path)
        server.signal(SIGHUP)
        _ = try file("tokens", "third bob\nsecond ana\n")
        server.signal(SIGHUP)
        let third = ServerClient(base: server.base, token: "third")
        try await eventually("status", is: 200) {
            #expect(try await second.get("/v1/events").status == 200)
            return try await third.get("/v1/events").status
        }
        #expect(server.stop() == 0)
    }

    @Test(.verifies("OPS-2"), .needsTLS) func `remote connections use TLS`() async throws {
        let key = fixture.folder.appending("key.pem").path
        let certificate = fixture.folder.appending("certificate.pem").path
        let made = try run(
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate)
        try #require(made.status == 0)
        let tokens = try file("tokens", "secret ana\n")
        let server = try ServerProcess(
            database: fixture.path,
            options: [
                "--token-file", tokens, "--tls-certificate", certificate, "--tls-key", key,
            ], scheme: "https")
        let body = try file("batch", String(decoding: Sample.cities(3).body, as: UTF8.self))
        let reply = try run(
            "curl", "--silent", "--cacert", certificate, "--header", "Authorization: Bearer secret",
            "--header", "Content-Type: application/cloudevents-batch+json", "--data-binary",
            "@\(body)", "\(server.base)/v1/events")
        #expect(reply.status == 0)
        #expect(reply.text.components(separatedBy: "applied").count == 4)
        // An untrusted certificate, an old protocol, and no TLS at all.
        #expect(try run("curl", "--silent", "\(server.base)/healthz").status == 60)
        let old = try run(
            "curl", "--silent", "--cacert", certificate, "--tls-max", "1.1",
            "\(server.base)/healthz")
        #expect(old.status == 35)
        let plain = try RawConnection(server.base)
        plain.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(!(try plain.readToEnd()).contains("200 OK"))
        #expect(server.stop() == 0)
    }

    @Test(.verifies("OPS-2"), .needsTLS)
    func `TLS 1.2 is served with forward secrecy and authenticated encryption only`() throws {
        let server = try ServerProcess(
            database: fixture.path,
            options: ["--token-file", try file("tokens", "secret ana\n")]
                + (try certificate("rsa:2048")), scheme: "https")
        let address = server.base.replacing("https://", with: "")
        func connects(_ options: String) throws -> Bool {
            try run("sh", "-c", "openssl s_client -connect \(address) \(options) < /dev/null")
                .status == 0
        }
        #expect(try connects("-tls1_3"))
        for suite in ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-CHACHA20-POLY1305"] {
            #expect(try connects("-tls1_2 -cipher \(suite)"), "\(suite)")
        }
        for suite in [
            "AES128-SHA", "AES256-SHA", "AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA",
            "ECDHE-RSA-AES256-SHA", "kRSA", "SHA1",
        ] {
            let isTaken = try connects("-tls1_2 -cipher \(suite):@SECLEVEL=0")
            #expect(!isTaken, "\(suite)")
        }
    }

    /// Creates a key and its certificate.
    ///
    /// - Returns: the options that name them.
    private func certificate(_ kind: String, _ name: String = "made") throws -> [String] {
        let key = fixture.folder.appending("\(name)-key.pem").path
        let certificate = fixture.folder.appending("\(name)-certificate.pem").path
        let made = try run(
            "openssl", "req", "-x509", "-newkey", kind, "-nodes", "-days", "2", "-subj",
            "/CN=localhost", "-keyout", key, "-out", certificate)
        try #require(made.status == 0)
        return ["--tls-certificate", certificate, "--tls-key", key]
    }

    @Test(.verifies("OPS-2"), .needsTLS)
    func `a certificate that does not match its key ends the server before it listens`() throws {
        let one = try certificate("rsa:2048", "one")
        let other = try certificate("rsa:2048", "other")
        let end = try ServerProcess.run(
            ["--port", "0", "--database", "sqlite:\(fixture.path)"] + one.prefix(2)
                + other.suffix(2))
        #expect(end.status == 65)
        #expect(end.message.contains("does not match the key \(other[3])"))
    }

    @Test(.verifies("OPS-3"))
    func `SIGHUP does not end a server that has no token file`() async throws {
        let messages = fixture.folder.appending("messages")
        try Data().write(to: messages)
        let server = try ServerProcess(
            database: fixture.path, messages: FileHandle(forWritingTo: messages), options: [])
        server.signal(SIGHUP)
        try await eventually("messages", where: { $0.contains("SIGHUP ignored") }) {
            try String(contentsOf: messages, encoding: .utf8)
        }
        #expect(try await ServerClient(base: server.base).get("/healthz").status == 200)
        #expect(server.stop() == 0)
    }

    @Test(.verifies("OPS-2"))
    func `beyond loopback the server requires tokens, and TLS or a proxy that has it`()
        async throws
    {
        let tokens = try file("tokens", "secret ana\n")
        let base = ["--port", "0", "--database", "sqlite:\(fixture.path)"]
        for options in [
            ["--host", "0.0.0.0", "--behind-tls-proxy"],
            ["--host", "0.0.0.0", "--token-file", tokens],
            ["--tls-key", tokens], ["--rate", "-1"], ["--connections", "0"],
        ] {
            #expect(try ServerProcess.run(base + options).status == 64, "\(options)")
        }
        let noCertificate = ["--tls-key", tokens, "--tls-certificate", tokens]
        let end = try ServerProcess.run(base + noCertificate)
        // Without TLS no certificate is read.
        #expect(end.status == (ServerProcess.binaryWithTLS == nil ? 69 : 65))
        #expect(!end.message.contains("secret"))
    }

    @Test(.verifies("SYNC-4", "OPS-7"))
    func `a server whose database fails is healthy, but not ready`() async throws {
        let server = try ServerProcess(database: fixture.path)
        let client = ServerClient(base: server.base)
        #expect(try await client.get("/readyz").status == 200)
        let other = try DatabaseQueue(path: fixture.path)
        try await other.write { try $0.execute(sql: "ALTER TABLE account RENAME TO gone") }
        try await eventually("status", is: 503) { try await client.get("/readyz").status }
        #expect(try await client.get("/readyz").header("Retry-After") != nil)
        #expect(try await client.get("/healthz").status == 200)
        try await other.write { try $0.execute(sql: "ALTER TABLE gone RENAME TO account") }
        try await eventually("status", is: 200) { try await client.get("/readyz").status }
    }

    @Test(.verifies("OPS-8"))
    func `the counters show requests and replies, to the operator only`() async throws {
        let tokens = try file("tokens", "secret ana\nwatch @operator\n")
        let server = try ServerProcess(database: fixture.path, "--token-file", tokens)
        let ana = ServerClient(base: server.base, token: "secret")
        let watch = ServerClient(base: server.base, token: "watch")
        var events = Sample.cities(3)
        #expect(try await ana.post(events.body).status == 200)
        events[2].data = "{}"
        events[2].id = UUID()
        let batch = Array(events[1...]).body
        #expect(try await ana.post(batch).statuses == ["duplicate", "rejected"])
        #expect(try await ana.allIDs().count == 3)
        #expect(try await ana.get("/v1/nothing-\(UUID())").status == 404)
        #expect(try await ana.get("/metrics").status == 401)
        #expect(try await ServerClient(base: server.base).get("/metrics").status == 401)
        #expect(try await watch.get("/v1/events").status == 401)
        let reply = try await watch.get("/metrics")
        #expect(reply.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
        let text = String(decoding: reply.body, as: UTF8.self)
        var samples: [String: Double] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let words = line.split(separator: " ")
            let name = line.prefix(upTo: try #require(line.lastIndex(of: " ")))
            samples[String(name)] = Double(try #require(words.last))
        }
        let prefix = "daybook_requests_total{endpoint="
        #expect(samples["\(prefix)\"POST /v1/events\",status=\"200\"}"] == 2)
        #expect(samples["\(prefix)\"GET /v1/events\",status=\"200\"}"] == 2)
        #expect(samples["\(prefix)\"GET /v1/events\",status=\"401\"}"] == 1)
        #expect(samples["\(prefix)\"GET other\",status=\"404\"}"] == 1)
        #expect(samples["daybook_verdicts_total{status=\"applied\"}"] == 3)
        #expect(samples["daybook_verdicts_total{status=\"duplicate\"}"] == 1)
        #expect(samples["daybook_verdicts_total{status=\"rejected\"}"] == 1)
        #expect(samples["daybook_events_sent_total"] == 3)
        let sent = Double(Sample.cities(3).body.count + batch.count)
        #expect(samples["daybook_body_bytes_total{direction=\"in\"}"] == sent)
        #expect(samples["daybook_request_seconds_bucket{le=\"+Inf\"}"] == 8)
        #expect(samples["daybook_request_seconds_count"] == 8)
        #expect((samples["daybook_connections_open"] ?? 0) >= 1)
        for word in ["ana", "secret", "nothing-"] { #expect(!text.contains(word)) }
    }

    @Test(.verifies("SYNC-43", "OPS-9"))
    func `each request is one line of JSON in the log, with counts and without contents`()
        async throws
    {
        let tokens = try file("tokens", "key-of-ana ana\n")
        let messages = fixture.folder.appending("messages")
        try Data().write(to: messages)
        let server = try ServerProcess(
            database: fixture.path, messages: FileHandle(forWritingTo: messages), "--token-file",
            tokens)
        let ana = ServerClient(base: server.base, token: "key-of-ana")
        #expect(try await ana.post(Sample.cities(3).body).status == 200)
        #expect(try await ana.get("/v1/events?source=\(Sample.device.text)").status == 200)
        #expect(try await ServerClient(base: server.base).get("/v1/events").status == 401)
        #expect(try await ana.get("/healthz").status == 200)
        #expect(server.stop() == 0)
        let text = try String(contentsOf: messages, encoding: .utf8)
        var requests: [[String: Any]] = []
        for line in text.split(separator: "\n") {
            let object = try #require(
                JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
            #expect(object.keys.contains("time"))
            #expect(object.keys.contains("level"))
            if object["message"] as? String == "request" { requests.append(object) }
        }
        try #require(requests.count == 3)
        // printf %s ana | sha256sum | cut -c 1-12
        #expect(requests.map { $0["account"] as? String } == ["24d4b96f58da", "24d4b96f58da", nil])
        #expect(requests.map { $0["status"] as? Int } == [200, 200, 401])
        #expect(requests.map { $0["method"] as? String } == ["POST", "GET", "GET"])
        #expect(requests.map { $0["events"] as? Int } == [3, 3, nil])
        #expect(requests[0]["applied"] as? Int == 3)
        #expect(Set(requests.compactMap { $0["request"] as? String }).count == 3)
        #expect(requests.allSatisfy { $0["milliseconds"] is Int })
        for word in ["key-of-ana", "lisbon", "city-1", Sample.device.text, "\"ana\""] {
            #expect(!text.contains(word), "\(word)")
        }
    }

    @Test(.verifies("OPS-9"))
    func `an unread log blocks no request, and not the shutdown`() async throws {
        let pipe = Pipe.betweenStarts()
        let server = try ServerProcess(
            database: fixture.path, messages: pipe.fileHandleForWriting, "--log-level", "debug")
        let connection = try RawConnection(server.base)
        let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for _ in 0..<30 {
            connection.send(String(repeating: request, count: 100))
            var count = 0
            while count < 100, let part = try connection.receive() {
                count += String(decoding: part, as: UTF8.self).count { $0 == "{" }
            }
            #expect(count == 100)
        }
        #expect(server.stop() == 0)
        try pipe.fileHandleForWriting.close()
        let log = try pipe.fileHandleForReading.readToEnd() ?? Data()
        let lines = log.count { $0 == UInt8(ascii: "\n") }
        #expect((1..<3_000).contains(lines), "the log was not held up")
    }

    @Test(.verifies("SYNC-42"))
    func `a stopping server waits for no client without limit, and accepts none`()
        async throws
    {
        let server = try ServerProcess(database: fixture.path, "--shutdown-timeout", "2")
        let slow = try RawConnection(server.base)
        slow.send(
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /v1/events HTTP/1.1\r\nHost: localhost\r\n"
                + "Content-Type: application/cloudevents-batch+json\r\nContent-Length: 9\r\n\r\n[")
        #expect(try slow.text(until: "ok\"}").contains("200"))
        server.terminate()
        try await eventually("the server refuses connections", is: true) {
            (try? RawConnection(server.base)) == nil
        }
        // The slow connection sends nothing more; the server ends nevertheless.
        #expect(server.stop() == 0)
    }
}
