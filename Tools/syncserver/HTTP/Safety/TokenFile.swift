// The token file of a running server, read at the start and at each SIGHUP.
// Spec/operations/operating.md, OPS-3.

import Logging
import ServiceLifecycle
import Synchronization
import UnixSignals

/// A token file that is read again at SIGHUP.
final class TokenFile: Service {
    private let path: String
    private let logger: Logger
    private let tokens: Mutex<AccountTokens>
    /// An element after each time that the file was read again. For one reader.
    let changes: AsyncStream<Void>
    private let change: AsyncStream<Void>.Continuation

    /// Reads the file.
    ///
    /// - Throws: `AccountTokens.Fault`.
    init(_ path: String, logger: Logger) throws {
        self.path = path
        self.logger = logger
        (changes, change) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        let read = try AccountTokens(file: path)
        tokens = Mutex(read)
        Self.warn(read, logger)
    }

    /// Looks up a token; nil if it is unknown.
    func credential(of token: Substring) -> AccountTokens.Credential? {
        tokens.withLock { $0 }.credential(of: token)
    }

    /// Reads the file again at each SIGHUP. If it is unusable, the old tokens stay valid.
    func run() async throws {
        for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() {
            do {
                let read = try AccountTokens(file: path)
                tokens.withLock { $0 = read }
                change.yield()
                Self.warn(read, logger)
                logger.notice("token file read again")
            } catch {
                logger.error("cannot use the token file; the old tokens stay valid")
            }
        }
    }

    private static func warn(_ tokens: AccountTokens, _ logger: Logger) {
        if let warning = tokens.warning { logger.warning("\(warning)") }
    }
}
