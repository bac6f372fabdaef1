// Which requests are answered: the key, the host, the origin; and the decisions on the outbox.

import DaybookOffline
import EventSourcing
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Studio

/// A handler without a server.
private struct Bench {
    static let authority = "127.0.0.1:4711"
    static let key = String(repeating: "5c", count: 16)

    let handler: StudioHandler

    /// - Parameter isWritable: true for a handler that records decisions.
    init(_ directory: String, isWritable: Bool = false) throws {
        let followed = FollowedLog(LogFolder(directory))
        try followed.readToEnd()
        handler = StudioHandler(
            API(followed, isWritable: isWritable), key: Self.key,
            open: isWritable ? { @Sendable in try await CompactedLog.open(directory) } : nil)
        handler.setPort(4711)
    }

    /// Sends a request with the fields of the pages. A field that is nil is left out.
    func send(
        _ method: String = "GET", _ target: String, _ changes: [String: String?] = [:],
        body: String = ""
    ) async -> APIReply {
        var fields = ["Host": Self.authority, "Authorization": "Bearer \(Self.key)"]
        if method == "POST" { fields["Origin"] = "http://\(Self.authority)" }
        if !body.isEmpty { fields["Content-Length"] = "\(body.utf8.count)" }
        for (name, value) in changes { fields[name] = value }
        return await send(
            ["\(method) \(target) HTTP/1.1"] + fields.map { "\($0.key): \($0.value)" }, body)
    }

    func send(_ lines: [String], _ body: String = "") async -> APIReply {
        do throws(APIError) {
            let head = try RequestHead(Array(lines.joined(separator: "\r\n").utf8))
            try handler.check(head)
            return await handler.reply(to: head, Array(body.utf8))
        } catch { return APIReply(error) }
    }
}

extension APIReply {
    fileprivate func header(_ name: String) -> String? { fields.first { $0.name == name }?.value }

    /// The code of a refusal.
    fileprivate func code() throws -> String? {
        try json()["error"]?["code"]?.stringValue
    }
}

@Suite struct HandlerTests {
    private func log() throws -> SampleLog {
        let log = try SampleLog(Histories.statuses())
        try log.close()
        return log
    }

    // MARK: Access

    @Test(.verifies("STU-4")) func `without the key nothing of the log is answered`() async throws {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory, isWritable: true)
        let wrong = String(Bench.key.dropLast()) + "0"
        for value in [
            nil, "", Bench.key, "Bearer", "Bearer \(wrong)", "Bearer \(Bench.key)0",
            "Basic \(Bench.key)", "bearer  \(Bench.key)",
        ] {
            for target in ["/api/log", "/nowhere", "/api/log?token=\(Bench.key)", "/api"] {
                let refused = await bench.send("GET", target, ["Authorization": value])
                #expect(refused.status == 401, "\(target) \(value ?? "")")
                #expect(try refused.code() == "noToken")
                #expect(refused.header("WWW-Authenticate") == "Bearer")
            }
            let decision = await bench.send("POST", "/api/outbox/retry", ["Authorization": value])
            #expect(decision.status == 401)
            // A browser cannot send the key before it has the page.
            let page = await bench.send("GET", "/?token=\(wrong)", ["Authorization": value])
            #expect(page.status == 200)
        }
        let cookie = ["Authorization": nil, "Cookie": "daybook-studio-4711=\(Bench.key)"]
        #expect(await bench.send("GET", "/api/log", cookie).status == 401)
        #expect(await bench.send("GET", "/api/log").status == 200)
    }

    @Test(.verifies("STU-13")) func `a code is exchanged for the key once`() async throws {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory)
        let ends = Mutex(0)
        func exchange(_ code: String, _ origin: String? = "http://\(Bench.authority)") async
            -> APIReply
        {
            await bench.send(
                "POST", "/api/key", ["Authorization": nil, "Origin": origin],
                body: "{\"code\":\"\(code)\"}")
        }
        #expect(await exchange("a1").status == 401)
        bench.handler.setCode("a1") { ends.withLock { $0 += 1 } }
        #expect(await exchange("a2").status == 401)
        #expect(await exchange("a1", "http://127.0.0.1:4712").status == 403)
        #expect(ends.withLock { $0 } == 0)
        #expect(try await exchange("a1").json()["key"]?.stringValue == Bench.key)
        #expect(ends.withLock { $0 } == 1)
        #expect(await exchange("a1").status == 401)
        bench.handler.setCode("a3") { ends.withLock { $0 += 1 } }
        bench.handler.withdrawCode()
        #expect(await exchange("a3").status == 401)
        #expect(ends.withLock { $0 } == 2)
    }

    @Test(.verifies("STU-14")) func `a request is refused by its head`() async throws {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory, isWritable: true)
        func status(_ first: String, _ fields: String...) async -> Int {
            let required = ["Host: \(Bench.authority)", "Authorization: Bearer \(Bench.key)"]
            return await bench.send([first] + required + fields).status
        }
        for length in ["65537", "41943040", "99999999999999999999"] {
            let refused = await bench.send(
                "POST", "/api/outbox/retry", ["Content-Length": length])
            #expect(refused.status == 413, "\(length)")
        }
        // Without the key its size does not matter.
        let large: [String: String?] = ["Authorization": nil, "Content-Length": "41943040"]
        #expect(await bench.send("POST", "/api/outbox/retry", large).status == 401)
        #expect(await status("GET /api/log HTTP/1.1", "Content-Length: -1") == 400)
        #expect(await status("GET /api/log HTTP/1.1", "Content-Length: 1, 1") == 400)
        #expect(
            await status("GET /api/log HTTP/1.1", "Content-Length: 1", "Content-Length: 1") == 400)
        #expect(await status("GET /api/log HTTP/1.1", "Transfer-Encoding: chunked") == 411)
        #expect(await status("GET /api/log HTTP/2.0") == 505)
        #expect(await status("GET http://127.0.0.1:4711/ HTTP/1.1") == 400)
        #expect(await status("GET /api/log HTTP/1.1", "no field") == 400)
        #expect(await status("GET /api/log HTTP/1.1", "Name : value") == 400)
        #expect(await status("") == 400)
        #expect(await status("GET /api/log HTTP/1.0") == 200)
    }

    @Test(.verifies("STU-5"))
    func `a request of another name or of another site is refused`() async throws {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory)
        for host in [nil, "", "localhost:4711", "127.0.0.1", "127.0.0.1:4712", "evil.example:4711"]
        {
            for target in ["/", "/api/log", "/favicon.ico", "/?token=\(Bench.key)"] {
                let refused = await bench.send("GET", target, ["Host": host])
                #expect(refused.status == 421, "\(target) \(host ?? "")")
                #expect(try refused.code() == "wrongHost")
            }
        }
        let host = "Host: \(Bench.authority)"
        let key = "Authorization: Bearer \(Bench.key)"
        let refused = await bench.send(["GET /api/log HTTP/1.1", host, host, key])
        #expect(refused.status == 421)
        for (site, status) in [
            ("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403),
        ] {
            let reply = await bench.send("GET", "/api/log", ["Sec-Fetch-Site": site])
            #expect(reply.status == status, "\(site)")
        }
        // A link on another site's page may lead to the first page.
        #expect(await bench.send("GET", "/", ["Sec-Fetch-Site": "cross-site"]).status == 200)
        for origin in [
            nil, "null", "http://evil.example", "https://127.0.0.1:4711", "http://127.0.0.1",
        ] {
            let refused = await bench.send("POST", "/api/outbox/retry", ["Origin": origin])
            #expect(refused.status == 403, "\(origin ?? "")")
            #expect(try refused.code() == "crossSite")
        }
    }

    @Test(.verifies("STU-6")) func `every reply has the headers that confine the pages`()
        async throws
    {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory)
        let replies = [
            await bench.send("GET", "/"), await bench.send("GET", "/studio.js"),
            await bench.send("GET", "/api/log"), await bench.send("GET", "/api/export"),
            await bench.send("GET", "/nowhere"), await bench.send("GET", "/favicon.ico"),
            await bench.send("GET", "/api/log", ["Authorization": nil]),
            await bench.send("GET", "/", ["Host": "evil.example"]),
            await bench.send("POST", "/api/outbox/retry"),
        ]
        for reply in replies {
            let policy = try #require(reply.header("Content-Security-Policy"))
            let rules = Set(policy.split(separator: "; ").map(String.init))
            #expect(
                rules == [
                    "default-src 'self'", "base-uri 'none'", "form-action 'none'",
                    "frame-ancestors 'none'", "object-src 'none'",
                ])
            #expect(reply.header("X-Content-Type-Options") == "nosniff")
            #expect(reply.header("Referrer-Policy") == "no-referrer")
            #expect(reply.header("Cross-Origin-Resource-Policy") == "same-origin")
            #expect(reply.header("Cache-Control") == "no-store")
        }
        #expect(replies[0].header("Content-Type") == "text/html; charset=utf-8")
        #expect(replies[1].header("Content-Type") == "text/javascript; charset=utf-8")
        #expect(replies[2].header("Content-Type") == "application/json")
        #expect(
            replies[3].header("Content-Disposition") == "attachment; filename=\"events.ndjson\"")
        #expect(replies[5].status == 204)
    }

    @Test(.verifies("STU-12")) func `pages, answers and refusals are sent`() async throws {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory)
        for (name, text) in StudioPages.files {
            let page = await bench.send("GET", "/\(name)")
            guard !StudioPages.modules.contains(name) else {
                // The modules are sent as one script.
                #expect(page.status == (name == "studio.js" ? 200 : 404))
                continue
            }
            #expect(page.status == 200)
            #expect(page.body == Array(text.utf8))
        }
        let script = await bench.send("GET", "/studio.js")
        #expect(script.body == Array(StudioPages.script.utf8))
        let list = await bench.send("GET", "/api/events?type=com.example.visit&limit=1")
        #expect(try list.json()["total"]?.int == 1)
        for (target, status) in [
            ("/nowhere", 404), ("/api", 404), ("/api/none", 404), ("/api/events?limit=0", 400),
            ("/api/events/12", 404), ("/Pages/studio.js", 404),
        ] {
            let reply = await bench.send("GET", target)
            #expect(reply.status == status, "\(target)")
            #expect(try reply.code() != nil)
        }
        for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"] {
            #expect(await bench.send(method, "/api/log").status == 405)
        }
    }

    // MARK: Decisions

    private func body(_ number: Int, _ members: String = "") -> String {
        "{\"id\":\"\(Histories.id(number))\"\(members)}"
    }

    private func statuses(_ directory: String) throws -> [EventStatus] {
        let followed = FollowedLog(LogFolder(directory))
        try followed.readToEnd()
        return followed.statuses
    }

    @Test(.verifies("STU-2")) func `without --write a decision is refused`() async throws {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory)
        let image = try log.folder.image()
        for path in ["retry", "discard", "resolve"] {
            let refused = await bench.send("POST", "/api/outbox/\(path)", body: body(3))
            #expect(refused.status == 403)
            #expect(try refused.code() == "readOnly")
        }
        #expect(try log.folder.image() == image)
    }

    /// A decision as a request and as options of `logtool parked`.
    struct Decision: Sendable, CustomTestStringConvertible {
        var path: String
        var number: Int
        var members = ""
        var options: [String]
        /// The number of events whose status it changes, records not counted.
        var changed: Int
        var testDescription: String { "\(path)\(members)" }
    }

    private static let decisions = [
        Decision(path: "retry", number: 3, options: ["--retry"], changed: 1),
        Decision(path: "retry", number: 5, options: ["--retry"], changed: 1),
        Decision(path: "discard", number: 4, options: ["--discard"], changed: 1),
        Decision(
            path: "discard", number: 3, members: ",\"withDependents\":true",
            options: ["--with-dependents", "--discard"], changed: 2),
        Decision(
            path: "resolve", number: 5, members: ",\"keep\":\"theirs\"",
            options: ["--keep", "theirs", "--resolve"], changed: 1),
        Decision(
            path: "resolve", number: 5, members: ",\"keep\":\"mine\"",
            options: ["--keep", "mine", "--resolve"], changed: 1),
    ]

    @Test(.verifies("STU-2", "STU-12"), arguments: decisions)
    func `a decision does what logtool parked does`(decision: Decision) async throws {
        let (log, other) = (try log(), try log())
        defer {
            log.remove()
            other.remove()
        }
        let bench = try Bench(log.directory, isWritable: true)
        let reply = await bench.send(
            "POST", "/api/outbox/\(decision.path)", body: body(decision.number, decision.members))
        #expect(reply.status == 200)
        let done = try reply.json()["done"]?.list ?? []
        let arguments =
            ["parked", other.directory] + decision.options + [Histories.id(decision.number).text]
        let run = try Logtool.run(arguments)
        #expect(run.status == 0, "\(run.messages)")
        let lines = try run.output.split(separator: "\n").map {
            try JSON(text: $0.utf8)
        }
        #expect(!done.isEmpty)
        #expect(done.map { $0["done"] } == lines.map { $0["done"] })
        // The ids of newly recorded events are random.
        let isOld = { (row: JSON) in row["done"]?.stringValue != "recorded" }
        #expect(done.filter(isOld) == lines.filter(isOld))
        let after = try statuses(log.directory)
        #expect(try after == statuses(other.directory))
        let changed = zip(Histories.expectedStatuses, after).count { $0 != $1 }
        #expect(changed == decision.changed)
        #expect(after.count > Histories.expectedStatuses.count)
    }

    @Test(.verifies("STU-2", "STU-12"))
    func `a decision that is not possible is refused, and the log is closed again`() async throws {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory, isWritable: true)
        let large = ",\"x\":\"\(String(repeating: "x", count: 64 * 1_024))\""
        for (path, body, status, code) in [
            ("retry", body(1), 404, "notInOutbox"), ("retry", body(2), 409, "notHeld"),
            ("discard", body(3), 409, "hasDependents"),
            ("resolve", body(1, ",\"keep\":\"mine\""), 404, "notInOutbox"),
            ("resolve", body(5), 400, "badRequest"),
            ("resolve", body(5, ",\"keep\":\"both\""), 400, "badRequest"),
            ("retry", "", 400, "badRequest"), ("retry", "[]", 400, "badRequest"),
            ("retry", "{\"id\":7}", 400, "badRequest"), ("retry", "{", 400, "badRequest"),
            ("retry", "{\"id\":\"7\"}", 400, "badRequest"),
            ("retry", body(3, large), 413, "tooLarge"), ("erase", body(3), 404, "notFound"),
        ] as [(String, String, Int, String)] {
            let refused = await bench.send("POST", "/api/outbox/\(path)", body: body)
            let json = try refused.json()
            #expect(refused.status == status, "\(path) \(body.prefix(80))")
            #expect(json["error"]?["code"]?.stringValue == code)
            let dependents = json["error"]?["dependents"]?.list.compactMap(\.stringValue)
            #expect(dependents == (code == "hasDependents" ? [Histories.id(4).text] : nil))
        }
        #expect(try statuses(log.directory) == Histories.expectedStatuses)
        try await CompactedLog.open(log.directory).close()
    }

    @Test(.verifies("STU-2")) func `while a writer has the log open, a decision is 503`()
        async throws
    {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory, isWritable: true)
        let writer = try await CompactedLog.open(log.directory)
        let refused = await bench.send("POST", "/api/outbox/retry", body: body(3))
        #expect(refused.status == 503)
        #expect(try refused.code() == "locked")
        #expect(await bench.send("GET", "/api/outbox").status == 200)
        try await writer.close()
        #expect(await bench.send("POST", "/api/outbox/retry", body: body(3)).status == 200)
    }
}
