// A Supabase project's own tables, filled from its events by the trigger of tables.sql, and compared with the views of
// a device that has read all events. Spec/operations/supabase.md, SUP-13 to SUP-16.

import DaybookOffline
import DaybookTestKit
import Foundation
import SyncServerStorage
import Synchronization
import TestSupport
import Testing

@testable import SyncServerPostgreSQL

/// A project whose tables are filled.
private struct FilledProject {
    let project: SupabaseProject

    init(_ cluster: PostgreSQLCluster? = nil, existing: String? = nil) async throws {
        project = try await SupabaseProject(cluster)
        if let existing { try await run(existing) }
        // It may be run again.
        for _ in 0..<2 { try await run(PostgreSQLFixture.sql("tables.sql")) }
    }

    func run(_ script: String) async throws {
        try await project.fixture.connect().runScript(script)
    }

    /// The rows of a user, read as this user.
    func tables(of user: String = "ana") async throws -> [[[String]]] {
        let time = "'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'"
        let queries = [
            "SELECT id FROM cities ORDER BY id",
            """
            SELECT id, city_id, content, created_by, to_char(created_at AT TIME ZONE 'UTC', \(time)),
                to_char(updated_at AT TIME ZONE 'UTC', \(time)) FROM notes ORDER BY id
            """,
            """
            SELECT auto_download_enabled::text, wifi_only_download::text, max_storage_limit,
                auto_sync::text, show_stale_data_warning::text, prune_after_days,
                to_char(updated_at AT TIME ZONE 'UTC', \(time)) FROM preferences
            """,
        ]
        var tables: [[[String]]] = []
        for query in queries {
            let rows = try await project.run(query, user: user)
            tables.append(rows.map { $0.map { $0 ?? "NULL" } })
        }
        return tables
    }

    /// What a device with all events of an account shows, in the form of `tables(of:)`.
    func views(of account: String = "ana") async throws -> [[[String]]] {
        let device = try await Device(PostgREST(project), account: account)
        try await device.sync()
        defer { Task { try await device.store.close() } }
        return device.tables
    }
}

/// A device that syncs with a project.
private struct Device {
    let store: OfflineStore
    private let transport: SupabaseTransport
    private let account: String
    private let server: PostgREST

    init(_ server: PostgREST, account: String = "ana") async throws {
        store = try await OfflineStore.inMemory(account: account)
        transport = try SupabaseTransport(
            project: server.url, apiKey: "KEY", allowsTokenInClear: true)
        (self.account, self.server) = (account, server)
    }

    @discardableResult
    func sync(resolver: (any ConflictResolver)? = nil) async throws -> SyncReport {
        try await store.sync(
            over: transport, credentials: BearerToken(account), resolver: resolver)
    }

    /// What the device shows of user `ana`.
    var tables: [[[String]]] {
        let cities = store.view(CitiesView.self)
        let notes = store.view(NotesView.self)
        let preferences = store.view(PreferencesView.self)["ana"]
        return [
            cities.cityIDs.filter { cities.isSaved($0, by: "ana") }.map { [$0] },
            notes.rowIDs.sorted().compactMap { notes.rowValue($0) }.map { note in
                [
                    note.id, note.cityId, note.content, note.createdBy, "\(note.createdAt)",
                    "\(note.updatedAt)",
                ]
            },
            preferences.updatedAt.map { time in
                [
                    [
                        "\(preferences.autoDownloadEnabled)", "\(preferences.wifiOnlyDownload)",
                        "\(preferences.maxStorageLimit)", "\(preferences.autoSync)",
                        "\(preferences.showStaleDataWarning)", "\(preferences.pruneAfterDays)",
                        "\(time)",
                    ]
                ]
            } ?? [],
        ]
    }
}

/// Events of several devices about few entities, so that they meet.
private struct EventDraw {
    private var random: SeededRandom
    private let sources = (0..<3).map { _ in UUID() }
    private var sequence: UInt64 = 0

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    mutating func next() -> Sample {
        sequence += 1
        let number = Int.random(in: 1...3, using: &random)
        var event =
            switch Int.random(in: 0..<16, using: &random) {
            case 0...3: Sample.note("added", "n\(number)", sequence, text: "a\(sequence)")
            case 4...8: Sample.note("updated", "n\(number)", sequence, text: "u\(sequence)")
            case 9: Sample.note("deleted", "n\(number)", sequence)
            case 10...12: city("saved", number)
            case 13: city("unsaved", number)
            default: settings(number)
            }
        event.source = sources.randomElement(using: &random) ?? UUID()
        let seconds = Int.random(in: 10...20, using: &random)
        event.time = "2026-02-22T10:30:\(seconds).425Z"
        return event
    }

    private func city(_ kind: String, _ number: Int) -> Sample {
        Sample(
            sequence: sequence, type: "daybook.city.\(kind)", subject: "c\(number)",
            lane: "city:ana:c\(number)", data: #"{"userId":"ana","cityId":"c\#(number)"}"#)
    }

    private func settings(_ number: Int) -> Sample {
        let changes = [
            #""autoSync":false"#, #""pruneAfterDays":\#(sequence)"#,
            #""autoSync":true,"maxStorageLimit":\#(sequence),"wifiOnlyDownload":false"#,
        ]
        return Sample(
            sequence: sequence, type: "daybook.preferences.updated", subject: "ana",
            lane: "preferences:ana", data: #"{"userId":"ana","changes":{\#(changes[number - 1])}}"#)
    }

    mutating func events(_ count: Int) -> [Sample] { (0..<count).map { _ in next() } }
    mutating func shuffled(_ events: [Sample]) -> [Sample] { events.shuffled(using: &random) }
    mutating func count(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
}

/// The number of answered batches.
private final class Load: Sendable {
    let answered = Atomic(0)
}

@Suite(.disabled(if: PostgreSQLCluster.isSkipped, "DAYBOOK_SKIP_POSTGRESQL is set"))
struct SupabaseTablesTests {
    /// The number of histories, and of kills; can be raised in the environment.
    private static let histories = number("DAYBOOK_HISTORIES") ?? 12
    private static let kills = number("DAYBOOK_KILLS") ?? 3

    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    @Test(.verifies("SUP-13"))
    func `two devices fill the project's tables, with a conflict and a rejected note`()
        async throws
    {
        let filled = try await FilledProject(
            existing: """
                CREATE TABLE public.cities (
                    id text, user_id text, saved_at timestamptz, visits integer NOT NULL DEFAULT 0,
                    PRIMARY KEY (user_id, id))
                """)
        // The project accepts no empty note.
        try await filled.run(
            """
            UPDATE daybook.event_type SET schema = jsonb_set(
                schema, '{members,2,kind}', '"nonEmptyText"') WHERE type = 'daybook.note.added'
            """)
        let server = try PostgREST(filled.project, losing: [3])
        let phone = try await Device(server)
        let tablet = try await Device(server)
        try await phone.store.cities.save("oslo", by: "ana")
        let note = try await phone.store.notes.add("fjord", city: "oslo", by: "ana")
        let other = try await phone.store.notes.add("opera", city: "oslo", by: "ana")
        try await phone.sync()
        try await tablet.sync()

        try await phone.store.notes.update(note.id, "fjord, of the phone", by: "ana")
        try await phone.store.notes.delete(other.id, by: "ana")
        let refused = try await phone.store.notes.add("", city: "oslo", by: "ana")
        try await phone.store.cities.unsave("oslo", by: "ana")
        try await tablet.store.notes.update(note.id, "fjord, of the tablet", by: "ana")
        try await tablet.store.cities.save("lisbon", by: "ana")
        try await tablet.store.preferences.update(for: "ana") { $0.autoSync = false }
        let rejected = try await phone.sync()
        #expect(rejected.rejected == 1)
        let report = try await tablet.sync(resolver: KeepMine())
        #expect(report.resolved == 1)
        let parked = try #require(phone.store.outbox.entries.first)
        #expect(phone.store.view(NotesView.self)[refused.id] != nil)
        try await phone.store.outbox.discard(parked.id)
        try await phone.sync()

        let tables = try await filled.tables()
        #expect(tables == phone.tables)
        #expect(tables == tablet.tables)
        #expect(tables[0] == [["lisbon"]])
        #expect(tables[1].map { $0[2] } == ["fjord, of the tablet"])
        #expect(tables[2].count == 1)
    }

    @Test(.verifies("SUP-13"))
    func `any order and any repetition of the events gives the rows of the views`() async throws {
        let filled = try await FilledProject()
        for seed in 0..<UInt64(Self.histories) {
            var draw = EventDraw(seed: seed)
            let events = draw.events(30)
            let accounts = ["a\(seed)", "b\(seed)"]
            for account in accounts {
                var waiting = draw.shuffled(events + events.prefix(8))
                while !waiting.isEmpty {
                    let batch = waiting.prefix(draw.count(1...9))
                    waiting.removeFirst(batch.count)
                    _ = try await filled.project.append(Array(batch), user: account)
                }
            }
            let rows = try await filled.tables(of: accounts[0])
            #expect(try await filled.views(of: accounts[0]) == rows, "seed \(seed)")
            #expect(try await filled.tables(of: accounts[1]) == rows, "seed \(seed)")
            // All events once more, in the server's order, into emptied tables.
            try await filled.run(
                """
                DELETE FROM cities WHERE user_id = '\(accounts[1])';
                DELETE FROM notes WHERE user_id = '\(accounts[1])';
                DELETE FROM preferences WHERE user_id = '\(accounts[1])';
                SELECT daybook.fill_tables('\(accounts[1])')
                """)
            #expect(try await filled.tables(of: accounts[1]) == rows, "seed \(seed)")
        }
    }

    @Test(.verifies("SUP-13", "SUP-16"))
    func `writers at the same time and a killed database leave the rows of the views`()
        async throws
    {
        let cluster = try PostgreSQLCluster()
        let filled = try await FilledProject(cluster)
        var draw = EventDraw(seed: 57)
        let batches = (0..<Self.kills * 40).map { _ in draw.events(5) }
        let load = Load()
        try await withThrowingTaskGroup { group in
            for worker in 0..<6 {
                group.addTask {
                    for index in stride(from: worker, to: batches.count, by: 6) {
                        try await eventually("verdicts", is: 5) {
                            let account = index.isMultiple(of: 3) ? "bob" : "ana"
                            let verdicts = try? await filled.project.append(
                                batches[index], user: account)
                            return verdicts?.count ?? 0
                        }
                        load.answered.add(1, ordering: .relaxed)
                    }
                }
            }
            group.addTask {
                while load.answered.load(ordering: .relaxed) < batches.count {
                    try? await filled.run("SELECT daybook.fill_tables('ana')")
                }
            }
            for kill in 1...Self.kills {
                group.addTask {
                    try await eventually("batches", where: { $0 >= kill * 25 }) {
                        load.answered.load(ordering: .relaxed)
                    }
                    try cluster.kill()
                }
            }
            try await group.waitForAll()
        }
        #expect(load.answered.load(ordering: .relaxed) == batches.count)
        for account in ["ana", "bob"] {
            let rows = try await filled.tables(of: account)
            #expect(try await filled.views(of: account) == rows)
            let events = try await filled.project.all(user: account)
            let part = (batches.count + 2) / 3
            #expect(events.count == 5 * (account == "bob" ? part : batches.count - part))
        }
    }

    @Test(.verifies("SUP-14"))
    func `an event that a table refuses is accepted and listed, and can be filled in later`()
        async throws
    {
        let filled = try await FilledProject()
        try await filled.run("ALTER TABLE notes ADD CONSTRAINT short CHECK (length(content) < 5)")
        // Longer than an index entry, and random, so that it is not compressed.
        var random = SeededRandom(seed: 3)
        let long = (0..<400).map { _ in String(random.next(), radix: 36) }.joined()
        let events = [
            Sample.note("added", "n", 1, text: "brief"), Sample.note("added", "m", 2, text: "ok"),
            Sample.note("added", long, 3),
        ]
        let verdicts = try await filled.project.append(events)
        #expect(verdicts.allSatisfy { $0["status"] as? String == "applied" })
        #expect(try await filled.tables()[1].map { $0[0] } == ["m"])
        let refused = "SELECT code FROM daybook.refused ORDER BY code"
        let owner = try filled.project.fixture.connect()
        #expect(try await owner.run(refused) == [["23514"], ["54000"]])
        try await filled.run("ALTER TABLE notes DROP CONSTRAINT short")
        try await filled.run("SELECT daybook.fill_tables(account) FROM daybook.account")
        #expect(try await owner.run(refused) == [["54000"]])
        #expect(try await filled.tables()[1].map { $0[0] } == ["m", "n"])
    }

    @Test(.verifies("SUP-15"))
    func `a user reads the own rows, writes none, and they are erased with the account`()
        async throws
    {
        let filled = try await FilledProject()
        // The data name another user: the row is still the account's.
        var draw = EventDraw(seed: 1)
        _ = try await filled.project.append(draw.events(40), user: "bob")
        _ = try await filled.project.append(Sample.cities(1), user: "cyd")
        let rows = try await filled.tables(of: "bob")
        #expect(rows.allSatisfy { !$0.isEmpty })
        #expect(try await filled.tables(of: "ana") == [[], [], []])
        for sql in [
            "INSERT INTO cities VALUES ('bob', 'x', now())", "UPDATE notes SET content = ''",
            "DELETE FROM preferences", "SELECT FROM daybook.winner", "SELECT FROM daybook.refused",
            "SELECT daybook.fill_tables('bob')", "SELECT daybook.write_tables('bob', '{}')",
            "SELECT daybook.wins('bob', '{}', 'a')",
        ] {
            await #expect(throws: StorageError.self, "\(sql)") {
                try await filled.project.run(sql, user: "bob")
            }
        }
        let owner = try filled.project.fixture.connect()
        let paths = try await owner.run(
            "SELECT proconfig::text FROM pg_proc WHERE pronamespace = 'daybook'::regnamespace")
        #expect(paths.count > 20)
        #expect(
            paths.allSatisfy { $0[0]?.contains(#""search_path=pg_catalog, pg_temp""#) == true })
        _ = try await owner.run("SELECT daybook.erase_account('bob', NULL)")
        #expect(try await filled.tables(of: "bob") == [[], [], []])
        #expect(try await filled.tables(of: "cyd")[0] == [["city-1"]])
        #expect(try await owner.run("SELECT DISTINCT account FROM daybook.winner") == [["cyd"]])
    }
}
