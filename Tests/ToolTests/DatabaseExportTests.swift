// logtool export with --layout sqlite: a database with the tables of logtool sql.

import DaybookOffline
import DaybookTestKit
import Foundation
import GRDBSQLite
import LogStorage
import TestSupport
import Testing

@Suite(.verifies("TOOL-53")) struct DatabaseExportTests {
    private func imported() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try #require(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        return folder
    }

    private func export(_ log: String, _ file: String, _ more: String...) throws -> ToolRun {
        try ToolRun.logtool("export", [log, file, "--layout", "sqlite"] + more)
    }

    /// The rows of a statement, each with its values as texts.
    private func rows(_ file: String, _ sql: String) throws -> [[String?]] {
        var connection: OpaquePointer?
        defer { sqlite3_close_v2(connection) }
        try #require(
            sqlite3_open_v2(file, &connection, SQLITE_OPEN_READONLY, nil) == SQLITE_OK)
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        try #require(sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK)
        var rows: [[String?]] = []
        while sqlite3_step(statement) == SQLITE_ROW {
            rows.append(
                (0..<sqlite3_column_count(statement)).map { column in
                    sqlite3_column_text(statement, column).map { String(cString: $0) }
                })
        }
        return rows
    }

    @Test func `the database has the rows that logtool sql prints`() throws {
        let folder = try imported()
        defer { folder.remove() }
        let file = folder.path + "/log.sqlite"
        let run = try export(folder.log, file)
        #expect(run.status == 0, "\(run.messages)")
        #expect(run.messages.isEmpty, "\(run.messages)")
        #expect(run.output.hasPrefix("{\"tables\":16,\"last\":56,"))
        #expect(try rows(file, "pragma integrity_check") == [["ok"]])
        let tables = try rows(file, "select name from sqlite_schema where type = 'table'")
            .compactMap { $0[0] }
        #expect(Set(tables).isSuperset(of: OfflineModel.views.map { $0.name }))
        for table in tables {
            // All values as one text; the names are the same on both sides.
            let names = try rows(file, "select name from pragma_table_info('\(table)')")
                .compactMap { $0[0] }
            let values = names.map { "quote(\"\($0)\")" }.joined(separator: " || ',' || ")
            let sql = "select \(values) as line from \(table)"
            let printed = try ToolRun.logtool("sql", folder.log, sql, "--output", "ndjson")
            let expected = try printed.output.split(separator: "\n").map { line in
                let row = try JSONSerialization.jsonObject(with: Data(line.utf8))
                return [(row as? [String: Any])?["line"] as? String]
            }
            #expect(try rows(file, sql) == expected, "\(table)")
        }
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
        #expect(mode as? Int == 0o600)
    }

    @Test func `all tables end at one position while a writer appends`() async throws {
        let folder = try imported()
        defer { folder.remove() }
        let file = folder.path + "/log.sqlite"
        let store = try await OfflineStore.open(at: URL(filePath: folder.log))
        let writer = Task {
            while !Task.isCancelled { try await store.notes.add("x", city: "lisbon", by: "ada") }
        }
        for _ in 0..<5 {
            #expect(try export(folder.log, file, "--force").status == 0)
            let counts = try rows(
                file,
                "select (select count(*) from notes where content = 'x'), (select count(*) from "
                    + "events where type = 'daybook.note.added' and data ->> '$.content' = 'x'), "
                    + "(select max(position) from events) - (select max(position) from outbox)")
            #expect(counts[0][0] == counts[0][1])
            #expect(counts[0][2] == "0")
        }
        writer.cancel()
        // The last call may end with the cancellation.
        _ = await writer.result
        try await store.close()
    }

    @Test func `a file is replaced only with --force, and a failed export leaves none`() throws {
        let folder = try imported()
        defer { folder.remove() }
        let file = try folder.file("mine", content: "mine").path
        #expect(try export(folder.log, file).status == 74)
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "mine")
        let link = folder.path + "/link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file)
        #expect(try export(folder.log, link, "--force").status == 74)
        #expect(try export(folder.log, folder.log + "/x", "--force").status == 74)
        let other = folder.path + "/other"
        #expect(try export(folder.path + "/none", other).status == 66)
        let damaged = Tool.root.appending(path: "Spec/vectors/damaged").path
        let run = try export(damaged, other)
        #expect(run.status == 65)
        #expect(run.output.isEmpty)
        #expect(run.messages.contains("logtool repair"))
        for more in [["--from", "1"], ["--to", "1"], ["--type", "daybook.note.added"]] {
            let run = try ToolRun.logtool(
                "export", [folder.log, other, "--layout", "sqlite"] + more)
            #expect(run.status == 64)
            #expect(run.output.isEmpty)
        }
        #expect(try export(folder.log, "-").status == 64)
        #expect(try export(folder.log, file, "--force").status == 0)
        #expect(try rows(file, "select count(*) from events") == [["56"]])
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.sorted() == ["link", "log", "mine"])
    }
}
