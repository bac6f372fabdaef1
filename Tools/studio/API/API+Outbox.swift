// What waits for the server, and what the server has answered.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import LogStorage

extension API {
    private static let entriesMax = 2_000
    private static let lanesMax = 500
    private static let batchesMax = 200

    /// GET /api/outbox
    func outbox() throws -> JSONObjectWriter {
        let (entries, lag, isFolded, settled) = log.withState { state in
            (
                state.fold.outbox.entries.map { $0 }, state.fold.lag, state.isFolded,
                state.index.positions(ofTypes: [SyncSettled.type])
            )
        }
        var reply = JSONObjectWriter()
        reply.appendMember("complete", isFolded)
        reply.appendMember("total", entries.count)
        reply.appendMember("counts", raw: Self.counts(entries).finished())
        let lanes = Lanes(entries)
        reply.appendMember(
            "entries",
            list: lanes.heldFirst(entries).prefix(Self.entriesMax).map { Self.row($0, lanes) })
        reply.appendMember("lanes", list: lanes.rows(most: Self.lanesMax))
        reply.appendMember("batches", list: try batches(settled.suffix(Self.batchesMax)))
        reply.appendMember(
            "lag",
            list: lag.map { point in
                .object {
                    $0.appendMember("time", point.time.description)
                    $0.appendMember("pending", point.pending)
                    let age = point.oldest.map { point.time.milliseconds - $0.milliseconds } ?? 0
                    $0.appendMember("seconds", Double(max(0, age)) / 1_000)
                }
            })
        return reply
    }

    private static func counts(_ entries: [OutboxEntry]) -> JSONObjectWriter {
        .object { writer in
            for status in [OutboxEntry.Status.pending, .failed, .conflict] {
                writer.appendMember(status.rawValue, entries.count { $0.status == status })
            }
        }
    }

    private static func row(_ entry: OutboxEntry, _ lanes: Lanes) -> JSONObjectWriter {
        var row = identity(entry)
        row.appendMember("status", entry.status.rawValue)
        row.appendMember("parking", optional: entry.parking?.rawValue)
        row.appendMember("retryCount", entry.retryCount)
        row.appendMember("lastAttemptAt", optional: entry.lastAttemptAt?.description)
        row.appendMember("nextAttemptAt", optional: entry.nextAttemptAt?.description)
        row.appendMember("message", optional: entry.errorMessage)
        row.appendMember("conflictsWith", optional: entry.conflictsWith?.text)
        row.appendMember("bytes", entry.lineBytes)
        row.appendMember("behind", lanes.behind[entry.id] ?? 0)
        row.appendMember("heldBy", optional: lanes.heldBy(entry)?.text)
        return row
    }

    /// The members that identify an action.
    private static func identity(_ entry: OutboxEntry) -> JSONObjectWriter {
        .object {
            $0.appendMember("id", entry.id.text)
            $0.appendMember("position", Int(clamping: entry.position.rawValue))
            $0.appendMember("action", entry.action)
            $0.appendMember("entity", entry.entityId)
            $0.appendMember("lane", entry.lane)
            $0.appendMember("time", entry.timestamp.description)
        }
    }

    // MARK: Batches

    private func batches(_ positions: ArraySlice<UInt64>) throws -> [JSONObjectWriter] {
        var batches: [JSONObjectWriter] = []
        try LineReading.forEachLine(at: Array(positions), in: log.directory) { prefix, line in
            let event = try LogReader.event(
                line, OfflineModel.catalogue, directory: log.directory)
            guard let record = try? SyncSettled(json: event.content.json ?? []) else { return }
            batches.append(Self.batch(record, event))
        }
        return batches.reversed()
    }

    private static func batch(_ record: SyncSettled, _ event: Event) -> JSONObjectWriter {
        func count(_ ranges: [ClosedRange<UInt64>]) -> Int { ranges.reduce(0) { $0 + $1.count } }
        return .object {
            $0.appendMember("position", Int(clamping: event.position.rawValue))
            $0.appendMember("time", event.time.description)
            $0.appendMember("applied", count(record.applied))
            $0.appendMember("duplicate", count(record.duplicate))
            for outcome in [SyncSettled.Outcome.retry, .parked, .conflict] {
                $0.appendMember(
                    outcome.rawValue, record.entries.count { $0.outcome == outcome })
            }
            $0.appendMember(
                "entries",
                list: record.entries.map { entry in
                    .object {
                        $0.appendMember("position", Int(clamping: entry.position))
                        $0.appendMember("id", entry.id.text)
                        $0.appendMember("outcome", entry.outcome.rawValue)
                        $0.appendMember("code", optional: entry.code)
                        $0.appendMember("detail", optional: entry.detail)
                        $0.appendMember("retryCount", entry.retryCount)
                    }
                })
        }
    }

    // MARK: Decisions

    /// GET /api/outbox/dependents
    func dependents(_ parameters: Parameters) throws -> JSONObjectWriter {
        let id = try parameters.id("id")
        let outbox = log.withState { $0.fold.outbox }
        guard let entry = outbox.entries.first(where: { $0.id == id }) else {
            throw APIError.notFound(DecisionError(.notInOutbox, id).description)
        }
        let lane = outbox.entries.filter { EntityID($0.lane) == EntityID(entry.lane) }
        let dependents = Outbox.dependents(of: entry, in: lane, OfflineModel.catalogue)
        return .object {
            $0.appendMember("dependents", list: dependents.map(Self.identity))
        }
    }
}

/// The lanes of an outbox.
private struct Lanes {
    private var lanes: [EntityID: [OutboxEntry]]
    /// The number of later events in the lane, by id.
    private(set) var behind: [UUID: Int] = [:]

    init(_ entries: [OutboxEntry]) {
        lanes = Dictionary(grouping: entries) { EntityID($0.lane) }
        for lane in lanes.values {
            for (index, entry) in lane.enumerated() { behind[entry.id] = lane.count - 1 - index }
        }
    }

    /// The event that holds the lane of a waiting event; nil if none does.
    func heldBy(_ entry: OutboxEntry) -> UUID? {
        guard let first = lanes[EntityID(entry.lane)]?.first, first.id != entry.id,
            first.status != .pending
        else { return nil }
        return first.id
    }

    /// The entries: parked ones and conflicts first, each group by position.
    func heldFirst(_ entries: [OutboxEntry]) -> [OutboxEntry] {
        entries.filter { $0.status != .pending } + entries.filter { $0.status == .pending }
    }

    /// The lanes: held ones first, then those with the most entries.
    func rows(most count: Int) -> [JSONObjectWriter] {
        let sorted = lanes.values.sorted { one, other in
            let (oneIsHeld, otherIsHeld) = (
                one[0].status != .pending, other[0].status != .pending
            )
            guard oneIsHeld == otherIsHeld else { return oneIsHeld }
            return (other.count, one[0].position) < (one.count, other[0].position)
        }
        return sorted.prefix(count).map { lane in
            .object {
                $0.appendMember("lane", lane[0].lane)
                $0.appendMember("entries", lane.count)
                $0.appendMember("status", lane[0].status.rawValue)
                $0.appendMember("first", Int(clamping: lane[0].position.rawValue))
            }
        }
    }
}
