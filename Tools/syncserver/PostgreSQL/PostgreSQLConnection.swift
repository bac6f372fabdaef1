// One connection to a PostgreSQL server through libpq, and the thread that waits for it. Only this file
// sends statements. Spec/operations/postgresql.md.

import CPostgreSQL
import EventSourcing
import Foundation
import SyncServerStorage

/// A connection that is opened on first use and again after it was lost.
actor PostgreSQLConnection {
    /// The statement timeout in milliseconds, unless the database's settings have one.
    static let statementMillisecondsMax = 10_000
    /// The milliseconds to wait after the statement timeout for a server that does not answer.
    static let silenceMillisecondsMax = 5_000

    /// The SQLSTATE `disk_full`.
    private static let diskFullState = "53100"

    /// An open connection; closed when it is no longer referenced.
    private final class Link {
        let handle: OpaquePointer
        /// The server's statement timeout in milliseconds.
        var statementMilliseconds = statementMillisecondsMax
        init(_ handle: OpaquePointer) { self.handle = handle }
        deinit { PQfinish(handle) }
    }

    private let location: PostgreSQLLocation
    private let name: String
    private var link: Link?
    /// libpq blocks while it waits for the server, so it must not run on the cooperative pool.
    private let executor = StoreExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Creates a connection without connecting yet.
    ///
    /// - Parameter name: the `application_name`, unless the URL sets one.
    init(_ location: PostgreSQLLocation, name: String = "syncserver") {
        self.location = location
        self.name = name
    }

    /// Runs one statement in a transaction of its own.
    ///
    /// - Parameters:
    ///   - values: for `$1`, `$2`, …, as text without U+0000; nil is NULL.
    ///   - arrays: for the parameters after them.
    ///   - limit: the longest wait for the answer; nil for the time of a statement and some seconds more.
    /// - Returns: the rows, each column as text.
    /// - Throws: `StorageError`. If the connection was lost, it is unknown whether the statement was
    ///   executed.
    func run(
        _ sql: String, _ values: [String?] = [], arrays: [PostgreSQLArray] = [],
        within limit: Duration? = nil
    ) throws -> [[String?]] {
        let link = try openLink()
        let parameters = values.map(Self.cString) + arrays.map(\.bytes)
        // libpq ignores the lengths of text.
        let lengths = parameters.map { Int32($0?.count ?? 0) }
        let formats = values.map { _ in Self.textFormat } + arrays.map { _ in Self.binaryFormat }
        let isSent = Self.withPointers(parameters) {
            PQsendQueryParams(
                link.handle, sql, Int32(parameters.count), nil, $0, lengths, formats,
                Self.textFormat)
        }
        guard isSent == 1 else { throw connectionLost() }
        let longest = link.statementMilliseconds + Self.silenceMillisecondsMax
        return try answer(of: link, within: limit ?? .milliseconds(longest))
    }

    /// Runs several statements, in one transaction if they begin none.
    ///
    /// - Throws: `StorageError`; then nothing was changed.
    func runScript(_ sql: String) throws {
        let link = try openLink()
        guard PQsendQuery(link.handle, sql) == 1 else { throw connectionLost() }
        _ = try answer(of: link, within: nil)
    }

    /// Waits for notifications of the channels on which this connection listens.
    ///
    /// - Parameter limit: the longest wait, during which the connection runs no statement.
    /// - Returns: the payloads; none after the limit.
    /// - Throws: `StorageError` if the connection was lost. It is not opened again: the new one would not
    ///   listen.
    func notifications(within limit: Duration) throws -> [String] {
        guard let link else { throw connectionLost() }
        var payloads = Self.notifications(of: link)
        guard payloads.isEmpty else { return payloads }
        var descriptor = pollfd(fd: PQsocket(link.handle), events: Int16(POLLIN), revents: 0)
        guard
            poll(&descriptor, 1, Int32(clamping: Int(limit / .milliseconds(1)))) >= 0
                || errno == EINTR,
            PQconsumeInput(link.handle) == 1, PQstatus(link.handle) == CONNECTION_OK
        else { throw connectionLost() }
        payloads = Self.notifications(of: link)
        return payloads
    }

    private static func notifications(of link: Link) -> [String] {
        var payloads: [String] = []
        while let notification = PQnotifies(link.handle) {
            payloads.append(String(cString: notification.pointee.extra))
            PQfreemem(notification)
        }
        return payloads
    }

    /// Whether the last connection was lost while it was used.
    private(set) var isLost = false
    /// The number of connections that were opened.
    private(set) var openings = 0

    /// Closes the connection.
    func close() { link = nil }

    // MARK: Opening

    private func openLink() throws -> Link {
        if let link {
            // A server that has shut down has closed its end, which a read shows without a round trip.
            // It may have sent a message first: then only the second read shows the end.
            if PQconsumeInput(link.handle) == 1, PQconsumeInput(link.handle) == 1,
                PQstatus(link.handle) == CONNECTION_OK
            {
                return link
            }
            self.link = nil
        }
        let link = try open()
        self.link = link
        openings += 1
        return link
    }

    private func open() throws -> Link {
        isLost = false
        // Of two settings with one name the later wins, so a setting of the URL overrides a default.
        let settings = [
            ("connect_timeout", "5"), ("tcp_user_timeout", "15000"),
            ("client_encoding", "UTF8"), ("application_name", name),
            ("dbname", location.url),
        ]
        let handle = Self.withPointers(settings.map { Self.cString($0.0) }) { names in
            Self.withPointers(settings.map { Self.cString($0.1) }) {
                PQconnectdbParams(names, $0, 1)
            }
        }
        guard let handle else { throw StorageError(.failed, "PostgreSQL: no memory") }
        let link = Link(handle)
        guard PQstatus(handle) == CONNECTION_OK else {
            throw StorageError(
                .failed, "PostgreSQL: \(location.withoutPassword(in: Self.message(handle)))")
        }
        // Notices could contain parts of an event.
        PQsetNoticeProcessor(handle, { _, _ in }, nil)
        guard PQsetnonblocking(handle, 1) == 0 else { throw connectionLost() }
        // An answered commit must be on the disk, whatever the database's default.
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
        guard isSent == 1 else { throw connectionLost() }
        let limit = try answer(of: link, within: .milliseconds(Self.silenceMillisecondsMax))
        link.statementMilliseconds =
            limit.first?[0].flatMap { Int($0) } ?? Self.statementMillisecondsMax
        return link
    }

    /// Waits for the complete answer to a query.
    ///
    /// - Parameter limit: the longest wait; nil waits without limit. The server's own timeout is not
    ///   enough: a server that has stopped or is unreachable sends nothing.
    /// - Returns: the rows of the last statement.
    private func answer(of link: Link, within limit: Duration?) throws -> [[String?]] {
        let deadline = limit.map { ContinuousClock.now + $0 }
        var last: [[String?]] = []
        var failure: (any Error)?
        while true {
            while true {
                let unsent = PQflush(link.handle)
                guard unsent >= 0 else { throw connectionLost() }
                if unsent == 0, PQisBusy(link.handle) == 0 { break }
                var descriptor = pollfd(
                    fd: PQsocket(link.handle),
                    events: Int16(POLLIN) | (unsent > 0 ? Int16(POLLOUT) : 0), revents: 0)
                let remaining = deadline.map { ContinuousClock.now.duration(to: $0) }
                if let remaining, remaining <= .zero {
                    lose()
                    throw StorageError(.failed, "PostgreSQL: the server does not answer")
                }
                let milliseconds = remaining.map { Int32(clamping: Int($0 / .milliseconds(1)) + 1) }
                guard poll(&descriptor, 1, milliseconds ?? -1) >= 0 || errno == EINTR,
                    descriptor.revents & Int16(POLLIN | POLLERR | POLLHUP) == 0
                        || PQconsumeInput(link.handle) == 1
                else { throw connectionLost() }
            }
            guard let result = PQgetResult(link.handle) else { break }
            do { last = try rows(result, of: link) } catch { failure = error }
        }
        if let failure { throw failure }
        return last
    }

    private func lose() {
        if link != nil { isLost = true }
        link = nil
    }

    private func connectionLost() -> StorageError {
        lose()
        return StorageError(.failed, "PostgreSQL: the connection was lost")
    }

    // MARK: Results

    private func rows(_ result: OpaquePointer?, of link: Link) throws -> [[String?]] {
        defer { PQclear(result) }
        let status = PQresultStatus(result)
        guard status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK else {
            guard PQstatus(link.handle) == CONNECTION_OK else { throw connectionLost() }
            // The text of an error may contain parts of an event; its code does not.
            let code = PQresultErrorField(result, Int32(UInt8(ascii: "C")))
                .map { String(cString: $0) }
            throw StorageError(
                code == Self.diskFullState ? .noSpace : .failed,
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

    private static let textFormat: Int32 = 0
    private static let binaryFormat: Int32 = 1

    private static func cString(_ text: String?) -> [UInt8]? { text.map { Array($0.utf8) + [0] } }

    /// Calls a closure with a NULL-terminated array of pointers to values, which live as long as the call.
    private static func withPointers<Result>(
        _ values: [[UInt8]?], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(values.reduce(0) { $0 + ($1?.count ?? 0) })
        let starts: [Int?] = values.map { value in
            guard let value else { return nil }
            defer { bytes += value }
            return bytes.count
        }
        return bytes.withUnsafeBytes { buffer in
            let pointers = starts.map { start in
                start.flatMap {
                    buffer.baseAddress?.advanced(by: $0).assumingMemoryBound(to: CChar.self)
                }
            }
            return (pointers + [nil]).withUnsafeBufferPointer { pointers in
                // Never nil: the array has at least the NULL.
                guard let base = pointers.baseAddress else {
                    preconditionFailure("an array that is not empty has an address")
                }
                return body(base)
            }
        }
    }
}
