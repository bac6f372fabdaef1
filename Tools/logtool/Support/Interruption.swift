// Turns signals into a cancellation, so that an interrupted command flushes its output and closes the
// log.

import Dispatch
import Foundation

/// SIGINT, SIGTERM and SIGHUP.
enum Interruption {
    /// Runs work that a signal cancels. The handlers are installed before the work begins: an earlier
    /// signal ends the process while there is nothing to clean up.
    static func result<T: Sendable>(
        of work: @escaping @Sendable () async throws -> T
    ) async -> Result<T, any Error> {
        let (ready, begin) = AsyncStream.makeStream(of: Never.self)
        let task = Task {
            for await _ in ready {}
            return try await work()
        }
        var sources: [any DispatchSourceSignal] = []
        for number in [SIGINT, SIGTERM, SIGHUP] where !isLeftIgnored(number) {
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { task.cancel() }
            sources.append(source)
            #if !os(Linux)
                // kqueue reports the signal beside its default action. On Linux Dispatch handles it.
                signal(number, SIG_IGN)
            #endif
            await withCheckedContinuation { registered in
                source.setRegistrationHandler { registered.resume() }
                source.resume()
            }
        }
        defer { for source in sources { source.cancel() } }
        begin.finish()
        return await task.result
    }

    /// Whether a signal stays ignored: SIGHUP under `nohup`.
    private static func isLeftIgnored(_ number: Int32) -> Bool {
        guard number == SIGHUP else { return false }
        var action = sigaction()
        sigaction(number, nil, &action)
        #if os(Linux)
            let handler = action.__sigaction_handler.sa_handler
        #else
            let handler = action.__sigaction_u.__sa_handler
        #endif
        return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
