// README's code, compiled and run, and compared with README so that they stay the same.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

// README-2 begins
struct TripPlanned: EventPayload, Codable {
    static let type = "com.example.trip.planned"
    var city: String
    var subject: String? { city }
}

struct TripsView: Projection {
    static let name = "trips"
    static let version = 1
    private(set) var cities: Set<String> = []

    mutating func fold(_ event: Event) {
        guard event.type == TripPlanned.type,
            let trip = try? event.payload(as: TripPlanned.self)
        else { return }
        cities.insert(trip.city)
    }
}
// README-2 ends

private func ownEventExample(folder: URL) async throws -> Set<String> {
    // README-3 begins
    let store = try await EventStore.open(
        at: folder, account: "user-456", views: [TripsView.self])
    try await store.append(TripPlanned(city: "lisbon"))
    let cities = store.view(TripsView.self).cities
    print(cities)  // ["lisbon"]
    try await store.close()
    // README-3 ends
    return cities
}

private func ownAPIExample(folder: URL, api: URL) async throws {
    // README-4 begins
    let rules: [EventRule] = [
        .of(TripPlanned.self, action: "PLAN_TRIP") { trip, _ in
            try APIRequest(.post, "trips", json: trip)  // with the event's id as Idempotency-Key
        }
    ]
    let store = try await EventStore.open(
        at: folder, account: "user-456", rules: rules, views: [TripsView.self])
    try await store.append(TripPlanned(city: "lisbon"))

    let transport = try RequestTransport(
        store, api: "trips", at: api, promise: .once(keysKeptFor: .seconds(24 * 3_600)))
    let report = try await store.sync(over: transport)
    print("\(report.applied) shipped, \(report.pending) still to go")
    try await store.close()
    // README-4 ends
}

private func readmeExample(folder: URL, endpoint: URL) async throws {
    // README-1 begins
    let store = try await OfflineStore.open(at: folder, account: "user-456")

    try await store.cities.save("lisbon", by: "user-456")
    let note = try await store.notes.add("Great coffee", city: "lisbon", by: "user-456")
    try await store.notes.update(note.id, "Great coffee, closed on Mondays", by: "user-456")
    try await store.preferences.update(for: "user-456") { $0.maxStorageLimit = 200 * 1_048_576 }
    try await store.progress.completeLesson(
        "lesson-7", course: "spanish", by: "user-456", score: 0.9)

    for await notes in store.notes(in: "lisbon").changes {
        print(notes.map(\.content))  // now, and after every change
        break
    }

    let report = try await store.sync(to: endpoint)
    print("\(report.applied) shipped, \(report.pending) still to go")
    try await store.close()
    // README-1 ends
}

@Suite struct ReadmeTests {
    @Test func `README's example ships five events to a real server`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let server = try RunningServer(database: folder.path + "/events.sqlite")
        let endpoint = try #require(URL(string: server.url + "/v1/events"))
        try await readmeExample(folder: URL(filePath: folder.log), endpoint: endpoint)
        let again = try await OfflineStore.open(at: URL(filePath: folder.log), account: "user-456")
        #expect(again.view(Outbox.self).count == 0)
        #expect(again.view(NotesView.self).notes(in: "lisbon").count == 1)
        try await again.close()
    }

    @Test func `README's own event reaches its own view, now and after reopening`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        for _ in 0..<2 {
            #expect(try await ownEventExample(folder: URL(filePath: folder.log)) == ["lisbon"])
        }
    }

    @Test func `README's second example ships its event to a plain REST API`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let server = try LocalServer { _ in
            .reply(201, headers: [("Content-Type", "application/json")], body: Array("{}".utf8))
        }
        let api = try #require(URL(string: server.base + "/v1"))
        try await ownAPIExample(folder: URL(filePath: folder.log), api: api)
        let request = try #require(server.requests.first)
        #expect(server.requests.count == 1)
        #expect(request.method == "POST")
        #expect(request.target == "/v1/trips")
        #expect(request.text == #"{"city":"lisbon"}"#)
        #expect(UUID(uuidString: request.values("Idempotency-Key").first ?? "") != nil)
    }

    @Test func `README shows the code that was run`() throws {
        let readme = try String(contentsOf: Tool.root.appending(path: "README.md"), encoding: .utf8)
        let source = try String(contentsOfFile: #filePath, encoding: .utf8)
        for number in 1...4 {
            let begin = try #require(source.range(of: "// README-\(number) begins\n"))
            let end = try #require(source.range(of: "// README-\(number) ends"))
            let lines = source[begin.upperBound..<end.lowerBound].split(
                separator: "\n", omittingEmptySubsequences: false
            ).dropLast()
            let margin = number == 2 ? "" : "    "
            let code = lines.map { $0.hasPrefix(margin) ? String($0.dropFirst(margin.count)) : "" }
            #expect(readme.contains("```swift\n" + code.joined(separator: "\n") + "\n```"))
        }
    }
}
