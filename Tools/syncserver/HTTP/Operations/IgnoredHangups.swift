// SIGHUP without a token file: ignored, so that it does not end the process. With a token file,
// TokenFile handles the signal. Spec/operations/operating.md, OPS-3.

import Logging
import ServiceLifecycle
import UnixSignals

/// Ignores each SIGHUP and logs that.
struct IgnoredHangups: Service {
    let logger: Logger

    func run() async throws {
        for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() {
            logger.notice("SIGHUP ignored: this server has no token file to read again")
        }
    }
}
