// States read from an app's own API: what is recorded, what waits, what is in conflict. Spec/protocol/reading.md.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import Replay

@Suite struct ReadingTests {
    @Test(.verifies("READ-3", "READ-4", "READ-5", "READ-6", "READ-7"))
    func
        `views are the API's state with the user's changes, whatever is lost and whenever the app is killed`()
        async throws
    {
        let report = try await Property.check(
            "reading", runs: ReadingHistory.runs,
            covering: [
                "since", "cursor", "everything", "lost answers", "kills", "late lists", "conflicts",
                "lost by decision",
            ]
        ) { choices in
            try await ReadingHistory.check(&choices)
        }
        print("\(report.runs) histories, \(report.counts.sorted { $0.key < $1.key })")
    }

    @Test(.verifies("READ-1", "READ-2"), arguments: PlacesAPI.Form.allCases)
    func `pages of each form are read whole, and reading again changes nothing`(
        _ form: PlacesAPI.Form
    ) async throws {
        let api = PlacesAPI(form, limit: 3)
        for number in 0..<8 { api.set("p\(number)", "title \(number)") }
        var device = try await PlacesDevice(api)
        #expect(try await device.run().received == 8)
        #expect(device.titles == api.titles)
        let length = try device.log().count
        try await device.reopen()
        let report = try await device.run()
        #expect(report.received == 0)
        #expect(report.message == nil)
        #expect(try device.log().count == length)
        api.set("p3", "another")
        api.delete("p4")
        #expect(try await device.run().received == 2)
        #expect(device.titles == api.titles)
    }

    @Test(.verifies("READ-3"))
    func `a version that comes back is shown again, also behind the tag of the list`() async throws
    {
        let api = PlacesAPI(.everything, hasTags: true)
        api.set("p", "a")
        let device = try await PlacesDevice(api, teaches: false)
        for title in ["a", "b", "a"] {
            api.set("p", title)
            try await device.run()
            #expect(device.titles == ["p": title])
        }
        // Changed here, and changed back elsewhere: list and tag are as they were read.
        try await device.title("p", "mine")
        try await device.run()
        api.set("p", "a")
        try await device.run()
        #expect(device.titles == ["p": "a"])
    }

    @Test(.verifies("READ-4"), arguments: [true, false])
    func `a change that is not sent is in conflict with a newer state, and the resolver decides`(
        _ keepsMine: Bool
    ) async throws {
        let api = PlacesAPI(.since)
        api.set("p", "first")
        let device = try await PlacesDevice(api)
        try await device.run()
        try await device.title("p", "mine")
        api.set("p", "theirs")
        let report = try await device.run(ships: false)
        #expect(report.conflict == 1)
        let entry = try #require(device.outbox.entries.first { _ in true })
        #expect(entry.status == .conflict)
        let read = try #require(try device.log().last { $0.type == PlaceState.type })
        #expect(entry.conflictsWith == read.id)
        let resolver: any ConflictResolver = keepsMine ? KeepMine() : KeepTheirs()
        #expect(try await device.run(deciding: resolver).resolved == 1)
        #expect(device.outbox.count == 0)
        #expect(api.titles == ["p": keepsMine ? "mine" : "theirs"])
        #expect(device.titles == api.titles)
    }

    @Test(.verifies("READ-4"))
    func `a change that the API refuses by If-Match meets the state that has won`() async throws {
        let api = PlacesAPI(.everything, hasTags: true)
        api.set("p", "first")
        let device = try await PlacesDevice(api)
        try await device.run()
        api.set("p", "theirs")
        try await device.title("p", "mine")
        let seen = Mutex<String?>(nil)
        let report = try await device.run(
            deciding: Merge { conflict in
                let current = try conflict.current.map { try PlaceState(json: $0.json ?? []) }
                seen.withLock { $0 = current?.title }
                return try EventDraft(PlaceTitled(place: "p", title: "both"))
            })
        #expect(seen.withLock { $0 } == "theirs")
        #expect(report.resolved == 1)
        #expect(api.titles == ["p": "both"])
        #expect(device.titles == api.titles)
    }

    @Test(.verifies("READ-4", "READ-6"))
    func `a state waits for the answer to a change, whose echo is no conflict`() async throws {
        let isLost = Mutex(true)
        let api = PlacesAPI(.since) { request in
            request.method != .get && isLost.withLock { $0 } ? .lostAnswer : .answered
        }
        let device = try await PlacesDevice(api)
        try await device.title("p", "mine")
        let first = try await device.run(deciding: KeepTheirs())
        #expect(first.conflict == 0)
        #expect(device.titles == ["p": "mine"])
        isLost.withLock { $0 = false }
        device.clock.advance(by: .seconds(3_700))
        let second = try await device.run(deciding: KeepTheirs())
        #expect((second.pending, second.conflict) == (0, 0))
        #expect(api.state.withLock { $0.applied } == ["mine": 1])
        // The answer has taught the version: reading it is nothing new.
        #expect(try device.count(PlaceState.type) == 1)
        try await device.title("p", "next")
        #expect(try await device.run().conflict == 0)
        #expect(api.titles == ["p": "next"])
    }

    @Test(.verifies("READ-6"))
    func `an answer that teaches does not hide a later change`() async throws {
        let api = PlacesAPI(.since)
        let device = try await PlacesDevice(api)
        let titles = Mutex<[String?]>([])
        try await device.title("p", "one")
        try await device.title("p", "two")
        let places = device.store.changes(of: Places.self)
        let watch = Task {
            for await view in places { titles.withLock { $0.append(view.titles["p"]) } }
        }
        #expect(try await device.run().conflict == 0)
        watch.cancel()
        #expect(titles.withLock { !$0.contains("one") })
        #expect(api.titles == ["p": "two"])
        #expect(device.titles == ["p": "two"])
    }

    @Test(.verifies("READ-5"))
    func `only a complete list shows that an entity is gone, and never one that was not sent`()
        async throws
    {
        let answer = Mutex<APIAnswer?>(nil)
        let api = PlacesAPI(.everything) { request in
            guard request.method == .get else { return .lostRequest }
            return answer.withLock { $0.map { .instead($0) } ?? .answered }
        }
        api.set("a", "1")
        api.set("b", "2")
        let device = try await PlacesDevice(api)
        try await device.run()
        try await device.title("c", "offline")
        let shown = ["a": "1", "b": "2", "c": "offline"]
        let broken: [APIAnswer] = [
            .page(200), .json(503, "[]"), .json(206, #"{"data":[]}"#),
            .json(200, #"{"error":"x"}"#),
            .json(200, #"{"data":[{"id":"a","title":"1","rev":1,"deleted":false},{"id":7}]}"#),
            APIAnswer(
                status: 200,
                headers: ["Content-Type": "application/json", "Content-Length": "900"],
                body: Array(#"{"data":[]}"#.utf8)),
        ]
        for broken in broken {
            answer.withLock { $0 = broken }
            try await device.run()
            #expect(device.titles == shown.merging(["a": "1"]) { $1 })
        }
        answer.withLock { $0 = nil }
        api.delete("b")
        try await device.run()
        #expect(device.titles == ["a": "1", "c": "offline"])
    }

    @Test(.verifies("READ-2"))
    func `an element that cannot be read is left out and counted, and the others are recorded`()
        async throws
    {
        let api = PlacesAPI(.cursor) { _ in
            .instead(
                .json(
                    200,
                    #"{"data":[{"id":"a","title":"1","rev":1,"deleted":false},7,{"id":"","title":"","rev":2,"deleted":false}]}"#
                ))
        }
        let device = try await PlacesDevice(api)
        let report = try await device.run()
        #expect((report.received, report.unusable) == (1, 2))
        #expect(device.titles == ["a": "1"])
    }

    @Test(.verifies("READ-7"), arguments: [401, 403, 429, 500, 200])
    func `a list that cannot be read does not stop sending`(_ status: Int) async throws {
        let api = PlacesAPI(.since) { request in
            guard request.method == .get else { return .answered }
            return .instead(status == 200 ? .page(200) : .json(status, "{}"))
        }
        let device = try await PlacesDevice(api)
        for title in ["one", "two"] {
            try await device.title("p", title)
            let report = try await device.run()
            #expect(report.pending == 0)
            #expect(report.message != nil)
        }
        #expect(api.titles == ["p": "two"])
    }

    @Test(.verifies("READ-3"))
    func `a state wins over a change by a clock that was ahead`() async throws {
        let api = PlacesAPI(.since)
        let device = try await PlacesDevice(api)
        device.clock.advance(by: .seconds(86_400))
        try await device.title("p", "ahead")
        try await device.run()
        device.clock.advance(by: .seconds(-86_400))
        api.set("p", "later")
        try await device.run()
        #expect(device.titles == ["p": "later"])
        #expect(device.store.view(NewestPlaces.self).titles == ["p": "later"])
    }

    @Test(.verifies("READ-2"))
    func
        `a cursor of another version of the source is not used, and nothing is read from another API`()
        async throws
    {
        let api = PlacesAPI(.cursor)
        api.set("p", "a")
        let device = try await PlacesDevice(api)
        try await device.run()
        let other = PullSource(of: PlaceState.self, version: 2, .cursor, list: "data") { position in
            #expect(position.text == nil)
            return APIRequest(.get, "places")
        } state: { (row: PlaceRow, _) in
            PlaceState(place: row.id, title: "2: " + row.title, number: row.rev)
        }
        try await device.run(sources: [other])
        #expect(device.titles == ["p": "2: a"])
        #expect(try await device.run(api: "others").refusal?.code == .otherAPI)
    }

    @Test(.verifies("READ-2", "READ-4"), arguments: [PlacesAPI.Form.since, .everything])
    func `over HTTP only what is new is read, by time and by the tag of the list`(
        _ form: PlacesAPI.Form
    ) async throws {
        let api = PlacesAPI(form)
        let statuses = Mutex<[Int]>([])
        let server = try LocalServer { received in
            guard let url = URL(string: "http://127.0.0.1" + received.target) else {
                return .hangUp
            }
            var request = BoundedHTTPRequest(url)
            request.method = RequestMethod(rawValue: received.method)
            request.body = received.body
            for header in received.headers { request.set(header.name, header.value) }
            guard let answer = try? api.respond(to: request) else { return .hangUp }
            statuses.withLock { $0.append(answer.status) }
            let names = ["Content-Type", "ETag"]
            let headers = names.compactMap { name in answer[header: name].map { (name, $0) } }
            return .reply(answer.status, headers: headers, body: answer.body)
        }
        for number in 0..<5 { api.set("p\(number)", "title \(number)") }
        let device = try await PlacesDevice(api)
        let first = try await device.run(at: server)
        #expect((first.received, first.message) == (5, nil))
        #expect(try await device.run(at: server).received == 0)
        if form == .everything { #expect(statuses.withLock { $0 } == [200, 304]) }
        api.set("p1", "theirs")
        try await device.title("p2", "mine")
        let report = try await device.run(at: server)
        #expect((report.received, report.applied, report.message) == (1, 1, nil))
        #expect(device.titles == api.titles)
        #expect(api.titles["p2"] == "mine")
        #expect(!server.requests.isEmpty)
    }

    @Test(.verifies("READ-1"))
    func `a type that is shipped is no state, and times keep their microseconds`() async throws {
        let api = PlacesAPI(.since)
        let device = try await PlacesDevice(api)
        let orphan = PullSource(of: Orphan.self, .everything) { _ in
            APIRequest(.get, "x")
        } state: {
            (row: PlaceRow, _) in
            Orphan(id: row.id)
        }
        let error = await #expect(throws: EventError.self) {
            try await device.run(sources: [orphan])
        }
        #expect(error?.code == .refused)
        for text in [
            "2026-11-29T07:00:00.123456Z", "2026-11-29 07:00:00.123456+00",
            "2026-11-29T09:00:00.1234569+02:00",
        ] {
            let number = try #require(try APIVersion.timestamp(text).number)
            #expect(Microseconds(number).text == "2026-11-29T07:00:00.123456Z")
        }
        #expect(throws: EventError.self) { try APIVersion.timestamp("yesterday") }
    }

    private struct Orphan: APIState, Codable {
        static let type = "com.example.orphan.state"
        var id: String
        var subject: String? { id }
        var apiVersion: APIVersion { .tag("1") }
    }
}
