// The kinds of databases, and storages on databases of their own, for tests that run on every kind.

import Foundation
import SyncServerStorage
import Testing

/// A database for one test.
protocol DatabaseFixture: AnyObject, Sendable {
    /// The value of `--database`.
    var location: String { get }
    /// Opens a storage on the database; several may be open at once.
    func open() async throws -> any EventStorage
    /// Makes every batch fail that stores an event with a sequence.
    func failInserts(ofSequence sequence: UInt64) async throws
    /// Removes the effect of `failInserts(ofSequence:)`.
    func allowInserts() async throws
}

extension StorageFixture {
    func open() async throws -> any EventStorage {
        let storage: SQLiteEventStorage = try open()
        return storage
    }
}

extension EventStorage {
    /// Appends events as the account `ana` or another.
    func append(_ samples: [Sample], account: String = "ana") async throws -> [EventVerdict] {
        try await append(
            StorageFixture.batch("[\(samples.map(\.line).joined(separator: ","))]"),
            account: account)
    }
}

/// The kinds of databases of the server.
enum StorageKind: String, CaseIterable, Sendable {
    case sqlite
    case postgreSQL

    /// The kinds that are tested here.
    static let all = allCases.filter { $0 != .postgreSQL || !PostgreSQLCluster.isSkipped }

    /// A new database.
    func fixture() async throws -> any DatabaseFixture {
        switch self {
        case .sqlite: try StorageFixture()
        case .postgreSQL: try await PostgreSQLFixture()
        }
    }

    /// A storage on a new database.
    func open() async throws -> TestStorage {
        let fixture = try await fixture()
        return TestStorage(fixture: fixture, storage: try await fixture.open())
    }
}

/// A storage and its database, which lives as long as it.
struct TestStorage {
    let fixture: any DatabaseFixture
    let storage: any EventStorage

    /// Opens a second storage on the same database, like another server.
    func openSecond() async throws -> TestStorage {
        TestStorage(fixture: fixture, storage: try await fixture.open())
    }

    func close() throws { try storage.close() }

    func append(_ batch: [ReceivedEvent], account: String) async throws -> [EventVerdict] {
        try await storage.append(batch, account: account)
    }

    /// Appends events as the account `ana` or another.
    func append(_ samples: [Sample], account: String = "ana") async throws -> [EventVerdict] {
        try await append(lines: samples.map(\.line), account: account)
    }

    /// Appends lines.
    func append(lines: [String], account: String = "ana") async throws -> [EventVerdict] {
        try await append(
            StorageFixture.batch("[\(lines.joined(separator: ","))]"), account: account)
    }

    func page(
        account: String, source: UUID?, after cursor: EventCursor?, limit: Int
    ) async throws -> ServedPage {
        try await storage.page(account: account, source: source, after: cursor, limit: limit)
    }

    /// All lines of an order, page by page.
    func all(
        account: String = "ana", source: UUID? = nil, limit: Int = 500
    ) async throws -> [String] {
        var lines: [String] = []
        var cursor: EventCursor?
        while true {
            let page = try await page(
                account: account, source: source, after: cursor, limit: limit)
            #expect(page.lines.count <= limit)
            if page.lines.isEmpty { return lines }
            lines += page.lines.map { String(decoding: $0, as: UTF8.self) }
            cursor = page.next
        }
    }
}
