// The notes of Tests/ReplayTests/Requests/NotesAPI.swift over HTTP, as a Swift team writes such an API. A key, its answer
// and the change are one transaction, so a kill leaves all of them or none. Tools/strangers/apis/run starts it.
//
//     notesserver PORT FILE

import Foundation
import GRDB
import Hummingbird

struct Line: Decodable { var text: String }

/// An answer, as the keys keep it.
struct KeptAnswer: Sendable {
    var status: Int
    var body: String

    var response: Response {
        Response(
            status: .init(code: status), headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: body)))
    }
}

/// The SQLite file.
struct NotesFile: Sendable {
    let queue: DatabaseQueue

    init(_ path: String) throws {
        queue = try DatabaseQueue(path: path)
        try queue.write { database in
            try database.execute(
                sql: """
                    create table if not exists notes (number integer primary key autoincrement, client text);
                    create table if not exists lines
                        (number integer primary key autoincrement, note integer, text text, key text);
                    create table if not exists keys
                        (key text primary key, request text not null, status integer, body text);
                    """)
        }
    }

    /// Applies a request once for each key, and answers as at the first time. Another request with the same key is 422.
    func once(
        _ key: String?, _ request: String,
        _ apply: @Sendable (Database) throws -> KeptAnswer
    ) async throws -> KeptAnswer {
        guard let key else {
            return KeptAnswer(
                status: 400, body: #"{"detail":"a request needs an Idempotency-Key"}"#)
        }
        return try await queue.write { database in
            let row = try Row.fetchOne(
                database, sql: "select request, status, body from keys where key = ?",
                arguments: [key])
            if let row {
                guard row["request"] == request else {
                    return KeptAnswer(
                        status: 422, body: #"{"detail":"the key belongs to another request"}"#)
                }
                return KeptAnswer(status: row["status"], body: row["body"])
            }
            let answer = try apply(database)
            try database.execute(
                sql: "insert into keys values (?, ?, ?, ?)",
                arguments: [key, request, answer.status, answer.body])
            return answer
        }
    }
}

@main struct NotesServer {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let port = Int(arguments[1]) else {
            FileHandle.standardError.write(Data("usage: notesserver PORT FILE\n".utf8))
            exit(64)
        }
        let file = try NotesFile(arguments[2])
        let app = Application(
            router: router(file), configuration: .init(address: .hostname("127.0.0.1", port: port)))
        try await app.runService()
    }

    private static func router(_ file: NotesFile) -> Router<BasicRequestContext> {
        let router = Router()
        router.post("notes") { request, context in
            let client = try request.uri.queryParameters.require("client")
            return try await applyOnce(request, context, file) { database, text, key in
                try database.execute(
                    sql: "insert into notes (client) values (?)", arguments: [client])
                let note = database.lastInsertedRowID
                try append(text, to: note, key, database)
                return KeptAnswer(status: 201, body: "{\"number\":\(note)}")
            }
        }
        router.post("notes/:number/lines") { request, context in
            let note = try context.parameters.require("number", as: Int64.self)
            return try await applyOnce(request, context, file) { database, text, key in
                let known = try Bool.fetchOne(
                    database, sql: "select 1 from notes where number = ?", arguments: [note])
                guard known != nil else {
                    return KeptAnswer(status: 404, body: #"{"detail":"there is no such note"}"#)
                }
                try append(text, to: note, key, database)
                return KeptAnswer(status: 201, body: "{}")
            }
        }
        router.get("dump") { request, _ in
            try await dump(file, try request.uri.queryParameters.require("prefix"))
        }
        return router
    }

    private static func applyOnce(
        _ request: Request, _ context: BasicRequestContext, _ file: NotesFile,
        _ apply: @escaping @Sendable (Database, String, String) throws -> KeptAnswer
    ) async throws -> Response {
        let line = try await request.decode(as: Line.self, context: context)
        let key = request.headers.first { $0.name.canonicalName == "idempotency-key" }?.value
        let sent = "\(request.method.rawValue) \(request.uri.string) \(line.text)"
        return try await file.once(key, sent) { try apply($0, line.text, key ?? "") }.response
    }

    private static func append(
        _ text: String, to note: Int64, _ key: String, _ database: Database
    ) throws {
        try database.execute(
            sql: "insert into lines (note, text, key) values (?, ?, ?)",
            arguments: [note, text, key])
    }

    private struct Dump: Encodable {
        var notes: Int
        var rows: [Row]

        struct Row: Encodable {
            var note: String
            var text: String
        }
    }

    private static func dump(_ file: NotesFile, _ prefix: String) async throws -> Response {
        let dump = try await file.queue.read { database in
            let notes = try Int.fetchOne(
                database, sql: "select count(*) from notes where client like ?",
                arguments: [prefix + "%"])
            let rows = try Row.fetchAll(
                database,
                sql: """
                    select client, text from lines join notes on notes.number = lines.note
                    where client like ? order by lines.number
                    """,
                arguments: [prefix + "%"])
            return Dump(
                notes: notes ?? 0, rows: rows.map { .init(note: $0["client"], text: $0["text"]) })
        }
        let body = String(decoding: try JSONEncoder().encode(dump), as: UTF8.self)
        return KeptAnswer(status: 200, body: body).response
    }
}
