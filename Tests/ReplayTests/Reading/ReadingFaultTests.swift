// What must never hide or overwrite a change without a conflict on record, and lists that are not what they seem.
// Spec/protocol/reading.md.

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

/// Does something between the API's answer to a read and its arrival.
private struct SlowReads: APIClient {
    let api: PlacesAPI
    let whileReading: @Sendable () async throws -> Void

    func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
        let answer = try api.respond(to: request)
        if request.method == .get { try await whileReading() }
        return answer
    }
}

@Suite struct ReadingFaultTests {
    @Test(.verifies("READ-7"))
    func `no change is sent while a page is under way, which would undo it`() async throws {
        let api = PlacesAPI(.everything, hasTags: true)
        api.set("p", "first")
        let device = try await PlacesDevice(api, matches: false, teaches: false)
        try await device.run()
        api.set("q", "another")
        let isFirst = Mutex(true)
        let client = SlowReads(api: api) {
            guard
                isFirst.withLock({
                    let was = $0; $0 = false; return was
                })
            else { return }
            try await device.title("p", "mine")
            // As long as a second request could take.
            for _ in 0..<30 where api.titles["p"] != "mine" {
                try await Task.sleep(for: .milliseconds(10))
            }
        }
        try await device.run(requests: 2, over: client)
        #expect(device.titles["p"] == "mine")
        try await device.run()
        #expect(device.titles == api.titles)
        #expect(api.titles == ["p": "mine", "q": "another"])
    }

    @Test(.verifies("READ-4", "READ-6"))
    func
        `an answer that shows another entity does not hide that its change is based on an older state`()
        async throws
    {
        let api = PlacesAPI(.since)
        api.set("x", "first")
        api.set("y", "first")
        let rules: [EventRule] = [
            .of(PlaceRenamed.self, action: "RENAME_PLACE") { change, context in
                let version = context.version(of: PlaceState.self)?.text
                return try APIRequest(
                    .put, "places", change.place,
                    headers: version.map { ["If-Match": $0] } ?? [:], json: ["title": change.name])
            } learning: { answer, _ in
                let rows = api.state.withLock { $0.rows }
                return [try answer.decode(PlaceRow.self)].map(api.placeState)
                    + [rows["y"]].compactMap(\.self).map(api.placeState)
            },
            .of(PlaceState.self),
        ]
        let device = try await PlacesDevice(api, rules: rules)
        try await device.run()
        try await device.title("x", "mine")
        try await device.title("y", "mine")
        api.set("y", "theirs")
        let report = try await device.run()
        #expect(report.conflict == 1)
        #expect(api.titles == ["x": "mine", "y": "theirs"])
    }

    @Test(.verifies("READ-4"))
    func `a decision about an older state is refused`() async throws {
        let api = PlacesAPI(.since)
        api.set("p", "first")
        let device = try await PlacesDevice(api)
        try await device.run()
        try await device.title("p", "mine")
        api.set("p", "theirs")
        try await device.run(ships: false)
        let older = try #require(try await device.store.conflict(in: "p"))
        api.set("p", "theirs again")
        try await device.run(ships: false)
        #expect(try await device.store.resolve(older, .keepMine) == false)
        let newer = try #require(try await device.store.conflict(in: "p"))
        #expect(try await device.store.resolve(newer, .keepMine))
        try await device.run()
        #expect(api.titles == ["p": "mine"])
        #expect(device.titles == api.titles)
    }

    @Test(.verifies("READ-4"))
    func
        `a conflict in a restored log gets the API's state, though later changes may have been sent`()
        async throws
    {
        let isReadable = Mutex(true)
        let api = PlacesAPI(.since) { request in
            request.method == .get && !isReadable.withLock { $0 } ? .lostRequest : .answered
        }
        api.set("p", "first")
        var device = try await PlacesDevice(api)
        try await device.run()
        try await device.title("p", "mine")
        api.set("p", "theirs")
        isReadable.withLock { $0 = false }
        try await device.run()
        #expect(device.outbox.conflictCount == 1)
        try await device.title("p", "later")
        try await device.restore(device.backup())
        isReadable.withLock { $0 = true }
        let report = try await device.run(deciding: KeepMine())
        #expect(report.resolved == 1)
        #expect(api.titles == ["p": "later"])
    }

    @Test(.verifies("READ-4"))
    func `what remains of a lane after a discarded change is in conflict with the same state`()
        async throws
    {
        let api = PlacesAPI(.since)
        api.set("p", "first")
        let device = try await PlacesDevice(api)
        try await device.run()
        for title in ["refused", "mine"] { try await device.title("p", title) }
        try await device.run()
        api.set("p", "theirs")
        try await device.run()
        let first = try #require(device.outbox.entries.first { _ in true })
        #expect(first.status == .conflict)
        try await device.store.outbox.discard(first.id)
        let rest = try #require(device.outbox.entries.first { _ in true })
        #expect((rest.status, rest.conflictsWith) == (.conflict, first.conflictsWith))
        try await device.run()
        #expect(api.titles == ["p": "theirs"])
        try await device.run(deciding: KeepMine())
        #expect(api.titles == ["p": "mine"])
    }

    @Test(.verifies("READ-3", "READ-4"))
    func
        `a version that comes back after an answered change is recorded, also under a refused one`()
        async throws
    {
        let isReadable = Mutex(true)
        let api = PlacesAPI(.cursor, hasTags: true) { request in
            request.method == .get && !isReadable.withLock { $0 } ? .lostRequest : .answered
        }
        api.set("p", "first")
        let device = try await PlacesDevice(api, matches: false, teaches: false)
        try await device.run()
        isReadable.withLock { $0 = false }
        for title in ["mine", "refused"] { try await device.title("p", title) }
        try await device.run()
        api.set("p", "first")
        isReadable.withLock { $0 = true }
        #expect(try await device.run().conflict == 1)
        let refused = try #require(device.outbox.entries.first { _ in true })
        try await device.store.outbox.discard(refused.id)
        #expect(device.titles == ["p": "first"])
    }

    @Test(.verifies("READ-7"))
    func `a run that only reads sends nothing, also after a conflict`() async throws {
        let api = PlacesAPI(.since)
        api.set("p", "first")
        let device = try await PlacesDevice(api)
        try await device.run()
        for place in ["p", "q"] { try await device.title(place, "mine") }
        api.set("p", "theirs")
        let report = try await device.run(ships: false)
        #expect((report.conflict, report.applied) == (1, 0))
        #expect(api.titles == ["p": "theirs"])
    }

    @Test(.verifies("READ-4"))
    func `a decision names the state that it is about`() async throws {
        let isReadable = Mutex(true)
        let api = PlacesAPI(.since) { request in
            request.method == .get && !isReadable.withLock { $0 }
                ? .instead(.json(500, "{}")) : .answered
        }
        api.set("p", "first")
        let device = try await PlacesDevice(api)
        try await device.run()
        try await device.title("p", "mine")
        api.set("p", "theirs")
        isReadable.withLock { $0 = false }
        try await device.run()
        let id = try #require(device.outbox.entries.first { _ in true }).id
        let outbox = device.store.outbox
        // Refused by If-Match: what the API has is not known.
        let unknown = try #require(try await outbox.conflict(id))
        #expect(unknown.current == nil)
        isReadable.withLock { $0 = true }
        try await device.run(ships: false)
        let theirs = try #require(try await outbox.conflict(id))
        api.set("p", "theirs again")
        try await device.run(ships: false)
        for older in [unknown, theirs] {
            let error = await #expect(throws: DecisionError.self) {
                try await outbox.resolve(older, .keepMine)
            }
            #expect(error?.code == .changedMeanwhile)
        }
        try await outbox.resolve(#require(try await outbox.conflict(id)), .keepMine)
        try await device.run()
        #expect(api.titles == ["p": "mine"])
    }

    @Test(.verifies("READ-4", "REQ-5"), arguments: [true, false])
    func `a change that was applied is no conflict with itself, if the API can be asked`(
        _ canAsk: Bool
    ) async throws {
        var manners = PlacesAPI.Manners()
        manners.comparesFirst = true
        let isLost = Mutex(true)
        let api = PlacesAPI(manners) { request in
            request.method != .get && isLost.withLock { $0 } ? .lostAnswer : .answered
        }
        api.set("p", "first")
        let question = Confirmation { context in
            APIRequest(.get, "changes", context.event.id.uuidString.lowercased())
        }
        let device = try await PlacesDevice(
            api, promise: .once(keysKeptFor: nil, confirm: canAsk ? question : nil))
        try await device.run()
        try await device.title("p", "mine")
        try await device.run()
        isLost.withLock { $0 = false }
        device.clock.advance(by: .seconds(3_700))
        let report = try await device.run()
        #expect(report.conflict == (canAsk ? 0 : 1))
        #expect(device.outbox.count == (canAsk ? 0 : 1))
        #expect(api.state.withLock { Array($0.applied.values) } == [1])
        // What the answer teaches is taken from the answer to the question.
        try await device.title("p", "next")
        try await device.run(deciding: KeepMine())
        #expect(api.titles == ["p": "next"])
    }

    @Test(.verifies("READ-3"))
    func `a change is shown after a state that was recorded under a clock that was ahead`()
        async throws
    {
        let api = PlacesAPI(.since)
        api.set("p", "first")
        let device = try await PlacesDevice(api)
        try await device.run()
        device.clock.advance(by: .seconds(86_400))
        try await device.title("p", "ahead")
        try await device.run()
        device.clock.advance(by: .seconds(-86_400))
        api.set("p", "theirs")
        try await device.run()
        try await device.title("p", "mine")
        #expect(device.titles == ["p": "mine"])
        #expect(device.store.view(NewestPlaces.self).titles == ["p": "mine"])
    }

    @Test(.verifies("READ-5"))
    func `a place that was created here and deleted elsewhere before it was read is deleted`()
        async throws
    {
        let isReadable = Mutex(false)
        let api = PlacesAPI(.everything) { request in
            request.method == .get && !isReadable.withLock { $0 } ? .lostRequest : .answered
        }
        let source = PullSource(
            of: PlaceState.self, .everything, list: "data", createdBy: [PlaceRenamed.self]
        ) { _ in
            APIRequest(.get, "places")
        } state: { (row: PlaceRow, _) in
            api.placeState(row)
        } deletion: {
            PlaceState(place: $0, title: "", isDeleted: true)
        }
        let device = try await PlacesDevice(api, teaches: false)
        for place in ["p", "q"] { try await device.title(place, "mine") }
        try await device.run(sources: [source])
        api.delete("p")
        isReadable.withLock { $0 = true }
        // One that is not sent stays.
        try await device.title("r", "mine")
        try await device.run(sources: [source], ships: false)
        #expect(device.titles == ["q": "mine", "r": "mine"])
        try await device.run(sources: [source])
        #expect(device.titles == api.titles)
        try await device.title("p", "again")
        try await device.run(sources: [source])
        #expect(api.titles == ["p": "again", "q": "mine", "r": "mine"])
    }

    @Test(.verifies("READ-3"))
    func `only the lanes with a state keep their last events`() async throws {
        let api = PlacesAPI(.since)
        let device = try await PlacesDevice(api, teaches: false)
        for place in ["a", "b"] { try await device.title(place, "mine") }
        try await device.run()
        // The list has both by now; another lane has no state.
        try await device.store.append(PlaceAdded(place: "new", name: "mine"))
        try await device.store.append(PlaceAdded(place: "newer", name: "mine"))
        let states = device.store.view(APIStates.self)
        func retention(_ place: String) throws -> Retention {
            let events = try device.log()
            return states.retention(
                of: try #require(events.last { $0.lane == place && $0.action != nil }))
        }
        #expect(try retention("a") == .needed(.current))
        withKnownIssue("a state that is read later must come after the last event of its lane") {
            let last = try retention("new")
            #expect(last == .unconcerned)
        }
    }

    @Test(.verifies("READ-6"))
    func `a version of a state without a rule parks the change, and says what is missing`()
        async throws
    {
        let api = PlacesAPI(.since)
        let files = InMemoryFileSystem()
        let rules: [EventRule] = [
            .of(PlaceRenamed.self, action: "RENAME_PLACE") { change, context in
                let version = context.version(of: PlaceState.self)?.text
                return try APIRequest(
                    .put, "places", change.place,
                    headers: version.map { ["If-Match": $0] } ?? [:], json: ["title": change.name])
            }
        ]
        let store = try await EventStore.open(
            at: "/log", account: "ann", catalogue: EventCatalogue(rules), views: [Outbox.self],
            environment: VirtualClock().environment(fileSystem: files, seed: 1))
        try await store.append(PlaceRenamed(place: "p", name: "mine"))
        let base = try #require(URL(string: "https://api.example.com/v1"))
        let transport = try RequestTransport(
            store, api: "places", at: base, promise: .once(keysKeptFor: nil), client: api)
        let report = try await Replayer(store, transport: transport).run()
        #expect(report.rejected == 1)
        let entry = try #require(store.view(Outbox.self).entries.first { _ in true })
        #expect(entry.code == RequestTransport.Code.noRequest)
        #expect(entry.errorMessage?.contains(PlaceState.type) == true)
        #expect(api.titles == [:])
    }

    @Test(.verifies("READ-1"))
    func `a transport with sources refuses a store that keeps no record of states`() async throws {
        let api = PlacesAPI(.since)
        let store = try await EventStore.open(
            at: "/log", account: "ann",
            catalogue: EventCatalogue(api.rules(matches: true, teaches: true)),
            views: [Outbox.self, PlaceNumbers.self],
            environment: VirtualClock().environment(fileSystem: InMemoryFileSystem(), seed: 1))
        let base = try #require(URL(string: "https://api.example.com/v1"))
        let error = #expect(throws: EventError.self) {
            try RequestTransport(
                store, api: "places", at: base, promise: .once(keysKeptFor: nil),
                reading: [api.source], client: api)
        }
        #expect(error?.code == .refused)
    }

    @Test(.verifies("READ-2"))
    func `elements that cannot be recorded do not end a list since a number`() async throws {
        let api = PlacesAPI(.since, limit: 2)
        for place in ["a", "", "b"] { api.set(place, "title") }
        let device = try await PlacesDevice(api)
        let report = try await device.run()
        #expect(report.unusable > 0)
        #expect(device.titles == ["a": "title", "b": "title"])
    }

    @Test(.verifies("READ-2"))
    func `a list since a number that cannot be continued is reported`() async throws {
        let api = PlacesAPI(.since) { _ in
            .instead(.json(200, #"{"data":[{"id":7},{"id":8}]}"#))
        }
        let report = try await PlacesDevice(api).run()
        #expect(report.unusable == 2)
        #expect(report.message?.contains("cannot be continued") == true)
    }

    @Test(.verifies("READ-5"))
    func `an empty page before the last one is no end of the list`() async throws {
        let isFiltered = Mutex(false)
        let api = PlacesAPI(.everything) { _ in
            isFiltered.withLock { $0 }
                ? .instead(.json(200, #"{"data":[],"next":"2"}"#)) : .answered
        }
        api.set("a", "title")
        let device = try await PlacesDevice(api)
        try await device.run()
        isFiltered.withLock { $0 = true }
        try await device.run()
        #expect(device.titles == ["a": "title"])
    }

    @Test(.verifies("READ-5"))
    func `a place that a list of several pages skips is not deleted`() async throws {
        let reads = Mutex(0)
        let deleted = Mutex<PlacesAPI?>(nil)
        let api = PlacesAPI(.everything, limit: 2) { _ in
            // Between the first and the second page of a list by offset, a place of the first is deleted.
            if reads.withLock({
                $0 += 1; return $0
            }) == 4 {
                deleted.withLock { $0 }?.delete("a")
            }
            return .answered
        }
        for place in ["a", "b", "c", "d"] { api.set(place, "title") }
        let device = try await PlacesDevice(api)
        try await device.run()
        #expect(reads.withLock { $0 } == 2)
        deleted.withLock { $0 = api }
        try await device.title("c", "mine")
        let report = try await device.run(ships: false)
        deleted.withLock { $0 = nil }
        #expect(report.conflict == 0)
        #expect(device.titles["c"] == "mine")
        try await device.run()
        #expect(device.titles == api.titles)
        #expect(api.titles == ["b": "title", "c": "mine", "d": "title"])
    }
}
