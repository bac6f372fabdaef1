// A PostgreSQL server for the tests of this process, and a database on it for each test. The server is
// Tools/checks/testpostgres, which ends with this process, also after a crash.

import Foundation
import SyncServerStorage
import TestSupport
import Testing

@testable import SyncServerPostgreSQL

/// A running PostgreSQL server.
final class PostgreSQLCluster: Sendable {
    /// The reason why no server could be started.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Whether DAYBOOK_SKIP_POSTGRESQL is set.
    static let isSkipped =
        ProcessInfo.processInfo.environment["DAYBOOK_SKIP_POSTGRESQL"].map { $0 != "0" } ?? false

    /// The server of this process.
    private static let started = Result { try PostgreSQLCluster() }

    /// Returns the server that the tests share; the first call starts it.
    ///
    /// - Throws: `Failure`, whose message says what to install.
    static func shared() throws -> PostgreSQLCluster { try started.get() }

    /// The folder with the socket, the data and the log.
    let folder: URL
    /// Ends the server when it is closed.
    private let life: Pipe

    /// Starts a server.
    ///
    /// - Throws: `Failure`.
    init() throws {
        let tool = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Tools/checks/testpostgres").standardizedFileURL
        let process = Process()
        process.executableURL = tool
        let (life, output, messages) = (
            Pipe.betweenStarts(), Pipe.betweenStarts(), Pipe.betweenStarts()
        )
        process.standardInput = life
        process.standardOutput = output
        process.standardError = messages
        try process.runAlone()
        self.life = life
        var text = Data()
        while text.last != UInt8(ascii: "\n") {
            let part = output.fileHandleForReading.availableData
            guard !part.isEmpty else {
                throw Failure(
                    description: String(
                        decoding: messages.fileHandleForReading.readDataToEndOfFile(),
                        as: UTF8.self))
            }
            text += part
        }
        folder = URL(
            filePath: String(decoding: text.dropLast(), as: UTF8.self),
            directoryHint: .isDirectory)
    }

    // The running process holds the pipe, too.
    deinit { try? life.fileHandleForWriting.close() }

    /// The URL of a database, for one of the server's roles.
    func url(_ database: String, user: String = "daybook") -> String {
        let host = folder.path(percentEncoded: false).replacing("/", with: "%2F")
        return "postgres://\(user)@/\(database)?host=\(host)"
    }

    /// A connection to a database.
    func connect(_ database: String, user: String = "daybook") throws -> PostgreSQLConnection {
        PostgreSQLConnection(try PostgreSQLLocation(url(database, user: user)))
    }

    /// A connection whose statements may take ten minutes: on a busy disk a database is not made in seconds. As an
    /// option of the connection, because the client waits as long as the timeout that it finds when it connects.
    func administratorConnection() throws -> PostgreSQLConnection {
        PostgreSQLConnection(
            try PostgreSQLLocation(url("postgres") + "&options=-c%20statement_timeout%3D10min"))
    }

    /// Kills the server, as in a crash. It is started again automatically.
    func kill() throws {
        let file = folder.appending(path: "data/postmaster.pid")
        let text = try String(contentsOf: file, encoding: .utf8)
        let line = try #require(text.split(separator: "\n").first)
        Foundation.kill(try #require(pid_t(line)), SIGKILL)
    }
}

/// A database for one test; dropped with it.
final class PostgreSQLFixture: DatabaseFixture {
    let cluster: PostgreSQLCluster
    let name = "test_\(UUID().uuidString.lowercased().replacing("-", with: ""))"
    var location: String { cluster.url(name) }

    init(_ cluster: PostgreSQLCluster? = nil) async throws {
        self.cluster = try cluster ?? .shared()
        let server = try self.cluster.administratorConnection()
        _ = try await server.run("CREATE DATABASE \(name)")
        _ = try await server.run("ALTER DATABASE \(name) SET statement_timeout = '2min'")
    }

    deinit {
        let (cluster, name) = (cluster, name)
        Task {
            try await cluster.administratorConnection().run("DROP DATABASE \(name) WITH (FORCE)")
        }
    }

    func open() async throws -> any EventStorage {
        try await PostgreSQLEventStorage(
            PostgreSQLLocation(location), catalogue: StorageFixture.catalogue)
    }

    /// A connection to the database.
    func connect() throws -> PostgreSQLConnection { try cluster.connect(name) }

    /// Reads a migration or another file in Spec/sql.
    static func sql(_ name: String) throws -> String {
        try String(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
                .appending(path: "../../Spec/sql/\(name)").standardizedFileURL, encoding: .utf8)
    }

    func failInserts(ofSequence sequence: UInt64) async throws {
        try await connect().runScript(
            """
            CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'failure'; END $$;
            CREATE TRIGGER failure BEFORE INSERT ON daybook.event FOR EACH ROW
            WHEN (NEW.sequence = \(sequence)) EXECUTE FUNCTION fail();
            """)
    }

    func allowInserts() async throws {
        try await connect().runScript("DROP TRIGGER failure ON daybook.event")
    }
}
