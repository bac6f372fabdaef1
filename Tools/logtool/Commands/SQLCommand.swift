// logtool sql: answers questions to a log in SQL. Spec/operations/logtool.md, TOOL-52.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct SQLCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sql",
        abstract: "Answers questions to a log in SQL.",
        discussion: """
            Tables: events (\(eventColumns)); segments; outbox; and the views: \(viewNames). Without a \
            statement it reads statements from standard input. Only reads, whatever the statement. \
            A statement that exceeds a limit ends with 74.

            Example: logtool sql ./log "select type, count(*) from events group by type"
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Argument(help: "The statements, separated by semicolons.")
    var statements: String?
    @Option(help: "A file with statements.", completion: .file(extensions: ["sql"]))
    var file: String?
    @Option(help: "The log as it was at this position.")
    var at: UInt64?
    @Option(
        help: .init(
            "The most seconds that an answer takes; 0 sets no limit.", valueName: "seconds"))
    var timeLimit = 60.0
    @Option(
        help: .init("The most MiB of memory for SQLite; 0 sets no limit.", valueName: "mebibytes"))
    var memoryLimit = 512
    @Option(
        help: .init(
            "The most MiB of temporary files for SQLite; 0 sets no limit.", valueName: "mebibytes"))
    var tempLimit = 1_024
    @Option(help: "table, json, ndjson or csv. Default: table on a terminal, else ndjson.")
    var output: SQLOutputFormat?

    static var eventColumns: String {
        EventsTable.Column.allCases.map { "\($0)" }.joined(separator: ", ")
    }
    static var viewNames: String {
        OfflineModel.views.map { $0.name }.joined(separator: ", ")
    }

    func validate() throws {
        if statements != nil, file != nil {
            throw ValidationError("Statements and --file cannot be used together.")
        }
        guard 0...1_000_000 ~= timeLimit, 0...1_000_000_000 ~= memoryLimit,
            0...1_000_000_000 ~= tempLimit
        else {
            throw ValidationError(
                "--time-limit is 0 to 1,000,000, --memory-limit and --temp-limit are 0 to "
                    + "1,000,000,000.")
        }
    }

    func run() async throws {
        try await Exit.mapping {
            let limits = SQLLimits(
                seconds: timeLimit, memoryMiB: memoryLimit, temporaryMiB: tempLimit)
            let reader = LogReader(directory, fileSystem: limits.files)
            _ = try reader.files()
            try EventData.refuseCompacted(at, reader)
            try refusePositionAfterEnd(reader)
            let tables = LogTables.all(reader, through: at.map { Position($0) })
            let query = try SQLQuery(tables, limits)
            limits.endStuckAnswers()
            let format = output ?? (isatty(STDOUT_FILENO) == 1 ? .table : .ndjson)
            do {
                if let sql = try givenStatements() {
                    try answer(sql, query, format)
                } else {
                    try answerInput(query, tables, format)
                }
            } catch let error as SQLError {
                Message.error(error.description)
                throw error.isOfSystem ? Exit.io : Exit.usage
            }
        }
    }

    /// The file with the lines of earlier prompts; nil for none.
    private static var historyFile: LineEditor.Path? {
        if let file = getenv("LOGTOOL_SQL_HISTORY") {
            return file.pointee == 0 ? nil : LineEditor.Path(file)
        }
        return getenv("HOME").map { LineEditor.Path($0, appending: "/.logtool_sql_history") }
    }

    private func refusePositionAfterEnd(_ reader: LogReader) throws {
        guard let at, at > 0 else { return }
        let last = try reader.forEachLine(from: Position(at)) { _, _ in false }.last
        guard at > last.rawValue else { return }
        Message.error("the log has no position \(at) yet")
        throw Exit.badData
    }

    private func givenStatements() throws -> String? {
        try file.map(StatementText.ofFile) ?? statements
    }

    private func answer(_ sql: String, _ query: SQLQuery, _ format: SQLOutputFormat) throws {
        var writer: SQLRowWriter?
        defer { writer?.finish() }
        try query.run(
            sql,
            begin: { columns in
                writer?.finish()
                writer = SQLRowWriter(format, columns)
            },
            row: { writer?.write($0) })
    }

    /// Answers the statements of standard input: all at its end, or on a terminal each at its semicolon.
    private func answerInput(
        _ query: SQLQuery, _ tables: [SQLTable], _ format: SQLOutputFormat
    ) throws {
        guard isatty(STDIN_FILENO) == 1 else {
            return try answer(StatementText.ofInput(), query, format)
        }
        Message.note("a statement ends with a semicolon; Control-D ends the prompt")
        func answerOne(_ statement: String) {
            // The log may have grown since the last one.
            for case let table as RowsTable in tables { table.forgetRows() }
            do { try answer(statement, query, format) } catch is ExitCode {
                // Its message is written.
            } catch { Message.error(ErrorText.of(error)) }
        }
        let editor = LineEditor(history: Self.historyFile)
        var statement = ""
        while let line = editor.read(prompt: statement.isEmpty ? "sql> " : "...> ") {
            statement += line + "\n"
            if statement.allSatisfy(\.isWhitespace) { statement = "" }
            guard SQLQuery.isComplete(statement) else { continue }
            answerOne(statement)
            statement = ""
        }
        Message.write("\n")
        if !statement.isEmpty { answerOne(statement) }
    }
}
