// Wakes the streams of events: heartbeats, the signals of other servers, and a query for events whose
// signals were lost. Ends them when the server is stopped. Spec/protocol/push.md.

import Logging
import ServiceLifecycle
import SyncServerStorage

/// Wakes the streams of a server.
struct StreamWaker: Service {
    let storage: any EventStorage
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
            storage.signals.close()
        }
        storage.signals.close()
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
