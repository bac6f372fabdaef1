// Last writer wins in SQL: the bytes of timestamps, and rows that do not depend on the order of events.

import Daybook
import DaybookOffline
import DaybookSQL
import DaybookTestKit
import Foundation
import GRDB
import TestSupport
import Testing

@Suite(.verifies("SQL-6")) struct UpsertTests {
    @Test func `the order of a timestamp's bytes is that of the timestamps`() throws {
        try Property.check("lwwTimestamps", runs: 500) { choices in
            func lwwTimestamp() -> LWWTimestamp {
                LWWTimestamp(
                    time: Timestamp(milliseconds: Int64(choices.int(in: -300...300))),
                    source: UInt128(choices.int(in: 0...3)) << UInt128(choices.int(in: 0...120)),
                    sequence: UInt64(choices.int(in: 0...600)))
            }
            let (one, other) = (lwwTimestamp(), lwwTimestamp())
            let bytes = [one, other].map { Data.fromDatabaseValue($0.databaseValue) ?? Data() }
            try #require(bytes.allSatisfy { $0.count == 32 })
            try #require((one < other) == bytes[0].lexicographicallyPrecedes(bytes[1]))
            try #require(LWWTimestamp.fromDatabaseValue(one.databaseValue) == one)
        }
        #expect(LWWTimestamp.fromDatabaseValue(Data([1]).databaseValue) == nil)
    }
}

@Suite(.verifies("SQL-7")) struct RowCompactionTests {
    struct SettingRows: SQLProjection {
        static let name = "settings", version = 1
        static let events: [any EventPayload.Type] = [SettingPut.self]

        static func create(in db: Database) throws {
            try db.execute(sql: "CREATE TABLE history (key TEXT NOT NULL, value TEXT NOT NULL)")
        }

        func apply(_ event: Event, in db: Database) throws {
            let put = try event.payload(as: SettingPut.self)
            try db.execute(
                sql: "INSERT INTO history VALUES (?, ?)",
                arguments: [put.key, String(decoding: put.value, as: UTF8.self)])
        }
    }

    struct NewestSettingRows: SQLProjection {
        static let name = "settings", version = 2, allowsCompaction = true
        static let events: [any EventPayload.Type] = [SettingPut.self]

        static func create(in db: Database) throws {
            try db.execute(sql: "CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT, lww BLOB)")
        }

        func apply(_ event: Event, in db: Database) throws {
            let put = try event.payload(as: SettingPut.self)
            try db.upsert(
                into: "setting", ["key": put.key], set: ["value": "\(put.value)"], by: event)
        }
    }

    @Test func `compaction keeps what rows need, also before they are opened again`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let queue = try DatabaseQueue(path: folder.path + "/rows.sqlite")
        func open() async throws -> OfflineStore {
            try await OfflineStore.open(at: URL(filePath: folder.log), compaction: nil)
        }
        var store = try await open()
        var rows = try await store.events.project(into: queue, [SettingRows()])
        for number in 0..<20_000 {
            try await store.events.append(
                SettingPut(key: "theme", value: "\(number) \(UUID())"), durability: .relaxed)
        }
        // Large enough to be sealed, and so to be compacted.
        try await rows.reach(await store.events.lastDurable)
        #expect(try await store.events.compact().removed == 0)
        try await store.close()
        await rows.close()
        store = try await open()
        #expect(try await store.events.compact().removed == 0)
        rows = try await store.events.project(into: queue, [NewestSettingRows()])
        #expect(try await store.events.compact().removed > 10_000)
        try await rows.reach(await store.events.lastDurable)
        let count = try await queue.read { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM setting")
        }
        #expect(count == 1)
        try await store.close()
        await rows.close()
    }
}
