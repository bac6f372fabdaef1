// Which requests are answered: the token, the host, the origin; and the decisions on the outbox.

import DaybookOffline
import EventSourcing
import FlyingFox
import Foundation
import TestSupport
import Testing

@testable import Studio

/// A handler without a server.
private struct Bench {
    static let authority = "127.0.0.1:4711"
    static let token = String(repeating: "5c", count: 16)
    static let cookie = "daybook-studio-4711=\(token)"

    let handler: StudioHandler

    /// - Parameter isWritable: true for a handler that records decisions.
    init(_ directory: String, isWritable: Bool = false) throws {
        let followed = FollowedLog(directory)
        try followed.readToEnd()
        handler = StudioHandler(
            API(followed, isWritable: isWritable), token: Self.token,
            open: isWritable ? { @Sendable in try await CompactedLog.open(directory) } : nil)
        handler.setPort(4711)
    }

    /// Sends a request with the headers of the pages. A header that is nil is left out.
    func send(
        _ method: HTTPMethod = .GET, _ target: String, _ changes: [String: String?] = [:],
        body: String = ""
    ) async throws -> HTTPResponse {
        var texts: [String: String] = ["Host": Self.authority, "Cookie": Self.cookie]
        if method == .POST { texts["Origin"] = "http://\(Self.authority)" }
        for (name, value) in changes { texts[name] = value }
        var headers = FlyingFox.HTTPHeaders()
        for (name, value) in texts { headers[HTTPHeader(name)] = value }
        return try await send(method, target, headers: headers, body: body)
    }

    func send(
        _ method: HTTPMethod, _ target: String, headers: FlyingFox.HTTPHeaders, body: String
    ) async throws -> HTTPResponse {
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        return try await handler.handleRequest(
            HTTPRequest(
                method: method, version: .http11,
                target: HTTPRequest.Target(path: parts[0], query: parts.count > 1 ? parts[1] : ""),
                headers: headers, body: HTTPBodySequence(data: Data(body.utf8))))
    }
}

extension HTTPResponse {
    fileprivate var status: Int { statusCode.code }

    fileprivate func header(_ name: String) -> String? { headers[HTTPHeader(name)] }

    fileprivate func json() async throws -> JSON {
        try JSON(text: try await bodyData)
    }

    /// The code of a refusal.
    fileprivate func code() async throws -> String? {
        try await json()["error"]?["code"]?.stringValue
    }
}

@Suite struct HandlerTests {
    private func log() throws -> SampleLog {
        let log = try SampleLog(Histories.statuses())
        try log.close()
        return log
    }

    // MARK: Access

    @Test(.verifies("STU-4"))
    func `the token is exchanged for a cookie, without which nothing is answered`() async throws {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory)
        let welcome = try await bench.send(.GET, "/?token=\(Bench.token)", ["Cookie": nil])
        #expect(welcome.status == 303)
        #expect(welcome.header("Location") == "/")
        let cookie = try #require(welcome.header("Set-Cookie"))
        let parts = cookie.split(separator: "; ").map(String.init)
        #expect(parts.first == Bench.cookie)
        #expect(Set(parts.dropFirst()) == ["Path=/", "HttpOnly", "SameSite=Strict"])
        let wrong = String(Bench.token.dropLast()) + "0"
        for target in ["/?token=\(wrong)", "/?token=", "/?token=\(Bench.token)0"] {
            let refused = try await bench.send(.GET, target, ["Cookie": nil])
            #expect(refused.status == 401, "\(target)")
            #expect(try await refused.code() == "noToken")
            #expect(refused.header("Set-Cookie") == nil)
        }
        for cookie in [
            nil, "", Bench.token, "daybook-studio-4712=\(Bench.token)",
            "daybook-studio-4711=\(wrong)", "daybook-studio-4711=", "\(Bench.cookie)0",
            "x\(Bench.cookie)",
        ] {
            for target in [
                "/", "/studio.js", "/api/log", "/nowhere", "/api/log?token=\(Bench.token)",
            ] {
                let refused = try await bench.send(.GET, target, ["Cookie": cookie])
                #expect(refused.status == 401, "\(target) \(cookie ?? "")")
            }
            let decision = try await bench.send(.POST, "/api/outbox/retry", ["Cookie": cookie])
            #expect(decision.status == 401)
        }
        for cookie in [Bench.cookie, "a=b; \(Bench.cookie)", "\(Bench.cookie);c=d"] {
            #expect(try await bench.send(.GET, "/api/log", ["Cookie": cookie]).status == 200)
        }
    }

    @Test(.verifies("STU-5"))
    func `a request of another name or of another site is refused`() async throws {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory)
        for host in [nil, "", "localhost:4711", "127.0.0.1", "127.0.0.1:4712", "evil.example:4711"]
        {
            for target in ["/", "/api/log", "/favicon.ico", "/?token=\(Bench.token)"] {
                let refused = try await bench.send(.GET, target, ["Host": host])
                #expect(refused.status == 421, "\(target) \(host ?? "")")
                #expect(try await refused.code() == "wrongHost")
            }
        }
        var twice = FlyingFox.HTTPHeaders()
        twice[.cookie] = Bench.cookie
        twice.setValues([Bench.authority, Bench.authority], for: .host)
        let refused = try await bench.send(.GET, "/api/log", headers: twice, body: "")
        #expect(refused.status == 421)
        for (site, status) in [
            ("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403),
        ] {
            let reply = try await bench.send(.GET, "/api/log", ["Sec-Fetch-Site": site])
            #expect(reply.status == status, "\(site)")
        }
        // A link on another site's page may lead to the first page.
        #expect(try await bench.send(.GET, "/", ["Sec-Fetch-Site": "cross-site"]).status == 200)
        for origin in [
            nil, "null", "http://evil.example", "https://127.0.0.1:4711", "http://127.0.0.1",
        ] {
            let refused = try await bench.send(.POST, "/api/outbox/retry", ["Origin": origin])
            #expect(refused.status == 403, "\(origin ?? "")")
            #expect(try await refused.code() == "crossSite")
        }
    }

    @Test(.verifies("STU-6")) func `every reply has the headers that confine the pages`()
        async throws
    {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory)
        let replies = [
            try await bench.send(.GET, "/"), try await bench.send(.GET, "/studio.js"),
            try await bench.send(.GET, "/api/log"), try await bench.send(.GET, "/api/export"),
            try await bench.send(.GET, "/nowhere"), try await bench.send(.GET, "/favicon.ico"),
            try await bench.send(.GET, "/?token=\(Bench.token)"),
            try await bench.send(.GET, "/", ["Host": "evil.example"]),
            try await bench.send(.POST, "/api/outbox/retry"),
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
            let page = try await bench.send(.GET, "/\(name)")
            guard !StudioPages.modules.contains(name) else {
                // The modules are sent as one script.
                #expect(page.status == (name == "studio.js" ? 200 : 404))
                continue
            }
            #expect(page.status == 200)
            #expect(try await Array(page.bodyData) == Array(text.utf8))
        }
        let script = try await bench.send(.GET, "/studio.js")
        #expect(try await Array(script.bodyData) == Array(StudioPages.script.utf8))
        let list = try await bench.send(.GET, "/api/events?type=com.example.visit&limit=1")
        #expect(try await list.json()["total"]?.int == 1)
        for (target, status) in [
            ("/nowhere", 404), ("/api", 404), ("/api/none", 404), ("/api/events?limit=0", 400),
            ("/api/events/12", 404), ("/Pages/studio.js", 404),
        ] {
            let reply = try await bench.send(.GET, target)
            #expect(reply.status == status, "\(target)")
            #expect(try await reply.code() != nil)
        }
        for method in [HTTPMethod.PUT, .DELETE, .PATCH, .OPTIONS, .HEAD] {
            #expect(try await bench.send(method, "/api/log").status == 405)
        }
    }

    // MARK: Decisions

    private func body(_ number: Int, _ members: String = "") -> String {
        "{\"id\":\"\(Histories.id(number))\"\(members)}"
    }

    private func statuses(_ directory: String) throws -> [EventStatus] {
        let followed = FollowedLog(directory)
        try followed.readToEnd()
        return followed.statuses
    }

    @Test(.verifies("STU-2")) func `without --write a decision is refused`() async throws {
        let log = try log()
        defer { log.remove() }
        let bench = try Bench(log.directory)
        let image = try log.folder.image()
        for path in ["retry", "discard", "resolve"] {
            let refused = try await bench.send(.POST, "/api/outbox/\(path)", body: body(3))
            #expect(refused.status == 403)
            #expect(try await refused.code() == "readOnly")
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
        let reply = try await bench.send(
            .POST, "/api/outbox/\(decision.path)", body: body(decision.number, decision.members))
        #expect(reply.status == 200)
        let done = try await reply.json()["done"]?.list ?? []
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
            ("discard", body(2), 409, "notHeld"), ("discard", body(3), 409, "hasDependents"),
            ("resolve", body(1, ",\"keep\":\"mine\""), 404, "notInOutbox"),
            ("resolve", body(5), 400, "badRequest"),
            ("resolve", body(5, ",\"keep\":\"both\""), 400, "badRequest"),
            ("retry", "", 400, "badRequest"), ("retry", "[]", 400, "badRequest"),
            ("retry", "{\"id\":7}", 400, "badRequest"), ("retry", "{", 400, "badRequest"),
            ("retry", "{\"id\":\"7\"}", 400, "badRequest"),
            ("retry", body(3, large), 400, "badRequest"), ("erase", body(3), 404, "notFound"),
        ] as [(String, String, Int, String)] {
            let refused = try await bench.send(.POST, "/api/outbox/\(path)", body: body)
            let json = try await refused.json()
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
        let refused = try await bench.send(.POST, "/api/outbox/retry", body: body(3))
        #expect(refused.status == 503)
        #expect(try await refused.code() == "locked")
        #expect(try await bench.send(.GET, "/api/outbox").status == 200)
        try await writer.close()
        #expect(try await bench.send(.POST, "/api/outbox/retry", body: body(3)).status == 200)
    }
}
