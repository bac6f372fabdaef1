// A small log of an app's own events, for the suites that read a log.

import Daybook
import EventGenerators
import Foundation

struct Hike: EventPayload, Codable {
    static let type = "com.example.hike"
    var path: String
    var kilometres = 1
    var subject: String? { path }
}

/// The kilometres that were hiked on each path.
struct Hikes: Projection, Codable, Equatable {
    static let name = "hikes"
    static let version = 1
    private(set) var kilometres: [String: Int] = [:]
    var total: Int { kilometres.values.reduce(0, +) }

    mutating func fold(_ event: Event) {
        guard event.type == Hike.type, let hike = try? event.payload(as: Hike.self) else { return }
        kilometres[hike.path, default: 0] += hike.kilometres
    }
}

enum HikeLog {
    static let url = URL(filePath: "/log")
    static let rules: [EventRule] = [.of(Hike.self, action: "HIKE")]

    static func write(
        _ files: any FileSystem, at url: URL = url, account: String? = nil,
        views: [any Projection.Type] = [Hikes.self]
    ) async throws -> EventStore {
        try await EventStore.open(
            at: url, account: account, rules: rules, views: views, compaction: nil,
            environment: LogEnvironment(fileSystem: files))
    }

    static func companion(
        _ files: any FileSystem, _ name: String = "widget", at url: URL = url,
        account: String? = nil, limits: CompanionLimits = CompanionLimits()
    ) async throws -> CompanionStore {
        try await EventStore.openCompanion(
            at: url, name: name, account: account, rules: rules, views: [Hikes.self],
            limits: limits, environment: LogEnvironment(fileSystem: files))
    }

    static func spools(_ files: any FileSystem) throws -> [CompanionSpool] {
        try CompanionSpool.all(of: url.path, environment: LogEnvironment(fileSystem: files))
    }

    static func read(
        _ files: any FileSystem, at url: URL = url, views: [any Projection.Type] = [Hikes.self]
    ) async throws -> ReadOnlyStore {
        try await ReadOnlyStore.open(
            at: url, rules: rules, views: views, environment: LogEnvironment(fileSystem: files))
    }
}

extension EventStore {
    /// Appends hikes on one path, 100 to a commit.
    func appendHikes(_ count: Int, on path: String = "lake") async throws {
        for start in stride(from: 0, to: count, by: 100) {
            try await append(
                contentsOf: (start..<min(start + 100, count)).map { _ in
                    try EventDraft(Hike(path: path))
                })
        }
    }

    /// Records a server's verdict on an event.
    func record(
        _ outcome: SyncSettled.Outcome, of event: Appended, retryCount: Int = 0,
        failuresAlone: Int = 0, code: String
    ) async throws {
        var record = SyncSettled(by: incarnation)
        record.entries = [
            SyncSettled.Entry(
                position: event.position.rawValue, id: event.id, outcome: outcome,
                retryCount: retryCount, code: code, failuresAlone: failuresAlone)
        ]
        try await append(record: record)
    }

    /// Records that a server has applied all events of the outbox.
    func settleAll() async throws {
        var record = SyncSettled(by: incarnation)
        let outbox = view(Outbox.self)
        record.applied = outbox.ranges(of: outbox.entries.map(\.position))
        try await append(record: record)
    }
}
