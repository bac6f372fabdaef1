// The token file of a server that runs: what it said when it was read last, read anew at SIGHUP.
// Spec/operations/operating.md, OPS-3.

import Logging
import ServiceLifecycle
import Synchronization
import UnixSignals

/// A token file that is followed.
final class TokenFile: Service {
    private let path: String
    private let logger: Logger
    private let tokens: Mutex<AccountTokens>

    /// Reads the file.
    ///
    /// - Throws: `AccountTokens.Fault`.
    init(_ path: String, logger: Logger) throws {
        self.path = path
        self.logger = logger
        let read = try AccountTokens(file: path)
        tokens = Mutex(read)
        Self.warn(read, logger)
    }

    /// What a token stands for now.
    func credential(of token: Substring) -> AccountTokens.Credential? {
        tokens.withLock { $0 }.credential(of: token)
    }

    /// Reads the file again at each SIGHUP. One that cannot be used changes nothing.
    func run() async throws {
        for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() {
            do {
                let read = try AccountTokens(file: path)
                tokens.withLock { $0 = read }
                Self.warn(read, logger)
                logger.notice("account file read again")
            } catch {
                logger.error("account file not taken over; the accounts stay as they were")
            }
        }
    }

    private static func warn(_ tokens: AccountTokens, _ logger: Logger) {
        if let warning = tokens.warning { logger.warning("\(warning)") }
    }
}
