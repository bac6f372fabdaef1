// The command: reads its options, opens the storage, serves until it is told to stop. What happens
// to a request is EventRoutes. Spec/sync-protocol.md.

import ArgumentParser
import EventSourcing
import Foundation
import Hummingbird
import Logging
import OfflineModel
import SyncServerPostgreSQL
import SyncServerStorage

/// `syncserver`.
@main
struct SyncServer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "syncserver",
        abstract: "Takes in the events of daybook logs, each once, and gives them out again.",
        discussion: """
            Prints one line, "listening on http://HOST:PORT", when it is ready. Messages go to \
            standard error. Without a token file every request belongs to the account "local", \
            and only loopback addresses are served. SIGTERM and SIGINT end it after the requests \
            it has accepted. Exit codes: 64 usage, 65 not a database of this server, 74 I/O.
            """)

    @Option(help: "The TCP port to listen on; 0 picks a free one.")
    var port: UInt16

    @Option(help: "The address to listen on.")
    var host = "127.0.0.1"

    @Option(
        help: ArgumentHelp(
            "Where the events are kept: sqlite:PATH, created if it is not there, or "
                + "postgres://USER@HOST/DATABASE, whose schema is brought up to date.",
            valueName: "location"))
    var database: DatabaseLocation

    @Option(
        help: ArgumentHelp(
            "A file of lines \"<token> <account>\"; requests then need a bearer token.",
            valueName: "file"))
    var tokenFile: String?

    func validate() throws {
        if tokenFile == nil, !Loopback.contains(host) {
            throw ValidationError(
                "\(host) is not a loopback address: without --token-file anyone who reaches it "
                    + "could read and write; give a token file, or leave --host out")
        }
    }

    func run() async throws {
        let logger = Logger(label: "syncserver") { StreamLogHandler.standardError(label: $0) }
        let catalogue = OfflineModel.catalogue
        let tokens: AccountTokens?
        let storage: any EventStorage
        do {
            tokens = try tokenFile.map { try AccountTokens(file: $0) }
            storage = try await open(catalogue)
        } catch let error as StorageError {
            throw Self.failure(error.detail, error.code == .wrongDatabase ? 65 : 74)
        } catch let error as AccountTokens.Fault {
            throw Self.failure(error.detail, error.exitCode)
        }
        let router = Router(context: ServerContext.self)
        router.addMiddleware { ErrorReplies() }
        router.get("healthz") { _, _ in Reply.json(.ok, Array("{\"status\":\"ok\"}".utf8)) }
        EventRoutes(storage: storage, catalogue: catalogue)
            .add(to: router.group().add(middleware: Authentication(tokens: tokens)))
        let application = Application(
            router: router,
            server: .http1(
                configuration: .init(
                    idleTimeout: .seconds(60),
                    httpDecoderConfiguration: .init(
                        maxHeaderFieldSize: 16 * 1024, maxHeaderListSize: 16 * 1024,
                        maxHeaderFieldCount: 100))),
            configuration: .init(address: .hostname(host, port: Int(port))),
            onServerRunning: { [host] channel in
                let name = host.contains(":") ? "[\(host)]" : host
                let port = channel.localAddress?.port ?? 0
                FileHandle.standardOutput.write(
                    Data("listening on http://\(name):\(port)\n".utf8))
            },
            logger: logger)
        do {
            try await application.runService()
        } catch {
            try? storage.close()
            throw Self.failure("cannot serve on \(host), port \(port): \(error)", 74)
        }
        try storage.close()
    }

    private func open(_ catalogue: EventCatalogue) async throws -> any EventStorage {
        switch database {
        case .sqlite(let path): try SQLiteEventStorage(path: path, catalogue: catalogue)
        case .postgres(let url):
            try await PostgreSQLEventStorage(PostgreSQLLocation(url))
        }
    }

    private static func failure(_ detail: String, _ code: Int32) -> ExitCode {
        FileHandle.standardError.write(Data("syncserver: \(detail)\n".utf8))
        return ExitCode(code)
    }
}
