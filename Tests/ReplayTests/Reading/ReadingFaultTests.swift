// What must never hide or overwrite a change without a conflict on record, and lists that are not what they seem.
// Spec/protocol/reading.md.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
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
            .of(PlaceTitled.self, action: "TITLE_PLACE") { change, context in
                let version = context.version(of: PlaceState.self)?.text
                return try APIRequest(
                    .put, "places", change.place,
                    headers: version.map { ["If-Match": $0] } ?? [:], json: ["title": change.title])
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
