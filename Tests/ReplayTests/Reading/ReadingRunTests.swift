// What reading costs a run: cursors, tokens, waits that the API asks for, pages of more than a commit.
// Spec/protocol/reading.md, READ-2 and READ-7.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import RequestHistories
import Synchronization
import TestSupport
import Testing

@testable import Replay

/// Answers requests with the token that they have.
private struct TokenAPI: APIClient {
    let answer: @Sendable (BoundedHTTPRequest, String?) throws -> APIAnswer

    func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
        try answer(request, token)
    }
}

/// Has a new token for each one that is refused, as long as there are some.
private final class Tokens: Credentials {
    let left: Mutex<[String]>
    let asked = Mutex(0)

    init(_ tokens: [String]) { left = Mutex(tokens) }

    func token() -> AccessToken? {
        asked.withLock { $0 += 1 }
        return left.withLock { $0.first.map { AccessToken($0) } }
    }

    func refresh(_ old: AccessToken?) -> AccessToken? {
        left.withLock { left in
            if left.count > 1 { left.removeFirst() }
            return left.first.map { AccessToken($0) }
        }
    }
}

@Suite struct ReadingRunTests {
    @Test(.verifies("READ-2"))
    func `a cursor that is too long is reported, and those of the other sources are recorded`()
        async throws
    {
        var manners = PlacesAPI.Manners()
        (manners.places, manners.shops) = (.cursor, .cursor)
        let asked = Mutex<[String?]>([])
        let api = PlacesAPI(manners) { request in
            let url = URLComponents(url: request.url, resolvingAgainstBaseURL: false)
            let after = url?.queryItems?.first { $0.name == "after" }?.value
            asked.withLock { $0.append("\(request.url.lastPathComponent) \(after ?? "-")") }
            return .answered
        }
        api.set("p1", "title")
        api.set("s1", "title")
        let long = PullSource(of: ShopState.self, .cursor, list: "data") { _ in
            APIRequest(.get, "shops")
        } next: { _ in
            String(repeating: "x", count: 5_000)
        } state: { (row: PlaceRow, _) in
            ShopState(place: row.id, title: row.title, number: row.rev)
        }
        let device = try await PlacesDevice(api)
        let report = try await device.run(sources: [long, api.source])
        #expect(report.received == 2)
        #expect(report.message?.contains("cursor") == true)
        asked.withLock { $0 = [] }
        try await device.run(sources: [long, api.source])
        #expect(asked.withLock { $0.contains("places 1") })
    }

    @Test(.verifies("READ-2"))
    func `the tag of a list of which an element cannot be recorded is not recorded`() async throws {
        let tags = Mutex<[String?]>([])
        let api = PlacesAPI(.everything) { request in
            tags.withLock { tags in
                tags.append(request.fields.first { $0.name == "If-None-Match" }?.value)
            }
            return .answered
        }
        api.set("a", "title")
        api.set("b", "the token abcdefgh12345678")
        let device = try await PlacesDevice(api)
        let user = BearerToken("abcdefgh12345678")
        for _ in 1...2 {
            let report = try await device.run(as: user)
            #expect(report.unusable == 1)
        }
        #expect(tags.withLock { $0 } == [nil, nil])
        api.set("b", "title")
        try await device.run(as: user)
        #expect(device.titles == api.titles)
    }

    @Test(.verifies("READ-2"))
    func `an element that cannot be recorded does not hold the cursor`() async throws {
        let api = PlacesAPI(.cursor)
        api.set("a", "title")
        api.set("b", String(repeating: "x", count: 2_000_000))
        let device = try await PlacesDevice(api)
        #expect(try await device.run().unusable == 1)
        #expect(device.titles == ["a": "title"])
        let second = try await device.run()
        #expect((second.unusable, second.received) == (0, 0))
    }

    @Test(.verifies("READ-2"))
    func `a page of more than a commit is recorded in several, the cursor with the last`()
        async throws
    {
        let api = PlacesAPI(.cursor)
        for number in 0..<40 {
            api.set("p\(number)", String(repeating: "\(number % 10)", count: 60_000))
        }
        var device = try await PlacesDevice(api)
        #expect(try await device.run().received == 40)
        let log = try device.log()
        let states = log.filter { $0.type == PlaceState.type }
        let cursors = log.filter {
            (try? SyncPulled(json: $0.content.json ?? []))?.next?.contains("place.state") == true
        }
        #expect(states.count == 40)
        #expect(cursors.count == 1)
        #expect(try #require(cursors.first).position > #require(states.last).position)
        try await device.reopen()
        #expect(device.titles == api.titles)
        #expect(try await device.run().received == 0)
    }

    @Test(.verifies("READ-7"))
    func `a read whose token is refused is sent again with a new one`() async throws {
        let api = PlacesAPI(.since)
        api.set("p", "title")
        let used = Mutex<[String?]>([])
        let client = TokenAPI { request, token in
            used.withLock { $0.append(token) }
            return token == "new-token" ? try api.respond(to: request) : .json(401, "{}")
        }
        let device = try await PlacesDevice(api)
        let report = try await device.run(as: Tokens(["old-token", "new-token"]), over: client)
        #expect((report.received, report.message) == (1, nil))
        #expect(used.withLock { $0.first } == "old-token")
        #expect(used.withLock { Set($0.dropFirst()) } == ["new-token"])
    }

    @Test(.verifies("READ-7"))
    func `a token that the API refuses only for reading does not stop a run without end`()
        async throws
    {
        let api = PlacesAPI(.since)
        api.set("q", "theirs")
        let tokens = Tokens(["first-token"])
        let refused = Mutex(0)
        let client = TokenAPI { request, token in
            guard request.method == .get, token == "first-token" else {
                return try api.respond(to: request)
            }
            refused.withLock { $0 += 1 }
            return .json(401, "{}")
        }
        let device = try await PlacesDevice(api)
        try await withRun(of: device, over: client, as: tokens) { now in
            try await eventually("refused reads", where: { $0 > 0 }) { refused.withLock { $0 } }
            try await device.title("p", "one")
            try await eventually("titles", is: "one" as String?) { api.titles["p"] }
            now()
            try await device.title("p", "two")
            try await eventually("titles", is: "two" as String?) { api.titles["p"] }
            #expect(device.titles == ["p": "two"])
            // The user signs in again.
            tokens.left.withLock { $0 = ["second-token"] }
            try await eventually("the list is read", is: "theirs" as String?) {
                now()
                return device.titles["q"]
            }
        }
    }

    @Test(.verifies("READ-7"))
    func `reads wait as long as the API asks, and changes do not`() async throws {
        let reads = Mutex(0)
        let api = PlacesAPI(.since) { request in
            guard request.method == .get else { return .answered }
            reads.withLock { $0 += 1 }
            return .instead(
                APIAnswer(
                    status: 429,
                    headers: ["Content-Type": "application/json", "Retry-After": "3600"],
                    body: Array("{}".utf8)))
        }
        let device = try await PlacesDevice(api)
        try await withRun(of: device, over: api) { now in
            try await eventually("reads", is: 1) { reads.withLock { $0 } }
            for title in ["one", "two", "three"] {
                try await device.title("p", title)
                try await eventually("titles", is: title as String?) { api.titles["p"] }
                now()
            }
            try await device.title("p", "four")
            try await eventually("titles", is: "four" as String?) { api.titles["p"] }
        }
        #expect(reads.withLock { $0 } == 1)
    }

    /// Runs without end while `body` lasts, which gets a function that asks for an exchange now.
    private func withRun(
        of device: PlacesDevice, over client: any APIClient,
        as user: any Credentials = NoCredentials(),
        _ body: (_ now: () -> Void) async throws -> Void
    ) async throws {
        let transport = try RequestTransport(
            device.store, api: "places", at: #require(URL(string: "https://api.example.com/v1")),
            promise: .once(keysKeptFor: nil), reading: device.api.sources, client: client)
        let (triggers, signal) = AsyncStream.makeStream(of: Replayer.Trigger.self)
        let replayer = Replayer(device.store, transport: transport, credentials: user)
        let run = Task { try await replayer.run(until: .never, triggers: triggers) }
        do { try await body { signal.yield(.now) } } catch {
            run.cancel()
            throw error
        }
        run.cancel()
        _ = try await run.value
    }
}
