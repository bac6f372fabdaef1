// A developer's mistake gives an error with a code to switch over, a sentence that says what happened, and
// a remedy. The mistakes of each area are in their own file: MistakeTests+Opening, …

import Daybook
import DaybookTestKit
import Foundation
import TestSupport
import Testing

/// A mistake, and its error.
struct Mistake: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// The error's type, and its code if it has one.
    let error: String
    /// A part of its description.
    let text: String
    let make: @Sendable (_ folder: URL) async throws -> Void

    init(
        _ name: String, _ error: String, _ text: String,
        _ make: @escaping @Sendable (_ folder: URL) async throws -> Void
    ) {
        (testDescription, self.error, self.text, self.make) = (name, error, text, make)
    }
}

// MARK: Fixtures

extension Mistake {
    struct Trip: EventPayload, Codable {
        static let type = "com.example.trip"
        var name: String
        var nights: Double = 1
        var start: Date?
        var subject: String? { name }
    }

    struct Renamed: EventPayload, Codable {
        static let type = "com.example.renamed"
        var name: String
        var newName: String
    }

    struct Trips: Projection {
        static let name = "trips"
        static let version = 1
        mutating func fold(_ event: Event) {}
    }

    static let rules: [EventRule] = [.of(Trip.self, action: "TRAVEL")]

    /// An empty store in memory.
    static func store(account: String? = nil) async throws -> EventStore {
        try await EventStore.inMemory(account: account, rules: rules, views: [Trips.self])
    }

    /// A store whose outbox has one event.
    static func storeWithTrip(account: String? = nil) async throws -> EventStore {
        let store = try await store(account: account)
        try await store.append(Trip(name: "a"))
        return store
    }

    static func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    /// An event of a type that has no rule.
    static func ruleless(_ json: String) -> EventDraft {
        EventDraft(type: "com.example.other", data: .json(Array(json.utf8)))
    }
}

@Suite struct MistakeTests {
    @Test(
        arguments: Mistake.ofOpening + Mistake.ofMaintenance + Mistake.ofAppending
            + Mistake.ofReading + Mistake.ofSyncing + Mistake.ofModel)
    func `a mistake gives an error with a code, a sentence and a remedy`(
        _ mistake: Mistake
    ) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        do {
            try await mistake.make(folder.url)
            Issue.record("nothing was thrown")
        } catch {
            #expect(Self.typeAndCode(of: error) == mistake.error, "\(error)")
            let text = error.localizedDescription
            #expect(text.contains(mistake.text), "\(text)")
            let suggestion = (error as? any LocalizedError)?.recoverySuggestion
            #expect(suggestion?.isEmpty == false)
        }
    }

    private static func typeAndCode(of error: any Error) -> String {
        let code = Mirror(reflecting: error).children.first { $0.label == "code" }
        return "\(type(of: error))" + (code.map { ".\($0.value)" } ?? "")
    }

    private struct NoSeat: Error, Equatable {}

    @Test func `an error of a transaction is rethrown unchanged, and nothing is recorded`()
        async throws
    {
        let store = try await Mistake.store()
        await #expect(throws: NoSeat()) {
            try await store.write { transaction in
                try transaction.append(Mistake.Trip(name: "a"))
                throw NoSeat()
            }
        }
        #expect(await store.lastDurable == .zero)
    }

    /// A precondition, because a query cannot throw and has no value to return.
    @Test func `a view that was not given to open ends the program, and the message names it`()
        async throws
    {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            let store = try await EventStore.inMemory()
            _ = store.query(Mistake.Trips.self) { _ in 0 }.current
        }
        let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(message.contains("add Trips.self to its views"), "\(message)")
    }

    @Test func `a date in a payload is ISO 8601`() throws {
        let date = Date(timeIntervalSince1970: 1_800_000_000.125)
        let json = try Mistake.Trip(name: "a", start: date).json()
        #expect(
            String(decoding: json, as: UTF8.self)
                == #"{"name":"a","nights":1,"start":"2027-01-15T08:00:00.125Z"}"#)
        #expect(try Mistake.Trip(json: json).start == date)
    }
}
