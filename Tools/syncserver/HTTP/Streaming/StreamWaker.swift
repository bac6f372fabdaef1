// Wakes the streams of events: heartbeats, the signals of other servers, and a query for events whose
// signals were lost. Ends them when the server is stopped. Spec/protocol/push.md.

import Logging
import ServiceLifecycle
import SyncServerStorage

/// Wakes the streams of a server.
struct StreamWaker: Service {
    let storage: any EventStorage
    /// The tokens, if requests need one.
    let tokens: TokenFile?
    /// The time between two bytes of a stream without events.
    let heartbeat: Duration
    let logger: Logger

    /// The time between two queries for events whose signals were lost.
    private static let missedSignalInterval = Duration.seconds(15)

    func run() async throws {
        // At once: the other tasks may take seconds to end.
        await withGracefulShutdownHandler {
            await wakeUntilShutdown()
        } onGracefulShutdown: {
            storage.signals.endAll(isClosing: true)
        }
        storage.signals.endAll(isClosing: true)
    }

    private func wakeUntilShutdown() async {
        await cancelWhenGracefulShutdown {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await storage.forwardSignals() }
                group.addTask {
                    await Self.repeatEvery(min(heartbeat / 4, .seconds(1))) {
                        storage.signals.beat(every: heartbeat)
                    }
                }
                group.addTask {
                    await Self.repeatEvery(Self.missedSignalInterval) { await wakeStreamsBehind() }
                }
                if let tokens {
                    group.addTask {
                        // A stream whose token was withdrawn must end; the others reconnect.
                        for await _ in tokens.changes {
                            storage.signals.endAll(isClosing: false)
                        }
                    }
                }
            }
        }
    }

    private func wakeStreamsBehind() async {
        do {
            try await storage.signals.signalMissed(storage.lastSerials)
        } catch {
            logger.error("cannot look for events of streams", metadata: ["cause": "\(error)"])
        }
    }

    private static func repeatEvery(_ interval: Duration, _ body: () async -> Void) async {
        while (try? await Task.sleep(for: interval)) != nil { await body() }
    }
}
