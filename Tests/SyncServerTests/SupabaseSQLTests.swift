// The SQL that a Supabase project installs, called as PostgREST calls it: in a transaction with the
// caller's role and the claims of the caller's JWT. Spec/operations/supabase.md.

import EventSourcing
import Foundation
import SyncServerStorage
import TestSupport
import Testing

@testable import SyncServerPostgreSQL

/// A database set up like a Supabase project.
final class SupabaseProject: Sendable {
    let fixture: PostgreSQLFixture

    /// Creates a project.
    ///
    /// - Parameter cluster: a server of its own; nil for the one that all tests share.
    init(_ cluster: PostgreSQLCluster? = nil) async throws {
        fixture = try await PostgreSQLFixture(cluster)
        if let cluster {
            try await Self.createRoles(on: cluster)
        } else {
            try await Self.sharedRoles.value
        }
        let owner = try fixture.connect()
        // As in a Supabase project.
        try await owner.runScript(
            """
            ALTER DEFAULT PRIVILEGES IN SCHEMA public
                GRANT EXECUTE ON FUNCTIONS TO anon, authenticated;
            ALTER DEFAULT PRIVILEGES IN SCHEMA public
                GRANT ALL ON TABLES TO anon, authenticated;
            CREATE SCHEMA auth;
            GRANT USAGE ON SCHEMA auth TO anon, authenticated;
            CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql STABLE AS $$
                SELECT (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub')::uuid
            $$
            """)
        for step in PostgreSQLSchema.steps { try await owner.runScript(step.sql) }
        // It may be run again.
        for _ in 0..<2 { try await owner.runScript(try PostgreSQLFixture.sql("supabase.sql")) }
    }

    /// Roles belong to the whole server, so all its projects share them.
    private static let sharedRoles = Task { try await createRoles(on: .shared()) }

    private static func createRoles(on cluster: PostgreSQLCluster) async throws {
        try await cluster.administratorConnection().runScript(
            """
            CREATE ROLE anon NOLOGIN;
            CREATE ROLE authenticated NOLOGIN;
            CREATE ROLE authenticator LOGIN NOINHERIT;
            GRANT anon, authenticated TO authenticator
            """)
    }

    /// Runs a statement as a user, or without a user.
    func run(
        _ sql: String, _ values: [String?] = [], role: String = "authenticated", user: String?
    ) async throws -> [[String?]] {
        let connection = try fixture.cluster.connect(fixture.name, user: "authenticator")
        let claims = ["role": role, "sub": user].compactMapValues { $0 }
        let json = String(decoding: try JSONEncoder().encode(claims), as: UTF8.self)
        _ = try await connection.run("BEGIN")
        _ = try await connection.run("SET LOCAL ROLE \(role)")
        _ = try await connection.run(
            "SELECT set_config('request.jwt.claims', $1, true)", [json])
        let rows = try await connection.run(sql, values)
        _ = try await connection.run("COMMIT")
        return rows
    }

    /// Calls a function that answers with one JSON value.
    func call(
        _ sql: String, _ values: [String?], user: String? = "ana"
    ) async throws -> [String: Any] {
        let text = try #require(try await run(sql, values, user: user).first?[0])
        return try #require(
            try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    func append(_ batch: String, user: String? = "ana") async throws -> [NSDictionary] {
        let answer = try await call("SELECT append_events($1::jsonb)", [batch], user: user)
        return try #require(answer["verdicts"] as? [NSDictionary])
    }

    func append(_ samples: [Sample], user: String? = "ana") async throws -> [NSDictionary] {
        try await append("[\(samples.map(\.line).joined(separator: ","))]", user: user)
    }

    /// All events of a user, in pages of a size.
    func all(user: String = "ana", max: Int = 500) async throws -> [NSDictionary] {
        var events: [NSDictionary] = []
        var after: String?
        while true {
            let page = try await call(
                "SELECT read_events($1, $2::integer)", [after, "\(max)"], user: user)
            let found = try #require(page["events"] as? [NSDictionary])
            #expect(found.count <= max)
            if found.isEmpty { return events }
            events += found
            after = try #require(page["next"] as? String)
        }
    }
}

@Suite(.disabled(if: PostgreSQLCluster.isSkipped, "DAYBOOK_SKIP_POSTGRESQL is set"))
struct SupabaseSQLTests {
    /// Expects PostgreSQL to refuse a statement with an error code.
    private func expect(
        _ code: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Void
    ) async {
        do {
            try await body()
            Issue.record("not refused", sourceLocation: sourceLocation)
        } catch let error as StorageError {
            #expect(error.detail.contains("(\(code))"), sourceLocation: sourceLocation)
        } catch { Issue.record(error, sourceLocation: sourceLocation) }
    }

    private static let denied = "42501"

    @Test(.verifies("SUP-1", "SYNC-52"))
    func `an offered event is stored whatever it is based on`() async throws {
        let project = try await SupabaseProject()
        let change = Sample.note("updated", "n", 2, base: UUID())
        #expect(try await project.append([change]).first?["status"] as? String == "conflict")
        let answer = try await project.call(
            "SELECT append_events($1::jsonb, offered => true)", ["[\(change.line)]"])
        let verdicts = try #require(answer["verdicts"] as? [NSDictionary])
        #expect(verdicts.first?["status"] as? String == "applied")
    }

    // MARK: Permissions

    @Test(.verifies("SUP-6")) func `a caller without a user gets nothing`() async throws {
        let project = try await SupabaseProject()
        let event = Sample(sequence: 1)
        _ = try await project.append([event])
        let calls = [
            ("SELECT append_events($1::jsonb)", "[\(event.line)]"),
            ("SELECT read_events($1, 500)", nil),
            ("SELECT line FROM daybook.event WHERE $1 = ''", ""),
        ]
        for (sql, value) in calls {
            await expect(Self.denied) {
                _ = try await project.run(sql, [value], role: "anon", user: nil)
            }
            await expect(Self.denied) {
                _ = try await project.run(sql, [value], role: "anon", user: "ana")
            }
        }
        for (sql, value) in calls.dropLast() {
            await expect(Self.denied) { _ = try await project.run(sql, [value], user: nil) }
            await expect(Self.denied) { _ = try await project.run(sql, [value], user: "") }
        }
        #expect(try await project.run("SELECT line FROM daybook.event", user: nil).isEmpty)
    }

    @Test(.verifies("SUP-7"))
    func `a user sees the own events only, and writes through the function only`() async throws {
        let project = try await SupabaseProject()
        let events = Sample.cities(2) + [Sample.note("added", "n", 3)]
        _ = try await project.append(events)
        let rows = try await project.run("SELECT account, line FROM daybook.event", user: "ana")
        #expect(rows.map { $0[0] } == ["ana", "ana", "ana"])
        #expect(try await project.run("SELECT line FROM daybook.event", user: "bob").isEmpty)
        #expect(try await project.all(user: "bob").isEmpty)
        #expect(try await project.all(max: 2).count == 3)
        let columns = "(account, serial, id, source, sequence, line)"
        for sql in [
            "INSERT INTO daybook.event \(columns) SELECT 'bob', 9, gen_random_uuid(), "
                + "gen_random_uuid(), 1, '{}'",
            "UPDATE daybook.event SET line = '{}'", "DELETE FROM daybook.event",
            "SELECT FROM daybook.event FOR UPDATE", "TRUNCATE daybook.event",
            "SELECT FROM daybook.account", "SELECT FROM daybook.note_head",
            "SELECT FROM daybook.migration", "UPDATE daybook.account SET last_serial = 0",
            "SELECT daybook.append_events('ana', '[]')",
            "SELECT daybook.append_batch('ana'\(String(repeating: ", NULL", count: 13)))",
            "SELECT daybook.read_events('ana', NULL, 0, 0, 500)",
            "SELECT daybook.received('{}', now())", "CREATE TABLE daybook.mine (a int)",
        ] {
            for user in ["ana", "bob"] {
                await expect(Self.denied) { _ = try await project.run(sql, user: user) }
            }
        }
        #expect(try await project.all().count == 3)
    }

    @Test(.verifies("SUP-8"))
    func `another account's data changes no answer, so it cannot be probed`() async throws {
        let note = Sample.note("added", "n", 1, text: "of ana")
        let city = Sample(sequence: 2)
        var stolen = city
        stolen.data = #"{"userId":"bob","cityId":"lisbon"}"#
        var foreign = Sample.note("updated", "n", 3, base: note.id)
        foreign.source = city.source
        var fork = Sample(sequence: 2, subject: "porto", data: #"{"userId":"b","cityId":"porto"}"#)
        fork.lane = nil
        let batches = [[stolen], [foreign], [fork], [city], [note], [foreign]]
        var answers: [[[NSDictionary]]] = []
        for hasOther in [true, false] {
            let project = try await SupabaseProject()
            if hasOther { _ = try await project.append([note, city]) }
            var given: [[NSDictionary]] = []
            for batch in batches { given.append(try await project.append(batch, user: "bob")) }
            answers.append(given)
            let held = try await project.all(user: "bob")
            #expect(
                held.map { $0["id"] as? String } == [stolen, fork, note, foreign].map(\.id.text))
        }
        #expect(answers[0] == answers[1])
        #expect(
            answers[0].map { $0[0]["status"] as? String }
                == ["applied", "conflict", "applied", "rejected", "applied", "applied"])
    }

    /// With a unique index without the account, one account could wait for, or collide with, another's rows.
    @Test(.verifies("SUP-8", "PG-9")) func `every key begins with the account`() async throws {
        let project = try await SupabaseProject()
        let keys = try await project.fixture.connect().run(
            """
            SELECT i.indexrelid::regclass, a.attname FROM pg_index i
            JOIN pg_class c ON c.oid = i.indrelid
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
            WHERE c.relnamespace = 'daybook'::regnamespace AND NOT c.relispartition
                AND c.relname NOT IN ('migration', 'restore', 'event_type')
            """)
        #expect(keys.count == 5)
        #expect(keys.allSatisfy { $0[1] == "account" })
    }

    @Test(.verifies("SUP-6", "SUP-7"))
    func `every function that runs as its owner has a fixed search path`() async throws {
        let project = try await SupabaseProject()
        let rows = try await project.fixture.connect().run(
            """
            SELECT p.proname, p.proconfig::text FROM pg_proc p
            WHERE p.pronamespace IN ('daybook'::regnamespace, 'public'::regnamespace)
            """)
        #expect(rows.count > 8)
        #expect(
            rows.allSatisfy { $0[1]?.contains(#""search_path=pg_catalog, pg_temp""#) == true })
    }

    @Test(.verifies("SUP-7"))
    func `a user's own types and functions are never run as the owner`() async throws {
        let project = try await SupabaseProject()
        for call in ["read_events(NULL, 1)", "append_events('[]')"] {
            for type in ["jsonb", "json", "text"] {
                let rows = try await project.run(
                    """
                    DO $do$ BEGIN
                        EXECUTE $sql$
                            CREATE FUNCTION pg_temp.evil(value pg_catalog.\(type))
                            RETURNS boolean LANGUAGE plpgsql AS
                            $f$ BEGIN RAISE EXCEPTION 'run as %', current_user; END $f$
                        $sql$;
                        EXECUTE $sql$
                            CREATE DOMAIN pg_temp.\(type) AS pg_catalog.\(type)
                            CHECK (pg_temp.evil(VALUE))
                        $sql$;
                        PERFORM public.\(call);
                    END $do$
                    """, user: "ana")
                #expect(rows.isEmpty)
            }
        }
    }

    @Test(.verifies("SUP-10"))
    func `numbers that are small as sent and huge as text are refused at once`() async throws {
        let project = try await SupabaseProject()
        for number in ["1e131071", "-1e131071", "0e-16383", "1e400"] {
            let numbers = [String](repeating: number, count: 5_000).joined(separator: ",")
            let line = Sample(sequence: 1).line.dropLast() + #","x":[\#(numbers)]}"#
            await expect("22023") { _ = try await project.append("[\(line)]") }
        }
        #expect(try await project.append(Sample.cities(1)).count == 1)
    }

    // MARK: Tables

    @Test(.verifies("SUP-12"))
    func `an event is a row of the event table, and no table of the project gets a row`()
        async throws
    {
        let project = try await SupabaseProject()
        let owner = try project.fixture.connect()
        try await owner.runScript(
            """
            CREATE TABLE public.cities (id text); CREATE TABLE public.notes (id text)
            """)
        let events = Sample.cities(2) + [Sample.note("added", "n", 3)]
        #expect(
            try await project.append(events).map { $0["status"] as? String ?? "" }
                == ["applied", "applied", "applied"])
        let counts = try await owner.run(
            """
            SELECT (SELECT count(*) FROM daybook.event), (SELECT count(*) FROM public.cities),
                (SELECT count(*) FROM public.notes)
            """)
        #expect(counts == [["3", "0", "0"]])
    }

    // MARK: Answers

    @Test(.verifies("SUP-10")) func `a batch that is none is refused as a whole`() async throws {
        let project = try await SupabaseProject()
        let good = Sample(sequence: 1).line
        for batch in ["{}", "null", "7", "[1]", "[\(good),{}]", #"[{"id":"abc"}]"#, #"[{"id":7}]"#]
        {
            await expect("22023") { _ = try await project.append(batch) }
        }
        await expect("PT413") { _ = try await project.append(Sample.cities(501)) }
        #expect(try await project.append("[]").isEmpty)
        #expect(try await project.append(Sample.cities(500)).count == 500)
        for cursor in ["", "a", "a-1", "s1-2", "a1x", "a9999999999999999999"] {
            await expect("22023") {
                _ = try await project.call("SELECT read_events($1, 500)", [cursor])
            }
        }
    }

    @Test(.verifies("SUP-10"), arguments: [63, 64, 500])
    func `an event that makes its batch deeper than 64 levels is rejected`(depth: Int)
        async throws
    {
        let project = try await SupabaseProject()
        var deep = Sample(sequence: 1)
        deep.type = "test.odd"
        deep.data =
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        let verdict = try await project.append([deep])[0]
        #expect(verdict["status"] as? String == "rejected")
        #expect(verdict["code"] as? String == "invalid_event")
    }

    /// Each text is sent to syncserver's storage and to the function.
    @Test(.verifies("SUP-9"))
    func `the function answers as syncserver does, and stores the same`() async throws {
        let project = try await SupabaseProject()
        let storage = try await StorageKind.sqlite.open()
        for batch in Self.batches {
            let expected = EventVerdict.reply(try await storage.append(lines: batch))
            let json = try JSONSerialization.jsonObject(with: Data(expected)) as? [String: Any]
            let verdicts = try #require(json?["verdicts"] as? [NSDictionary])
            let given = try await project.append("[\(batch.joined(separator: ","))]")
            #expect(given.count == batch.count)
            for (line, (one, other)) in zip(batch, zip(verdicts, given)) {
                for name in ["id", "status", "code", "current"] {
                    #expect(
                        one[name] as? NSObject == other[name] as? NSObject,
                        "\(name) of \(line.prefix(400))")
                }
                #expect(
                    other["status"] as? String == "applied" || other["detail"] != nil
                        || ["duplicate", "unprocessed"].contains(other["status"] as? String))
            }
        }
        let stored = try await storage.all().map { line in
            let event = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            // An attribute that is null is absent.
            return event?.filter { $0.key == "data" || !($0.value is NSNull) } as NSDictionary?
        }
        let held = try await project.all()
        #expect(stored.count == held.count)
        for (one, other) in zip(stored, held) { #expect(one == other) }
        // An event stored by one is known to the other.
        let lines = try await project.run(
            "SELECT line FROM daybook.event ORDER BY serial", user: "ana")
        let again = try await storage.append(lines: lines.prefix(500).compactMap { $0[0] })
        #expect(again.allSatisfy { $0.status == .duplicate })
    }

    @Test(.verifies("SUP-9"))
    func `server and function on one database recognize each other's events`()
        async throws
    {
        let project = try await SupabaseProject()
        let storage = TestStorage(
            fixture: project.fixture, storage: try await project.fixture.open())
        let first = Sample.cities(3) + [Sample.note("added", "n", 9)]
        let second = Sample.cities(3, from: 20)
        #expect(try await storage.append(first).allSatisfy { $0.status == .applied })
        #expect(
            try await project.append(first).allSatisfy { $0["status"] as? String == "duplicate" })
        #expect(
            try await project.append(second).allSatisfy { $0["status"] as? String == "applied" })
        #expect(try await storage.append(second).allSatisfy { $0.status == .duplicate })
        let change = Sample.note("updated", "n", 10, base: UUID())
        let current = try await project.append([change])[0]["current"] as? NSDictionary
        #expect(current?["id"] as? String == first[3].id.text)
        #expect(try await project.all().count == 7)
    }

    /// Batches of lines with every type and a violation of every rule.
    private static let batches: [[String]] = {
        var batches: [[String]] = []
        var sequence: UInt64 = 100
        func line(_ type: String, _ data: String, _ change: (String, String)? = nil) -> String {
            sequence += 1
            var event = Sample(sequence: sequence, type: type, lane: nil, data: data)
            event.subject = "SUBJECT"
            let line = event.line.replacing(#","subject":"SUBJECT""#, with: "")
            return change.map { line.replacing($0.0, with: $0.1) } ?? line
        }
        // The replaced text must not be able to occur in an id.
        let known: [(type: String, data: String, broken: [(String, String)])] = [
            (
                "city.saved", #"{"userId":"ana","cityId":"é\u0041"}"#,
                [
                    (#""userId":"ana","#, ""), ("\"ana\"", "\"\""), ("\"ana\"", "7"),
                    ("\"ana\"", "null"),
                ]
            ),
            (
                "city.unsaved", #"{"userId":"ana","cityId":"é\u0041"}"#,
                [(#","cityId":"é\u0041""#, "")]
            ),
            (
                "note.added",
                #"{"noteId":"x","cityId":"c","content":"","createdBy":"ana","more":[1,{}]}"#,
                [
                    (#""content":"","#, ""), (#""content":"""#, #""content":null"#),
                    ("\"x\"", "\"\""),
                ]
            ),
            (
                "note.updated", #"{"noteId":"x","content":"t","updatedBy":"ana"}"#,
                [("\"t\"", "[]"), (#","updatedBy":"ana""#, "")]
            ),
            ("note.deleted", #"{"noteId":"x","deletedBy":"ana"}"#, [("\"x\"", "true")]),
            (
                "preferences.updated",
                #"{"userId":"ana","changes":{"autoSync":true,"pruneAfterDays":3.0e0}}"#,
                [
                    ("true", "1"), ("3.0e0", "0.5"), ("3.0e0", "-1"), ("3.0e0", "1e30"),
                    ("autoSync", "other"), (#"{"autoSync":true,"pruneAfterDays":3.0e0}"#, "{}"),
                    (#"{"autoSync":true,"pruneAfterDays":3.0e0}"#, "[]"),
                    (#","changes":{"autoSync":true,"pruneAfterDays":3.0e0}"#, ""),
                ]
            ),
            (
                "course.activated", #"{"userId":"ana","courseId":"es"}"#,
                [(#","courseId":"es""#, "")]
            ),
            (
                "lesson.completed",
                #"{"userId":"ana","courseId":"es","lessonId":"l","score":0.90,"durationSeconds":1.0e3}"#,
                [
                    ("0.90", "1.01"), ("0.90", "-0.1"), ("0.90", "null"), ("0.90", "\"1\""),
                    ("1.0e3", "-1"), ("1.0e3", "1e999"),
                ]
            ),
            (
                "review.completed",
                #"{"userId":"ana","courseId":"es","reviewId":"r","itemsSeen":5,"itemsCorrect":5}"#,
                [
                    (#""itemsSeen":5"#, #""itemsSeen":4"#), (#","itemsCorrect":5"#, ""),
                    (#""itemsSeen":5,"#, ""), (#""itemsSeen":5"#, #""itemsSeen":5.5"#),
                    (#""itemsSeen":5"#, #""itemsSeen":9223372036854775808"#),
                ]
            ),
        ]
        for (type, data, broken) in known {
            batches.append([line("daybook.\(type)", data)])
            for change in broken { batches.append([line("daybook.\(type)", data, change)]) }
            let name = "\"daybook.\(type)\""
            for data in ["[]", "null", "\"x\""] { batches.append([line("daybook.\(type)", data)]) }
            batches.append([line("daybook.\(type)", data, (name, #"\#(name),"subject":"else""#))])
        }
        let odd = #"{"any":[1,2.50,"ü\n",null,true,{"a":{}}]}"#
        batches.append([line("test.odd", odd), line("test.odd", "null"), line("test.odd", "17")])
        let type = #""type":"test.odd""#
        for (from, to) in [
            (type, #""type":"""#), (type, #""type":7"#), (type, #""kind":"test.odd""#),
            (type, type + #","subject":"s""#), (type, type + #","subject":"""#),
            (type, type + #","subject":null,"partitionkey":"own lane""#),
            (type, type + #","other":17,"flag":true,"none":null"#),
            (type, type + #","Other":17"#), (type, type + #","other":{}"#),
            (type, type + #","other":[1]"#), (type, type + #","abcdefghijklmnopqrstu":1"#),
            (type, type + #","datacontenttype":"application/json""#),
            (type, type + #","datacontenttype":"text/plain""#),
            (type, type + #","data_base64":"AAA=""#), (type, type + #","position":"7""#),
            (#""specversion":"1.0""#, #""specversion":"0.3""#),
            (#""specversion":"1.0","#, ""), (#""specversion":"1.0""#, #""specversion":1.0"#),
            (#""source":"urn:uuid:"#, #""source":"device:"#),
            (#""source":"urn:uuid:"#, #""source":"URN:UUID:"#), (#""source":"#, #""origin":"#),
            (#""sequence":"0000"#, #""sequence":""#), (#""sequence":"0000"#, #""sequence":"-000"#),
            (#""sequence":"0000"#, #""sequence":"99990"#), (#""sequence":"#, #""number":"#),
            (#""time":"2026-02-22T10:30:14.425Z""#, #""time":null"#),
        ]
            + [
                "next year", "2026-02-30T10:30:14Z", "2026-02-22T24:00:00Z", "2026-02-22T10:30:14",
                "2026-02-22", "2026-02-22T10:30:14.1239+01:30", "2026-02-22t10:30:60z",
                "2026-02-22 10:30:14.5-08:00", "2026-02-22T10:30:14.Z", "2026-02-22T10:30:14+1:00",
                "9999-12-31T23:59:59.999Z", "2026-13-01T00:00:00Z",
            ].map({ ("2026-02-22T10:30:14.425Z", $0) }) where to != #""time":null"#
        {
            batches.append([line("test.odd", odd, (from, to))])
        }
        batches.append([
            line("test.odd", odd).replacing(#","data":\#(odd)"#, with: #","data_base64":"AAEC""#),
            line("test.odd", odd).replacing(#","data":\#(odd)"#, with: ""),
            line("test.odd", odd).replacing(#","data":\#(odd)"#, with: #","data_base64":7"#),
        ])
        for depth in [60, 61, 62] {
            let open = String(repeating: "[", count: depth)
            batches.append([
                line("test.odd", open + String(repeating: "]", count: depth))
            ])
        }
        // Not version 4; too large; twice; other content; a fork; blocked lanes; heads.
        var version1 = Sample(sequence: 1)
        version1.id = UUID(uuidString: "2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d") ?? UUID()
        var derived = Sample(sequence: 11, type: "test.odd")
        derived.id = version1.id
        var large = Sample(sequence: 2)
        large.data =
            #"{"userId":"a","cityId":"l","x":"\#(String(repeating: "x", count: 262_144))"}"#
        let first = Sample(sequence: 3)
        var changed = first
        changed.data = #"{"userId":"bob","cityId":"lisbon"}"#
        var moved = first
        moved.source = UUID()
        moved.lane = nil
        moved.time = nil
        moved.data = #"{ "cityId":"lis\u0062on", "userId":"ana" }"#
        let fork = Sample(sequence: 3, subject: "p", data: #"{"userId":"a","cityId":"p"}"#)
        let added = Sample.note("added", "n", 4)
        let mine = Sample.note("updated", "n", 5, base: added.id)
        let theirs = Sample.note("updated", "n", 6, base: added.id)
        let later = Sample.note("updated", "n", 7)
        let deleted = Sample.note("deleted", "n", 8, base: mine.id)
        let blind = Sample.note("updated", "n", 9)
        let unknown = Sample.note("updated", "m", 10, base: UUID())
        batches += [
            [version1, large, first, first, moved, changed], [first, changed, first], [fork],
            [fork, first], [derived], [added, mine, theirs, later, first], [mine, added],
            [deleted, blind, unknown, theirs],
        ].map { $0.map(\.line) }
        return batches
    }()

    @Test(.verifies("SYNC-44", "SUP-9"))
    func `the types that stay on the device are those of the catalogue`() async throws {
        let project = try await SupabaseProject()
        let owner = try project.fixture.connect()
        let catalogue = StorageFixture.catalogue
        for type in catalogue.types + ["daybook.of.a.newer.release", "shop.page.stored"] {
            let rows = try await owner.run(
                "SELECT schema IS NULL FROM daybook.event_type WHERE type = $1", [type])
            let isKept = catalogue[type].map { $0.action == nil ? "t" : "f" }
            #expect(rows.first?[0] == isKept, "\(type)")
        }
        let event = Sample(
            sequence: 1, type: "daybook.setting.put", subject: "k", lane: "k",
            data: #"{"key":"k","value":1}"#)
        let verdict = try #require(try await project.append([event]).first)
        #expect(verdict["status"] as? String == "rejected")
        #expect(verdict["code"] as? String == "invalid_event")
        #expect(try await project.all().isEmpty)
    }

    @Test(.verifies("SUP-10"))
    func `a cursor has any number that an event can have, and no other`() async throws {
        let project = try await SupabaseProject()
        let sql = "SELECT read_events($1, 10)"
        let page = try await project.call(sql, ["a9223372036854775807"])
        #expect(page["next"] as? String == "a9223372036854775807")
        for cursor in ["a9223372036854775808", "a+5", "a", "a5x", "a 5"] {
            await expect("22023") { _ = try await project.call(sql, [cursor]) }
        }
    }
}
