// The token file of a running server, read at the start and at each SIGHUP.
// Spec/operations/operating.md, OPS-3.

import Cryptography
import Logging
import ServiceLifecycle
import Synchronization
import UnixSignals

/// A token file that is read again at SIGHUP.
final class TokenFile: Service {
    private let path: String
    private let connections: Connections
    private let logger: Logger
    private let key = SecretBytes.random(32)
    private let tokens: Mutex<AccountTokens>

    /// Reads the file.
    ///
    /// - Parameter connections: the connections whose replies end when their tokens are withdrawn.
    /// - Throws: `AccountTokens.Fault`.
    init(_ path: String, connections: Connections, logger: Logger) throws {
        self.path = path
        self.connections = connections
        self.logger = logger
        let read = try AccountTokens(file: path, key: key)
        tokens = Mutex(read)
        Self.warn(read, logger)
    }

    /// Looks up a token; nil if it is unknown.
    func credential(of token: Substring) -> AccountTokens.Credential? {
        tokens.withLock { $0 }.credential(of: token)
    }

    /// True if the token of a credential still belongs to the same account.
    func holds(_ credential: AccountTokens.Credential) -> Bool {
        tokens.withLock { $0.holds(credential) }
    }

    /// Reads the file again at each SIGHUP. If it is unusable, the old tokens stay valid.
    func run() async throws {
        for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() {
            do {
                let read = try AccountTokens(file: path, key: key)
                tokens.withLock { $0 = read }
                connections.closeWithdrawn()
                Self.warn(read, logger)
                logger.notice("token file read again")
            } catch {
                let reason = (error as? AccountTokens.Fault)?.detail ?? "\(error)"
                logger.error("cannot use the token file; the old tokens stay valid: \(reason)")
            }
        }
    }

    private static func warn(_ tokens: AccountTokens, _ logger: Logger) {
        if let warning = tokens.warning { logger.warning("\(warning)") }
    }
}
