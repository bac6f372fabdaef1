// The cost of an idle store: wake-ups, processor time, memory. Runs in a process of its own.

import DaybookOffline
import Foundation

/// An idle process with an open store.
struct Idling: Errand {
    /// The result.
    struct Figures: Codable {
        /// The wake-ups of all threads of the process except the measuring one.
        var wakeUps = 0
        var processorMilliseconds = 0.0
        var residentMiBAtOpen = 0.0
        var residentMiBAfter = 0.0
    }

    /// The open store or service.
    enum Subject: String, Codable, CaseIterable {
        /// Nothing: a process that has only used a system queue.
        case nothing = "no store"
        case store = "a store"
        /// A store and a sync service whose server has nothing new.
        case synced = "a store and its SyncService"
    }

    var subject: Subject
    var log: String
    /// The duration of the measurement.
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

    /// Measures while it blocks this thread, so that waiting wakes no other.
    private func watch(_ figures: inout Figures) throws {
        figures.residentMiBAtOpen = try SystemCounters.residentMiB()
        // Idle worker threads end after some seconds.
        sleep(7)
        let before = try SystemCounters.sleeps()
        let processor = SystemCounters.processorSeconds()
        sleep(seconds)
        figures.processorMilliseconds = (SystemCounters.processorSeconds() - processor) * 1e3
        let after = try SystemCounters.sleeps()
        // A thread that has ended was woken once for that.
        let ended = before.keys.count { after[$0] == nil }
        figures.wakeUps = after.reduce(ended) { $0 + $1.value - (before[$1.key] ?? 0) }
        figures.residentMiBAfter = try SystemCounters.residentMiB()
    }
}

/// A server without new events.
private struct NothingNew: Transport {
    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        TransportReply(status: 200, body: Array("[]".utf8))
    }
}
