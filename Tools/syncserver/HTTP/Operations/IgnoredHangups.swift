// SIGHUP without a token file: there is nothing to read again, and nothing ends. With a token file,
// TokenFile takes the signal. Spec/operations/operating.md, OPS-3.

import Logging
import ServiceLifecycle
import UnixSignals

/// Takes each SIGHUP and says that it changes nothing.
struct IgnoredHangups: Service {
    let logger: Logger

    func run() async throws {
        for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() {
            logger.notice("SIGHUP ignored: this server has no token file to read again")
        }
    }
}
