// One connection to a PostgreSQL server through libpq, and the thread that waits for it. Lent out by
// PostgreSQLPool; nothing else calls libpq. Spec/operations/postgresql.md.

import CPostgreSQL
import EventSourcing
import Foundation
import SyncServerStorage

/// A connection that is opened when it is first needed, and opened again after it was lost.
actor PostgreSQLConnection {
    /// Milliseconds that one statement may take, unless the database's settings name a limit.
    static let statementMillisecondsMax = 10_000
    /// How much longer to wait for a server that should have given up a statement, and says nothing.
    static let silenceMillisecondsMax = 5_000

    /// The SQLSTATE `disk_full`.
    private static let diskFull = "53100"

    /// An open connection; closed when nothing holds it any more.
    private final class Link {
        let handle: OpaquePointer
        /// Milliseconds after which the server gives up a statement.
        var statementMilliseconds = statementMillisecondsMax
        init(_ handle: OpaquePointer) { self.handle = handle }
        deinit { PQfinish(handle) }
    }

    private let location: PostgreSQLLocation
    private var link: Link?
    /// libpq waits for the server: not on a thread of the cooperative pool.
    private let executor = StoreExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Connects nowhere yet.
    init(_ location: PostgreSQLLocation) { self.location = location }

    /// Runs one statement in a transaction of its own.
    ///
    /// - Parameters:
    ///   - values: for `$1`, `$2`, …, as text without U+0000; nil is NULL.
    /// - Returns: the rows, each column as text.
    /// - Throws: `StorageError`. Where the connection was lost it is not known whether the
    ///   statement was carried out.
    func run(_ sql: String, _ values: [String?] = []) throws -> [[String?]] {
        let link = try connected()
        let isSent = Self.withPointers(values) {
            PQsendQueryParams(link.handle, sql, Int32(values.count), nil, $0, nil, nil, 0)
        }
        guard isSent == 1 else { throw lost() }
        let wait = link.statementMilliseconds + Self.silenceMillisecondsMax
        return try answer(of: link, within: .milliseconds(wait))
    }

    /// Runs several statements, in one transaction if they begin none.
    ///
    /// - Throws: `StorageError`; then nothing was changed.
    func runScript(_ sql: String) throws {
        let link = try connected()
        guard PQsendQuery(link.handle, sql) == 1 else { throw lost() }
        _ = try answer(of: link, within: nil)
    }

    /// Ends the connection.
    func close() { link = nil }

    // MARK: Opening

    private func connected() throws -> Link {
        if let link {
            // A server that has gone away has closed its end: seen without asking it. It may have
            // said why, so the first look can find those words and the second the end.
            if PQconsumeInput(link.handle) == 1, PQconsumeInput(link.handle) == 1,
                PQstatus(link.handle) == CONNECTION_OK
            {
                return link
            }
            self.link = nil
        }
        let link = try open()
        self.link = link
        return link
    }

    private func open() throws -> Link {
        // Of two settings with one name the later counts, so what the location says goes first.
        let settings = [
            ("connect_timeout", "5"), ("tcp_user_timeout", "15000"),
            ("client_encoding", "UTF8"), ("application_name", "syncserver"),
            ("dbname", location.url),
        ]
        let handle = Self.withPointers(settings.map(\.0)) { names in
            Self.withPointers(settings.map(\.1)) { PQconnectdbParams(names, $0, 1) }
        }
        guard let handle else { throw StorageError(.failed, "PostgreSQL: no memory") }
        let link = Link(handle)
        guard PQstatus(handle) == CONNECTION_OK else {
            throw StorageError(
                .failed, "PostgreSQL: \(location.withoutPassword(in: Self.message(handle)))")
        }
        // Notices could repeat what an event says.
        PQsetNoticeProcessor(handle, { _, _ in }, nil)
        guard PQsetnonblocking(handle, 1) == 0 else { throw lost() }
        // A commit that is answered is on the disk, whatever the database's default.
        let isSent = PQsendQuery(
            handle,
            """
            SELECT set_config('statement_timeout', '\(Self.statementMillisecondsMax)', false)
            WHERE current_setting('statement_timeout') = '0';
            SELECT set_config('synchronous_commit', 'on', false)
            WHERE current_setting('synchronous_commit') IN ('off', 'local');
            SET TimeZone = 'UTC';
            SELECT setting FROM pg_settings WHERE name = 'statement_timeout'
            """)
        guard isSent == 1 else { throw lost() }
        let limit = try answer(of: link, within: .milliseconds(Self.silenceMillisecondsMax))
        link.statementMilliseconds =
            limit.first?[0].flatMap { Int($0) } ?? Self.statementMillisecondsMax
        return link
    }

    /// Waits for all that a query that was sent is answered with.
    ///
    /// - Parameter limit: a server that has stopped or cannot be reached any more says nothing, so
    ///   its own limit is not enough; nil waits as long as it takes.
    /// - Returns: the rows of the last statement.
    private func answer(of link: Link, within limit: Duration?) throws -> [[String?]] {
        let deadline = limit.map { ContinuousClock.now + $0 }
        var last: [[String?]] = []
        var failure: (any Error)?
        while true {
            while true {
                let unsent = PQflush(link.handle)
                guard unsent >= 0 else { throw lost() }
                if unsent == 0, PQisBusy(link.handle) == 0 { break }
                var place = pollfd(
                    fd: PQsocket(link.handle),
                    events: Int16(POLLIN) | (unsent > 0 ? Int16(POLLOUT) : 0), revents: 0)
                let left = deadline.map { ContinuousClock.now.duration(to: $0) }
                if let left, left <= .zero {
                    self.link = nil
                    throw StorageError(.failed, "PostgreSQL: the server does not answer")
                }
                let milliseconds = left.map { Int32(clamping: Int($0 / .milliseconds(1)) + 1) }
                guard poll(&place, 1, milliseconds ?? -1) >= 0 || errno == EINTR,
                    place.revents & Int16(POLLIN | POLLERR | POLLHUP) == 0
                        || PQconsumeInput(link.handle) == 1
                else { throw lost() }
            }
            guard let result = PQgetResult(link.handle) else { break }
            do { last = try rows(result, of: link) } catch { failure = error }
        }
        if let failure { throw failure }
        return last
    }

    private func lost() -> StorageError {
        link = nil
        return StorageError(.failed, "PostgreSQL: the connection was lost")
    }

    // MARK: Results

    private func rows(_ result: OpaquePointer?, of link: Link) throws -> [[String?]] {
        defer { PQclear(result) }
        let status = PQresultStatus(result)
        guard status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK else {
            guard PQstatus(link.handle) == CONNECTION_OK else { throw lost() }
            // The text of an error may repeat what an event says; its code does not.
            let code = PQresultErrorField(result, Int32(UInt8(ascii: "C")))
                .map { String(cString: $0) }
            throw StorageError(
                code == Self.diskFull ? .noRoom : .failed,
                "PostgreSQL: the statement failed (\(code ?? "no code"))")
        }
        let columns = PQnfields(result)
        return (0..<PQntuples(result)).map { row in
            (0..<columns).map { column in
                guard PQgetisnull(result, row, column) == 0,
                    let value = PQgetvalue(result, row, column)
                else { return nil }
                let count = Int(PQgetlength(result, row, column))
                return UnsafeRawBufferPointer(start: value, count: count)
                    .withMemoryRebound(to: UInt8.self) { String(decoding: $0, as: UTF8.self) }
            }
        }
    }

    private static func message(_ handle: OpaquePointer) -> String {
        String(cString: PQerrorMessage(handle))
            .split(whereSeparator: \.isNewline).joined(separator: " ")
    }

    /// Calls with C strings that live as long as the call; a NULL stands behind the last.
    private static func withPointers<Result>(
        _ values: [String?], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
        var bytes: [CChar] = []
        let starts: [Int?] = values.map { value in
            guard let value else { return nil }
            defer {
                bytes.append(contentsOf: value.utf8.map { CChar(bitPattern: $0) })
                bytes.append(0)
            }
            return bytes.count
        }
        return bytes.withUnsafeBufferPointer { buffer in
            let pointers = starts.map { start in
                start.flatMap { buffer.baseAddress?.advanced(by: $0) }
            }
            return (pointers + [nil]).withUnsafeBufferPointer { pointers in
                // Never nil: there is always the NULL at the end.
                guard let base = pointers.baseAddress else {
                    preconditionFailure("an array that is not empty has an address")
                }
                return body(base)
            }
        }
    }
}
