// What a store costs that nobody uses: wake-ups, processor time, memory. In a process of its own; row
// of Phone.

import DaybookOffline
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

    /// What is open meanwhile.
    enum Subject: String, Codable, CaseIterable {
        /// Nothing, by a process that has only used a queue of the system.
        case nothing = "no store"
        case store = "a store"
        /// With a server that has nothing new.
        case synced = "a store and its SyncService"
    }

    var subject: Subject
    var log: String
    /// How long it is watched.
    var seconds: UInt32

    func perform() async throws -> Figures {
        var figures = Figures()
        guard subject != .nothing else {
            await withCheckedContinuation { done in DispatchQueue.global().async { done.resume() } }
            try watch(&figures)
            return figures
        }
        let store = try await OfflineStore.open(at: URL(filePath: log), account: "local")
        let service = SyncService(store, transport: NothingNew())
        let syncing = subject == .synced ? Task { try await service.run() } : nil
        try watch(&figures)
        syncing?.cancel()
        try await syncing?.value
        try await store.close()
        return figures
    }

    /// Blocks the thread that asks, so that waiting itself wakes no other.
    private func watch(_ figures: inout Figures) throws {
        figures.residentMiBAtOpen = try SystemCounters.residentMiB()
        // Threads that have just had work wait a while before they end.
        sleep(7)
        let before = try SystemCounters.sleeps()
        let processor = SystemCounters.processorSeconds()
        sleep(seconds)
        figures.processorMilliseconds = (SystemCounters.processorSeconds() - processor) * 1e3
        let after = try SystemCounters.sleeps()
        // A thread that has ended was woken to do so.
        let ended = before.keys.count { after[$0] == nil }
        figures.wakeUps = after.reduce(ended) { $0 + $1.value - (before[$1.key] ?? 0) }
        figures.residentMiBAfter = try SystemCounters.residentMiB()
    }
}

/// A server on which nothing has happened.
private struct NothingNew: Transport {
    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        TransportReply(status: 200, body: Array("[]".utf8))
    }
}
