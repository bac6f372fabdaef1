// Questions to a log in SQL: the tables have what the log has, and nothing can be written.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogStorage
import TestSupport
import Testing

@testable import logtool

@Suite(.verifies("TOOL-52")) struct SQLTests {
    private func withSample(_ body: (_ log: String) throws -> Void) throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let run = try ToolRun.logtool("import", folder.log, Tool.sample)
        try #require(run.status == 0, "\(run.messages)")
        try body(folder.log)
    }

    private func rows(_ log: String, _ sql: String, _ options: String...) throws -> [[String: Any]]
    {
        let run = try ToolRun.logtool("sql", [log, sql, "--output", "ndjson"] + options)
        try #require(run.status == 0, "\(run.messages)")
        return try run.output.split(separator: "\n").map {
            try #require(
                try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
    }

    @Test func `events have the members of their lines`() throws {
        try withSample { log in
            var expected: [String] = []
            try LogReader(log).forEachEvent(catalogue: OfflineModel.catalogue) { event in
                let data = event.content.json.map { String(decoding: $0, as: UTF8.self) } ?? "-"
                expected.append(
                    "\(event.position) \(event.id.text) \(event.type) \(event.subject ?? "-") "
                        + "\(event.lane) \(event.source.text) \(event.sequence) \(event.time) \(data)"
                )
                return true
            }
            let found = try rows(
                log,
                "select printf('%d %s %s %s %s %s %d %s %s', position, id, type, "
                    + "ifnull(subject, '-'), lane, source, sequence, time, ifnull(data, '-')) as line "
                    + "from events")
            #expect(found.map { $0["line"] as? String } == expected)
            #expect(expected.count > 50)
        }
    }

    @Test func `bounds on position, id and type give the rows of a filter`() throws {
        try withSample { log in
            let all = try rows(log, "select position, id, type from events")
            let (id, type) = (
                try #require(all[20]["id"] as? String), try #require(all[20]["type"] as? String)
            )
            func positions(_ condition: String) throws -> [Int?] {
                try rows(log, "select position from events where \(condition)").map {
                    $0["position"] as? Int
                }
            }
            #expect(try positions("position > 5 and position <= 9") == [6, 7, 8, 9])
            #expect(try positions("position >= 5 and position < 7") == [5, 6])
            #expect(try positions("position = 3 or position = 9") == [3, 9])
            #expect(try positions("position = -1").isEmpty)
            #expect(try positions("position = null").isEmpty)
            // Rows keep their identity in plans that read the table twice.
            let either = all.filter {
                ($0["position"] as? Int) == 4 || ($0["type"] as? String) == type
            }.map { $0["position"] as? Int }
            let twice = try positions("position = 4 or type = '\(type)'")
            #expect(Set(twice) == Set(either))
            #expect(twice.count == either.count)
            #expect(
                try positions("type = '\(type.uppercased())' collate nocase")
                    == positions("type = '\(type)'"))
            #expect(try positions("position > -1").count == all.count)
            #expect(try positions("id = '\(id)'") == [21])
            #expect(try positions("id = '00000000-0000-4000-8000-000000000000'").isEmpty)
            #expect(try positions("id = 'other'").isEmpty)
            let ofType = all.filter { ($0["type"] as? String) == type }.map {
                $0["position"] as? Int
            }
            #expect(try positions("type = '\(type)'") == ofType)
            #expect(try positions("type = '\(type.dropLast())'").isEmpty)
            #expect(
                try positions("1 order by position desc")
                    == all.map { $0["position"] as? Int }.reversed())
        }
    }

    @Test func `joins and the values in JSON text are those of SQLite`() throws {
        try withSample { log in
            let notes = try rows(log, "select count(*) as n from notes")
            let joined = try rows(
                log,
                "select count(*) as n from notes n full join notes m on m.noteId = n.noteId")
            #expect(joined.first?["n"] as? Int == notes.first?["n"] as? Int)
            let users = try rows(
                log,
                "select count(*) as n from events, json_each(data) where json_valid(data) "
                    + "and key = 'userId'")
            let expected = try rows(
                log, "select count(*) as n from events where data ->> '$.userId' is not null")
            #expect(users.first?["n"] as? Int == expected.first?["n"] as? Int)
        }
    }

    @Test func `a view's table has the rows that logtool views prints`() throws {
        let views = OfflineModel.views.map { $0.name } + [Outbox.name]
        let counts = views.map { "select '\($0)' as view, count(*) as n from \($0)" }
        try withSample { log in
            for options in [[], ["--at", "30"]] {
                let printed = try ToolRun.logtool("views", [log, "--output", "ndjson"] + options)
                var expected: [String: Int] = [:]
                for line in printed.output.split(separator: "\n") {
                    let row = try JSONSerialization.jsonObject(with: Data(line.utf8))
                    let view = (row as? [String: Any])?["view"] as? String
                    expected[try #require(view), default: 0] += 1
                }
                let run = try ToolRun.logtool(
                    "sql", [log, counts.joined(separator: "; "), "--output", "csv"] + options)
                let lines = views.map { "view,n\r\n\($0),\(expected[$0] ?? 0)\r\n" }
                #expect(run.output == lines.joined())
                #expect(expected.count > 3)
            }
        }
    }

    @Test func `the columns of the views are the fields of all rows`() throws {
        try Property.check("columns", runs: 30) { choices in
            var log = RandomLog()
            for _ in 0..<200 { try choices.group { try log.step(&$0) } }
            for view in OfflineModel.views {
                var state = view.init() as any ListableView
                for event in log.history.events where view.folds(event.type) { state.fold(event) }
                let columns = Set(view.columns)
                for row in state.rows() {
                    let unknown = row.fields.map(\.name).filter { !columns.contains($0) }
                    try #require(unknown.isEmpty, "\(view.name): \(unknown)")
                }
            }
        }
    }

    @Test(arguments: [
        "delete from events", "insert into notes values (1)", "create table t (x)",
        "attach ':memory:' as other", "pragma journal_mode = wal", "begin", "vacuum",
        "select load_extension('x')", "drop table events", "select nothing from events",
        "select * from nowhere", "not sql",
    ])
    func `a statement that does anything but read is refused`(_ sql: String) throws {
        try withSample { log in
            let before = try FileManager.default.contentsOfDirectory(atPath: log).sorted()
            let run = try ToolRun.logtool(
                "sql", log, "select 1 as one; \(sql)", "--output", "ndjson")
            #expect(run.status == 64)
            #expect(run.output == "{\"one\":1}\n")
            #expect(run.messages.hasPrefix("logtool: "))
            #expect(try FileManager.default.contentsOfDirectory(atPath: log).sorted() == before)
        }
    }

    @Test func `types are sorted and grouped as if SQLite did it`() throws {
        try withSample { log in
            let copy = "with e as materialized (select position, type from events)"
            for (sql, other) in [
                (
                    "select type, rowid as p from events order by type",
                    "\(copy) select type, position as p from e order by type, position"
                ),
                (
                    "select type, count(*) as n from events group by type",
                    "\(copy) select type, count(*) as n from e group by type"
                ),
                (
                    "select distinct type from events order by type desc",
                    "\(copy) select distinct type from e order by type desc"
                ),
                (
                    """
                    select type, count(*) as n from events where type > 'daybook.course' \
                    group by type having n > 2
                    """,
                    """
                    \(copy) select type, count(*) as n from e where type > 'daybook.course' \
                    group by type having n > 2
                    """
                ),
            ] {
                let (found, expected) = (
                    try ToolRun.logtool("sql", log, sql), try ToolRun.logtool("sql", log, other)
                )
                #expect(found.output == expected.output, "\(sql)")
                #expect(!found.output.isEmpty, "\(sql)")
            }
            let plan = try rows(
                log, "explain query plan select type, count(*) from events group by type")
            #expect(plan.count == 1)
        }
    }

    @Test func `bounds of time give the rows of a filter, and skip segments`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await OfflineStore.open(at: URL(filePath: folder.log), compaction: nil)
        var sequence: UInt64 = 0
        for hour in 0..<6 {
            // One late event in each segment but the first.
            for time in [hour * 60, hour * 60 + 30, max(0, hour - 1) * 60 + 45] {
                sequence += 1
                var draft = try EventDraft(CitySaved(userId: "u", cityId: "\(sequence)"))
                draft.time = Timestamp(milliseconds: 1_771_750_000_000 + Int64(time) * 60_000)
                try await store.events.append(contentsOf: [draft])
            }
            if hour < 5 { try store.events.log.roll() }
        }
        try await store.close()
        let all = try rows(folder.log, "select position, time from events")
        func positions(_ condition: String) throws -> [Int64] {
            var positions: [Int64] = []
            try SQLQuery(LogTables.all(LogReader(folder.log), through: nil)).run(
                "select position from events where \(condition)", begin: { _ in },
                row: { if case .integer(let position) = $0[0] { positions.append(position) } })
            return positions
        }
        for bound in all.compactMap({ $0["time"] as? String }) + ["2026", "2026-02-22T1", "2027"] {
            for comparison in ["=", "<", "<=", ">", ">="] {
                let found = try positions("time \(comparison) '\(bound)'")
                let expected = try positions("+time \(comparison) '\(bound)'")
                #expect(found == expected, "\(comparison) \(bound)")
            }
        }
        // Damage in a segment that is not read is not found.
        let file = folder.log + "/" + SegmentName.of(Position(1))
        let handle = try FileHandle(forUpdating: URL(filePath: file))
        try handle.seek(toOffset: 600)
        try handle.write(contentsOf: [UInt8](repeating: 0xAA, count: 40))
        try handle.close()
        let last = try #require(all.last?["time"] as? String)
        for (condition, status) in [("time >= '\(last)'", 0), ("+time >= '\(last)'", 65)] {
            let run = try ToolRun.logtool(
                "sql", folder.log, "select position from events where \(condition)")
            #expect(run.status == status)
        }
    }

    @Test func `rows in several portions have the data of their events`() throws {
        try withSample { log in
            let reader = LogReader(log)
            let (outbox, _) = try reader.fold(
                catalogue: OfflineModel.catalogue, from: { Outbox() }
            ) { $0.fold($1) }
            let rows = outbox.rows()
            #expect(rows.count > 20)
            // In the order of the log, in another order, and in one portion.
            for (order, portionMax) in [
                (Array(rows), 7), (rows.reversed(), 7), (Array(rows), 1_000),
            ] {
                let table = RowsTable("changes", columns: Outbox.columns) {
                    PortionedRows(ViewRows(order), reader, portionMax: portionMax)
                }
                var ids: [String] = []
                var differing = 0
                try SQLQuery([table] + LogTables.all(reader, through: nil)).run(
                    """
                    with e as materialized (select position, data from events)
                    select id, actionData is not data, c.other from
                    (select *, (select count(*) from changes) as other from changes) c
                    join e using (position)
                    """, begin: { _ in },
                    row: { values in
                        if case .text(let text) = values[0] {
                            ids.append(String(decoding: text, as: UTF8.self))
                        }
                        if case .integer(0) = values[1] {} else { differing += 1 }
                        if case .integer(Int64(rows.count)) = values[2] {} else { differing += 1 }
                    })
                #expect(ids.count == rows.count)
                #expect(Set(ids).count == rows.count)
                #expect(differing == 0)
            }
        }
    }

    @Test func `statements come from an argument, a file or standard input`() throws {
        try withSample { log in
            let sql = "-- the first\nselect 1 as a;\nselect 'x,\"y' as b, null as c;\n"
            let run = try ToolRun.logtool("sql", log, "--output", "csv", input: sql)
            #expect(run.output == "a\r\n1\r\nb,c\r\n\"x,\"\"y\",\r\n")
            let file = log + ".sql"
            try Data(sql.utf8).write(to: URL(filePath: file))
            let ofFile = try ToolRun.logtool("sql", log, "--file", file, "--output", "csv")
            #expect(ofFile.output == run.output)
        }
    }

    @Test(.verifies("TOOL-59"))
    func `CSV distinguishes NULL from the empty text, and no text is a formula`() throws {
        try withSample { log in
            let run = try ToolRun.logtool(
                "sql", log,
                "select null as '=a', '' as b, '=1+1' as c, '-x' as d, -1 as e, '@\"' as f",
                "--output", "csv")
            #expect(run.output == "'=a,b,c,d,e,f\r\n,\"\",'=1+1,'-x,-1,\"'@\"\"\"\r\n")
        }
    }

    @Test func `the prompt answers at each semicolon, and recalls the lines of an earlier one`()
        throws
    {
        try withSample { log in
            let history = log + ".history"
            func prompt(_ texts: String...) throws -> String {
                let run = try ToolRun.logtoolOnTerminal(
                    ["sql", log, "--output", "ndjson"], typing: texts,
                    environment: ["LOGTOOL_SQL_HISTORY": history, "TERM": "xterm"])
                #expect(run.status == 0)
                return run.output
            }
            let first = try prompt("select 6 *\n", "7 as answer; select 'x' as y;\n", "\u{4}")
            #expect(first.contains(#"{"answer":42}"#))
            #expect(first.contains(#"{"y":"x"}"#))
            // Without libedit there is no history.
            guard FileManager.default.fileExists(atPath: history) else { return }
            let mode = try FileManager.default.attributesOfItem(atPath: history)[.posixPermissions]
            #expect(mode as? Int == 0o600)
            // The arrow up, twice.
            let recalled = "\u{1B}[A\u{1B}[A\n"
            let second = try prompt(recalled, recalled, "\u{4}")
            #expect(second.contains(#"{"answer":42}"#))
            // A head, and each line once.
            let lines = try String(contentsOfFile: history, encoding: .utf8).split(separator: "\n")
            #expect(lines.count == 5)
        }
    }

    @Test func `a log that is missing or damaged ends with its exit code`() throws {
        try withSample { log in
            let late = try ToolRun.logtool("sql", log, "select 1", "--at", "999999")
            #expect(late.status == 65)
        }
        let missing = try ToolRun.logtool("sql", "/nowhere/at-all", "select 1")
        #expect(missing.status == 66)
        let damaged = Tool.root.appending(path: "Spec/vectors/damaged").path
        let run = try ToolRun.logtool(
            "sql", damaged, "select position from events", "--output", "ndjson")
        #expect(run.status == 65)
        #expect(run.output == "{\"position\":1}\n{\"position\":2}\n")
        // Also of those that are sorted.
        let types = try ToolRun.logtool("sql", damaged, "select type from events order by type")
        #expect(types.status == 65)
        #expect(types.output.split(separator: "\n").count == 2)
    }
}
