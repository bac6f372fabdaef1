// `syncserver serve`: reads its options, opens the storage, serves until it is stopped. A request goes
// through RequestLog, ErrorReplies, KnownPaths, Authentication and EventRoutes, in this order.

import ArgumentParser
import DaybookOffline
import EventSourcing
import Foundation
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle
import StandardStreams
import SyncServerStorage

/// `syncserver serve`.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve until stopped. This is the default subcommand.",
        discussion: """
            Prints one line, "listening on http://HOST:PORT", when it is ready. The log goes to \
            standard error. Without a token file every request belongs to the account "local", \
            and only loopback addresses are served. SIGTERM and SIGINT stop the server after the \
            requests that it has accepted; SIGHUP makes it read the token file again.
            """)

    @Option(help: "The TCP port to listen on; 0 picks a free one.")
    var port: UInt16

    @Option(help: "The address to listen on.")
    var host = "127.0.0.1"

    @OptionGroup var storage: StorageOptions

    @Option(
        help: ArgumentHelp(
            "A file of lines \"<token> <account>\" or \"sha256:<digest> <account>\"; requests "
                + "then need a bearer token.",
            valueName: "file"))
    var tokenFile: String?

    @Option(help: ArgumentHelp("A certificate chain in PEM; needs --tls-key.", valueName: "file"))
    var tlsCertificate: String?

    @Option(help: ArgumentHelp("The certificate's private key in PEM.", valueName: "file"))
    var tlsKey: String?

    @Flag(help: "Serve plain HTTP beyond loopback, for a proxy in front that does TLS.")
    var behindTlsProxy = false

    @Option(help: "The most requests a second with one token; 0 sets no limit.")
    var rate = 500

    @Option(help: "The most open connections.")
    var connections = 1_000

    @Option(help: "The most open streams of events; half of the connections if not given.")
    var streams: Int?

    @Option(help: "The seconds between two bytes of a stream without events.")
    var heartbeat = 45

    @Option(help: "The most MiB of memory for bodies and replies; at least 8.")
    var memory = 128

    @Option(help: "The most seconds for a client to send a request, or to read a reply.")
    var clientTimeout = 60

    @Option(
        help: "The least bytes a second of a body, averaged over 10 s; 0 sets no limit.")
    var bodyRate = 1_024

    @Option(help: "The most seconds for requests to end when the server is stopped.")
    var shutdownTimeout = 30

    @Option(help: "The lowest level that is logged: debug, info, notice, warning, error.")
    var logLevel = Logger.Level.info

    func validate() throws {
        if tokenFile == nil, !Loopback.contains(host) {
            throw ValidationError(
                "\(host) is not a loopback address: without --token-file any client that reaches it "
                    + "could read and write; add --token-file, or omit --host")
        }
        if (tlsCertificate == nil) != (tlsKey == nil) {
            throw ValidationError("--tls-certificate and --tls-key must be used together")
        }
        if !Loopback.contains(host), tlsCertificate == nil, !behindTlsProxy {
            throw ValidationError(
                "\(host) is not a loopback address: tokens would cross the network unencrypted; "
                    + "add --tls-certificate and --tls-key, or --behind-tls-proxy")
        }
        // Larger values would overflow when they are converted to nanoseconds or bytes.
        guard (0...1_000_000_000).contains(rate), (0...1_000_000_000).contains(bodyRate),
            (1...1_000_000).contains(connections), (1...86_400).contains(clientTimeout),
            (1...86_400).contains(shutdownTimeout)
        else {
            throw ValidationError(
                "--connections is 1 to 1,000,000, --client-timeout and --shutdown-timeout are 1 to "
                    + "86,400, --rate and --body-rate 0 to 1,000,000,000")
        }
        guard (1...1_000_000).contains(streams ?? 1), (1...50).contains(heartbeat) else {
            throw ValidationError("--streams is 1 to 1,000,000, --heartbeat is 1 to 50")
        }
        let mebibyte = 1_048_576
        guard (SharedCapacity.memoryMin / mebibyte...Int.max / mebibyte).contains(memory) else {
            throw ValidationError("--memory is at least \(SharedCapacity.memoryMin / mebibyte)")
        }
    }

    func run() async throws {
        // Until a service handles it: a SIGHUP while the database is opened must not end the process.
        signal(SIGHUP, SIG_IGN)
        let writer = LogWriter()
        defer { writer.flush() }
        let logger = Logger(label: "syncserver") { [logLevel] _ in
            JSONLogHandler(level: logLevel, writer: writer)
        }
        let catalogue = OfflineModel.catalogue
        let tokens: TokenFile?
        let storage: any EventStorage
        let server: HTTPServerBuilder
        let metrics = ServerMetrics()
        let connectionsMax = try DescriptorLimit.raise(for: connections)
        let open = Connections(atMost: connectionsMax, metrics: metrics)
        let capacity = SharedCapacity(
            connections: connectionsMax, streams: streams ?? max(1, connectionsMax / 2),
            memory: memory * 1_048_576, hasAccounts: tokenFile != nil)
        do {
            tokens = try tokenFile.map { try TokenFile($0, connections: open, logger: logger) }
            server = try channels(open, metrics, logger)
            storage = try await self.storage.open(catalogue)
        } catch { throw SyncServer.failure(error) }
        do { try await storage.checkReadiness() } catch {
            logger.error("not ready to store batches", metadata: ["cause": "\(error)"])
        }
        let application = Application(
            router: router(storage, catalogue, tokens, metrics, open, capacity),
            server: server,
            configuration: .init(address: .hostname(host, port: Int(port))),
            onServerRunning: { [host, tlsKey] channel in
                let name = host.contains(":") ? "[\(host)]" : host
                let port = channel.localAddress?.port ?? 0
                let scheme = tlsKey == nil ? "http" : "https"
                // A server whose standard output is closed serves nevertheless.
                _ = StandardStream.output.write(
                    Array("listening on \(scheme)://\(name):\(port)\n".utf8))
            },
            logger: logger)
        var services: [any Service] = [application]
        services.append(tokens ?? IgnoredHangups(logger: logger))
        // The last one is stopped first: the application waits for the ends of all replies.
        services.append(
            StreamWaker(
                storage: storage, heartbeat: .seconds(heartbeat), logger: logger))
        var configuration = ServiceGroupConfiguration(
            services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        configuration.maximumGracefulShutdownDuration = .seconds(shutdownTimeout)
        do {
            try await ServiceGroup(configuration: configuration).run()
        } catch {
            try? storage.close()
            throw SyncServer.failure(
                "cannot serve on \(host), port \(port): \(ErrorText.of(error))", .io)
        }
        do { try storage.close() } catch { throw SyncServer.failure(error) }
    }

    private func router(
        _ storage: any EventStorage, _ catalogue: EventCatalogue, _ tokens: TokenFile?,
        _ metrics: ServerMetrics, _ connections: Connections, _ capacity: SharedCapacity
    ) -> Router<ServerContext> {
        let rates = rate > 0 ? RateLimit(perSecond: rate) : nil
        let router = Router(context: ServerContext.self)
        router.addMiddleware {
            RequestLog(metrics: metrics)
            ErrorReplies()
        }
        if tokens == nil { router.add(middleware: LocalRequests()) }
        router.add(middleware: KnownPaths())
        EventRoutes(storage: storage, catalogue: catalogue, metrics: metrics, capacity: capacity)
            .add(
                to: router.group().add(
                    middleware: Authentication(
                        tokens: tokens, rates: rates, connections: connections,
                        server: storage.restores.server, isForOperator: false)))
        OperationRoutes(
            readiness: ReadinessProbe(storage), metrics: metrics, connections: connections,
            capacity: capacity, signals: storage.signals
        )
        .add(
            to: router,
            operators: router.group().add(
                middleware: Authentication(
                    tokens: tokens, rates: nil, connections: connections, server: nil,
                    isForOperator: true)))
        return router
    }

    /// The channel handlers of a connection.
    private func channels(
        _ connections: Connections, _ metrics: ServerMetrics, _ logger: Logger
    ) throws -> HTTPServerBuilder {
        let limits = ConnectionGuard.Limits(
            time: .seconds(Int64(clientTimeout)), bodyRate: bodyRate)
        let http = HTTPServerBuilder.http1(
            configuration: .init(
                additionalChannelHandlers: [
                    ConnectionGuard(connections, metrics, limits)
                ],
                idleTimeout: limits.time,
                httpDecoderConfiguration: .init(
                    maxHeaderFieldSize: 16 * 1024, maxHeaderListSize: 16 * 1024,
                    maxHeaderFieldCount: 100)))
        guard let tlsCertificate, let tlsKey else { return http }
        #if TLS
            return try http.encrypted(certificate: tlsCertificate, key: tlsKey, logger)
        #else
            throw SyncServer.failure(
                "this syncserver was built without TLS: build it with --traits ToolsWithTLS, or "
                    + "give --behind-tls-proxy", .unavailable)
        #endif
    }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}
