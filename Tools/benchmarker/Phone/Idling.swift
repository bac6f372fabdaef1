// What a store costs that nobody uses: wake-ups, processor time, memory. In a process of its own; row
// of Phone.

import Daybook
import Foundation

/// A process that has a store open and nothing to do.
struct Idling: Errand {
    /// What came of it.
    struct Figures: Codable {
        /// How often any thread of the process was woken, beside the one that waits.
        var wakeUps = 0
        var processorMilliseconds = 0.0
        var residentMiBAtOpen = 0.0
        var residentMiBAfter = 0.0
    }

    var log: String
    /// Whether the store is kept in step with a server that has nothing new.
    var syncs: Bool
    /// How long it is watched.
    var seconds: UInt32

    func perform() async throws -> Figures {
        let store = try await OfflineStore.open(at: URL(filePath: log), account: "local")
        var figures = Figures()
        figures.residentMiBAtOpen = try SystemCounters.residentMiB()
        let service = SyncService(store, transport: NothingNew())
        let syncing = syncs ? Task { try await service.run() } : nil
        try watch(&figures)
        figures.residentMiBAfter = try SystemCounters.residentMiB()
        syncing?.cancel()
        try await syncing?.value
        try await store.close()
        return figures
    }

    /// Blocks the thread that asks, so that waiting itself wakes no other.
    private func watch(_ figures: inout Figures) throws {
        // Threads that have just had work wait a while before they end.
        sleep(7)
        let (wakeUps, processor) = (
            try SystemCounters.wakeUps(), SystemCounters.processorSeconds()
        )
        sleep(seconds)
        figures.wakeUps = try SystemCounters.wakeUps() - wakeUps
        figures.processorMilliseconds = (SystemCounters.processorSeconds() - processor) * 1e3
    }
}

/// A server on which nothing has happened.
private struct NothingNew: Transport {
    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        TransportReply(status: 200, body: Array("[]".utf8))
    }
}
