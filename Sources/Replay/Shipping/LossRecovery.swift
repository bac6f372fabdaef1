// Ships again what a server has lost that was restored from a backup. Between ReplayRun and the transport.
// Spec/protocol/replay.md, RPL-14.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

/// The events of a log that a restored server may have lost, shipped again.
struct LossRecovery {
    /// The result.
    struct Result {
        /// The number of events that the server had lost.
        var applied = 0
        /// The number of events that it did not accept.
        var refused = 0
        /// Why the recovery has to begin again; nil if it is complete.
        var failure: String?
    }

    let store: EventStore
    /// Sends one batch.
    let send: (_ batch: [UInt8]) async throws -> TransportReply

    /// The time before that of the restored state from which on events are shipped: the clocks of the device
    /// and the server differ.
    private static let marginMilliseconds: Int64 = 3_600_000
    private static let batchEvents = ReplayState.batchEvents

    private struct Item {
        let position: Position
        let id: UUID
        let lineBytes: Int
    }

    /// Ships all events that the log has exchanged since a time. The server answers `duplicate` to those that it
    /// has.
    ///
    /// - Parameter time: the time of the restored state, in milliseconds since 1970.
    /// - Throws: `LogError`.
    /// - Complexity: O(bytes of the log); memory for a position and an id for each event that is shipped.
    func run(since time: Int64) async throws -> Result {
        var result = Result()
        var waiting = try await items(since: time - Self.marginMilliseconds)
        var eventsMax = Self.batchEvents
        // Events that the server answers `retry` or `unprocessed` to are sent again as long as others are
        // accepted.
        while !waiting.isEmpty {
            let before = waiting.count
            var postponed: [Item] = []
            while !waiting.isEmpty {
                guard !Task.isCancelled else {
                    result.failure = "the run has ended"
                    return result
                }
                let chosen = Self.nextBatch(of: waiting, eventsMax)
                var batch = chosen
                let lines = try await lines(of: &batch)
                let reply: TransportReply
                do {
                    reply = try await send(lines)
                } catch {
                    result.failure = (error as NSError).localizedDescription
                    return result
                }
                if reply.status == 413, batch.count > 1 {
                    eventsMax = batch.count / 2
                    continue
                }
                guard reply.status == 200, let verdicts = Verdict.parse(reply.body) else {
                    result.failure = "the server answers \(reply.status)"
                    return result
                }
                waiting.removeFirst(chosen.count)
                let statuses = Dictionary(
                    verdicts.map { ($0.id, $0.status) }, uniquingKeysWith: { first, _ in first })
                for item in batch {
                    switch statuses[item.id] {
                    case .applied: result.applied += 1
                    case .duplicate: break
                    case .rejected, .conflict: result.refused += 1
                    case .retry, .unprocessed, nil: postponed.append(item)
                    }
                }
            }
            guard postponed.count < before else {
                result.refused += postponed.count
                return result
            }
            waiting = postponed
        }
        return result
    }

    /// The events that the log has exchanged with the server since a time: own ones by the records of the
    /// answers, others by their place in the log. Folded records name older events, too.
    private func items(since time: Int64) async throws -> [Item] {
        try await store.flush()
        var settled: [ClosedRange<UInt64>] = []
        var start: Position?
        for try await event in store.recordedEvents() {
            if event.isOwn, event.time.milliseconds >= time { start = start ?? event.position }
            guard start != nil, event.type == SyncSettled.type,
                let record = try? SyncSettled(json: event.content.json ?? []),
                Outbox.isOwn(record, event)
            else { continue }
            settled += record.applied + record.duplicate
        }
        guard let start else { return [] }
        var exchanged = PositionSet()
        for range in settled.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            let lower = max(range.lowerBound, (exchanged.runs.last?.upperBound ?? 0) + 1)
            if lower <= range.upperBound { exchanged.append(lower...range.upperBound) }
        }
        let retracted = Set(await store.durableState.retracted)
        var items: [Item] = []
        for try await event in store.recordedEvents() {
            let position = event.position
            let isExchanged =
                event.isOwn
                ? event.action != nil
                    && exchanged.intersects(position.rawValue...position.rawValue)
                : position >= start
            guard isExchanged, !retracted.contains(position) else { continue }
            items.append(Item(position: position, id: event.id, lineBytes: event.lineBytes))
        }
        return items
    }

    private static func nextBatch(of items: [Item], _ eventsMax: Int) -> [Item] {
        var bytes = 0
        let batch = items.prefix(eventsMax).prefix { item in
            bytes += item.lineBytes + 1
            return bytes <= ReplayState.batchBytes
        }
        return batch.isEmpty ? Array(items.prefix(1)) : Array(batch)
    }

    /// The lines of a batch as a JSON array, without the events that compaction has removed meanwhile: no view
    /// needs them.
    private func lines(of batch: inout [Item]) async throws -> [UInt8] {
        while true {
            do {
                return try await store.jsonArray(of: batch.map(\.position))
            } catch let error as LogError where error.code == .corrupt {
                guard let missing = error.positions?.lowerBound,
                    let index = batch.firstIndex(where: { $0.position == missing })
                else { throw error }
                batch.remove(at: index)
            }
        }
    }
}
