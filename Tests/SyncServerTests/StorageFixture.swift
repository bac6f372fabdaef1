// A SQLite storage in a folder of its own, and batches parsed by the server's reader.

import DaybookOffline
import DaybookTestKit
import EventSourcing
import Foundation
import GRDB
import SyncServerStorage
import TestSupport
import Testing

/// A database for one test; its folder is removed with it.
final class StorageFixture: DatabaseFixture {
    let folder: TemporaryFolder
    var path: String { folder.appending("events.db").path }

    static let catalogue = OfflineModel.catalogue

    init() throws { folder = try TemporaryFolder() }

    var location: String { "sqlite:\(path)" }

    func open() throws -> SQLiteEventStorage {
        try SQLiteEventStorage(path: path, catalogue: Self.catalogue)
    }

    func failInserts(ofSequence sequence: UInt64) async throws {
        try await DatabaseQueue(path: path).write { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER failure BEFORE INSERT ON event WHEN NEW.sequence = \(sequence)
                    BEGIN SELECT RAISE(ABORT, 'failure'); END
                    """)
        }
    }

    func allowInserts() async throws {
        try await DatabaseQueue(path: path).write { try $0.execute(sql: "DROP TRIGGER failure") }
    }

    static func batch(_ text: String) throws -> [ReceivedEvent] {
        try BatchReader.read(
            Array(text.utf8).span.bytes, catalogue: catalogue,
            now: Timestamp(milliseconds: 1_800_000_000_000))
    }
}
