// A stand-in for PostgREST in front of a project's database: no package of the test's systems has PostgREST itself.

import Foundation
import SyncServerStorage
import Synchronization
import TestSupport
import Testing

@testable import SyncServerPostgreSQL

/// Answers insertions, updates with filters, and calls of functions as PostgREST does from version 10 on: each is one statement in a
/// transaction with the caller's role. The token is the user's id.
final class PostgREST: Sendable {
    private let server: LocalServer
    /// The project's address.
    let url: URL

    /// Starts the server.
    ///
    /// - Parameter losing: the numbers of the requests, from 1, that are executed and not answered.
    init(_ project: SupabaseProject, losing lost: Set<Int> = []) throws {
        let count = Atomic(0)
        server = try LocalServer { request in
            let answer = Mutex(LocalServer.Answer.hangUp)
            let isDone = DispatchSemaphore(value: 0)
            Task {
                let reply = await Self.answer(to: request, project)
                answer.withLock { $0 = reply }
                isDone.signal()
            }
            isDone.wait()
            let number = count.add(1, ordering: .relaxed).newValue
            return lost.contains(number) ? .hangUp : answer.withLock { $0 }
        }
        url = try #require(URL(string: server.base))
    }

    private struct Statement {
        var sql: String
        var values: [String?]
        var status = 200
    }

    private static func answer(
        to request: LocalServer.Request, _ project: SupabaseProject
    ) async -> LocalServer.Answer {
        let token = request.values("Authorization").first?.replacing("Bearer ", with: "")
        let user = token == "KEY" ? nil : token
        do {
            let statement = try await statement(for: request, project)
            let rows = try await project.run(
                statement.sql, statement.values, role: user == nil ? "anon" : "authenticated",
                user: user)
            let isShown =
                request.target.contains("/rpc/")
                || request.values("Prefer").contains { $0.contains("return=representation") }
            guard isShown else { return .reply(statement.status == 201 ? 201 : 204) }
            return reply(statement.status, rows.first?[0] ?? "null")
        } catch {
            let text = (error as? StorageError)?.detail ?? "\(error)"
            let code = text.firstMatch(of: /\(([0-9A-Z]{5})\)/).map { String($0.1) }
            let body = ["code": code ?? "PGRST000", "message": text]
            let json = try? JSONEncoder().encode(body)
            return reply(status(of: code), String(decoding: json ?? Data(), as: UTF8.self))
        }
    }

    private static func reply(_ status: Int, _ json: String) -> LocalServer.Answer {
        .reply(
            status, headers: [("Content-Type", "application/json; charset=utf-8")],
            body: Array(json.utf8))
    }

    /// The table "HTTP Status Codes" of PostgREST's documentation.
    private static func status(of code: String?) -> Int {
        guard let code else { return 503 }
        if code.hasPrefix("PT") { return Int(code.dropFirst(2)) ?? 500 }
        return switch code {
        case "23503", "23505": 409
        case "42501": 403
        case "42883", "42P01": 404
        default: ["22", "23", "42", "P0"].contains(code.prefix(2)) ? 400 : 500
        }
    }

    private static func statement(
        for request: LocalServer.Request, _ project: SupabaseProject
    ) async throws -> Statement {
        let parts = URLComponents(string: request.target)
        let path = (parts?.path ?? "").split(separator: "/").map(String.init)
        let body = String(decoding: request.body, as: UTF8.self)
        let json = try JSONSerialization.jsonObject(with: Data(request.body))
        let names = ((json as? [String: Any]) ?? [:]).keys.sorted()
        let columns = names.joined(separator: ", ")
        let table = "public.\(path.last ?? "")"
        let given = "SELECT \(columns) FROM json_populate_record(NULL::\(table), $1::json)"
        switch (request.method, path.dropLast().last) {
        case ("POST", "rpc"):
            return try await call(path.last ?? "", names, body, project)
        case ("POST", _):
            let ignores = request.values("Prefer").contains { $0.contains("ignore-duplicates") }
            let key = try await primaryKey(of: table, project)
            return Statement(
                sql: rows(
                    of: "INSERT INTO \(table) (\(columns)) \(given)"
                        + (ignores ? " ON CONFLICT (\(key)) DO NOTHING" : "")),
                values: [body], status: 201)
        case ("PATCH", _):
            var values: [String?] = [body]
            let filters = (parts?.queryItems ?? []).map { item in
                condition(item.name, item.value ?? "", &values)
            }
            return Statement(
                sql: rows(
                    of: "UPDATE \(table) SET (\(columns)) = (\(given)) WHERE "
                        + filters.joined(separator: " AND ")),
                values: values)
        default: throw StorageError(.failed, "the stand-in has no \(request.method)")
        }
    }

    private static func rows(of change: String) -> String {
        "WITH changed AS (\(change) RETURNING *) SELECT coalesce(json_agg(changed), '[]') FROM changed"
    }

    private static func call(
        _ function: String, _ names: [String], _ body: String, _ project: SupabaseProject
    ) async throws -> Statement {
        let types = try await project.fixture.connect().run(
            """
            SELECT a.name, format_type(a.type, NULL)
            FROM pg_proc p, unnest(p.proargnames, p.proargtypes::oid[]) a (name, type)
            WHERE p.pronamespace = 'public'::regnamespace AND p.proname = $1
            """, [function])
        let known = types.filter { names.contains($0[0] ?? "") }
        let arguments = known.map { "\($0[0] ?? "") => r.\($0[0] ?? "")" }
        let members = known.map { "\($0[0] ?? "") \($0[1] ?? "")" }
        return Statement(
            sql: "SELECT to_json(public.\(function)(\(arguments.joined(separator: ", ")))) "
                + "FROM json_to_record($1::json) r (\(members.joined(separator: ", ")))",
            values: [body])
    }

    private static func primaryKey(
        of table: String, _ project: SupabaseProject
    ) async throws -> String {
        try await project.fixture.connect().run(
            """
            SELECT string_agg(a.attname, ', ') FROM pg_index i
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
            WHERE i.indrelid = $1::regclass AND i.indisprimary
            """, [table]
        ).first?[0] ?? ""
    }

    /// A filter: `name=eq.value` or `or=(name.eq.value,…)`.
    private static func condition(
        _ name: String, _ text: String, _ values: inout [String?]
    ) -> String {
        guard name == "or" else {
            values.append(String(text.dropFirst("eq.".count)))
            return "\(name) = $\(values.count)"
        }
        let alternatives = text.dropFirst().dropLast().split(separator: ",").map { part in
            let words = part.split(separator: ".", maxSplits: 1)
            return condition(String(words[0]), String(words[1]), &values)
        }
        return "(\(alternatives.joined(separator: " OR ")))"
    }
}
