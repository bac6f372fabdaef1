// Ships again the events that a restored server lacks. Between ReplayRun and the transport.
// Spec/protocol/replay.md, RPL-14.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

/// The events of a log that a restored server may lack, shipped again batch by batch.
struct LossRecovery {
    /// The result of a step.
    enum Step: Sendable {
        /// A batch was answered; there may be more.
        case answered
        /// All events have been answered.
        case complete
        /// The batch has no verdicts, and is sent again with the next step.
        case failed(ReplayState.Answer)
    }

    private struct Item {
        let position: Position
        let id: UUID
        let lineBytes: Int
    }

    /// The time of the restored state, in milliseconds since 1970.
    let time: Int64
    /// The number of events that the server lacked.
    private(set) var applied = 0
    /// The number of events that the server does not accept.
    private(set) var refused = 0
    private let store: EventStore
    private var items: [Item]
    /// The index of the first event of the next batch.
    private var next = 0
    /// The events that the server has answered `retry` or `unprocessed` to.
    private var postponed: [Item] = []
    /// The number of rounds in a row in which every event was postponed.
    private var idleRounds = 0
    private var eventsMax = ReplayState.batchEvents

    /// The time before that of the restored state from which on events are shipped: the clocks of the device
    /// and the server differ.
    private static let marginMilliseconds: Int64 = 3_600_000

    /// Finds the events that the log has exchanged with the server since a time.
    ///
    /// - Parameter time: the time of the restored state, in milliseconds since 1970.
    /// - Throws: `LogError`.
    /// - Complexity: O(bytes of the log); memory for a position and an id for each event.
    init(_ store: EventStore, since time: Int64) async throws {
        self.store = store
        self.time = time
        let start = Timestamp(milliseconds: time).milliseconds - Self.marginMilliseconds
        items = try await Self.items(store, since: start)
    }

    /// The events that were exchanged since a time: own ones by the records of the answers, others by their
    /// place in the log. Folded records name older events, too.
    private static func items(_ store: EventStore, since time: Int64) async throws -> [Item] {
        try await store.flush()
        var settled: [ClosedRange<UInt64>] = []
        // The record of a page is the last line of its commit, so the events of the first page come before it.
        var lastOwnBefore = Position.zero
        var isAfter = false
        for try await event in store.recordedEvents() where event.isOwn {
            if event.time.milliseconds >= time { isAfter = true }
            guard isAfter else {
                lastOwnBefore = event.position
                continue
            }
            settled += exchanged(in: event)
        }
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
                // A type that does not leave the device has no action.
                : position > lastOwnBefore && (event.action != nil || !event.isKnownType)
            guard isExchanged, !retracted.contains(position) else { continue }
            items.append(Item(position: position, id: event.id, lineBytes: event.lineBytes))
        }
        return items
    }

    /// The positions that a record of the log names as those of events that the server has.
    private static func exchanged(in event: Event) -> [ClosedRange<UInt64>] {
        let json = event.content.json ?? []
        if event.type == SyncSettled.type, let record = try? SyncSettled(json: json),
            Outbox.isOwn(record, event)
        {
            return record.applied + record.duplicate
        }
        if event.type == EventsReinstated.type, let record = try? EventsReinstated(json: json),
            record.by == event.source
        {
            return record.events.map { $0.position.rawValue...$0.position.rawValue }
        }
        return []
    }

    /// Ships the next batch.
    ///
    /// - Parameter send: sends a batch.
    /// - Throws: `LogError`; an error of `send` that is misuse of the transport.
    mutating func step(
        _ send: (_ batch: [UInt8]) async throws -> TransportReply
    ) async throws -> Step {
        if next == items.count, let step = beginRound() { return step }
        let chosen = nextBatch()
        var batch = Array(chosen)
        let lines = try await lines(of: &batch)
        guard !batch.isEmpty else {
            next += chosen.count
            return .answered
        }
        let reply: TransportReply
        do {
            reply = try await send(lines)
        } catch let error as TransportError where error.isMisuse {
            throw error
        } catch let error as TransportError where !error.isTransient {
            return .failed(.refused(error))
        } catch {
            return .failed(.failure("no answer: \((error as NSError).localizedDescription)"))
        }
        if [400, 413, 422].contains(reply.status) {
            // Halved until the refused event is alone.
            if batch.count > 1 {
                eventsMax = batch.count / 2
            } else {
                refused += 1
                next += chosen.count
                eventsMax = ReplayState.batchEvents
            }
            return .answered
        }
        guard reply.status == 200 else { return .failed(.reply(reply)) }
        guard let verdicts = Verdict.parse(reply.body) else {
            return .failed(.failure("the answer does not come from a sync server"))
        }
        next += chosen.count
        apply(verdicts, to: batch)
        return .answered
    }

    /// Begins a round with the postponed events.
    ///
    /// - Returns: nil if there are any to send at once.
    private mutating func beginRound() -> Step? {
        guard !postponed.isEmpty else { return .complete }
        idleRounds = postponed.count == items.count ? idleRounds + 1 : 0
        items = postponed
        (next, postponed) = (0, [])
        guard idleRounds > 0 else { return nil }
        guard idleRounds < Retries.max else {
            refused += items.count
            items = []
            return .complete
        }
        return .failed(.failure("the server has asked to send some events again later"))
    }

    private mutating func apply(_ verdicts: [Verdict], to batch: [Item]) {
        let statuses = Dictionary(
            verdicts.map { ($0.id, $0.status) }, uniquingKeysWith: { first, _ in first })
        for item in batch {
            switch statuses[item.id] {
            case .applied: applied += 1
            case .duplicate: break
            case .rejected, .conflict: refused += 1
            case .retry, .unprocessed, nil: postponed.append(item)
            }
        }
    }

    private func nextBatch() -> ArraySlice<Item> {
        var bytes = 0
        let batch = items[next...].prefix(eventsMax).prefix { item in
            bytes += item.lineBytes + 1
            return bytes <= ReplayState.batchBytes
        }
        return batch.isEmpty ? items[next...].prefix(1) : batch
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
