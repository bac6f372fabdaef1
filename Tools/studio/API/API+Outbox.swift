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
        let (outbox, lag, isFolded, settled) = log.withState { state in
            (
                state.fold.outbox, state.fold.lag, state.isFolded,
                state.index.positions(ofTypes: [SyncSettled.type])
            )
        }
        let lanes = Lanes(outbox, entriesMax: Self.entriesMax)
        var reply = JSONObjectWriter()
        reply.appendMember("complete", isFolded)
        reply.appendMember("total", outbox.count)
        reply.appendMember("counts", raw: lanes.counts.finished())
        reply.appendMember("due", lanes.dueCount)
        reply.appendMember("entries", list: lanes.entries.map { Self.row($0, lanes) })
        reply.appendMember("lanes", list: lanes.rows(Self.lanesMax))
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

    private static func row(_ element: Lanes.Element, _ lanes: Lanes) -> JSONObjectWriter {
        let entry = element.entry
        var row = identity(entry)
        row.appendMember("status", entry.status.rawValue)
        row.appendMember("parking", optional: entry.parking?.rawValue)
        row.appendMember("retryCount", entry.retryCount)
        row.appendMember("lastAttemptAt", optional: entry.lastAttemptAt?.description)
        row.appendMember("nextAttemptAt", optional: entry.nextAttemptAt?.description)
        row.appendMember("message", optional: entry.errorMessage)
        row.appendMember("conflictsWith", optional: entry.conflictsWith?.text)
        row.appendMember("bytes", entry.lineBytes)
        row.appendMember("behind", lanes.behind(element))
        row.appendMember("heldBy", optional: lanes.heldBy(element)?.text)
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
        try LineReading.forEachLine(at: Array(positions), in: log.folder) { prefix, line in
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
        let dependents = Outbox.dependents(of: entry, in: lane, log.folder.catalogue)
        return .object {
            $0.appendMember("dependents", list: dependents.map(Self.identity))
        }
    }
}

/// The lanes of an outbox, and the entries that are shown. One pass: an outbox may have a million entries.
private struct Lanes {
    /// An entry and its index in its lane.
    struct Element {
        var entry: OutboxEntry
        var lane: Int
        /// The number of entries before it in the lane.
        var before: Int
    }

    private struct Lane {
        var first: OutboxEntry
        var count = 0

        var isHeld: Bool { first.status != .pending }
    }

    private var lanes: [Lane] = []
    private var statuses: [OutboxEntry.Status: Int] = [:]
    /// Parked ones and conflicts first, each group by position.
    private(set) var entries: [Element] = []

    /// - Complexity: O(entries).
    init(_ outbox: Outbox, entriesMax: Int) {
        var numbers: [EntityID: Int] = [:]
        var pending: [Element] = []
        for entry in outbox.entries {
            let name = EntityID(entry.lane)
            let number = numbers[name] ?? lanes.count
            if number == lanes.count {
                numbers[name] = number
                lanes.append(Lane(first: entry))
            }
            let element = Element(entry: entry, lane: number, before: lanes[number].count)
            lanes[number].count += 1
            statuses[entry.status, default: 0] += 1
            if entry.status != .pending {
                entries.append(element)
            } else if pending.count < entriesMax {
                pending.append(element)
            }
        }
        entries = Array((entries + pending).prefix(entriesMax))
    }

    /// The number of entries by status.
    var counts: JSONObjectWriter {
        .object { writer in
            for status in [OutboxEntry.Status.pending, .failed, .conflict] {
                writer.appendMember(status.rawValue, statuses[status] ?? 0)
            }
        }
    }

    /// The number of later entries in the lane.
    func behind(_ element: Element) -> Int { lanes[element.lane].count - 1 - element.before }

    /// The event that holds the lane of an entry; nil if none does.
    func heldBy(_ element: Element) -> UUID? {
        let lane = lanes[element.lane]
        return element.before > 0 && lane.isHeld ? lane.first.id : nil
    }

    /// The number of entries that no parked event and no conflict holds. O(lanes).
    var dueCount: Int { lanes.reduce(0) { $0 + ($1.isHeld ? 0 : $1.count) } }

    /// The first lanes: held ones first, then those with the most entries.
    func rows(_ count: Int) -> [JSONObjectWriter] {
        let order = lanes.indices.sorted { one, other in
            let (one, other) = (lanes[one], lanes[other])
            guard one.isHeld == other.isHeld else { return one.isHeld }
            return (other.count, one.first.position) < (one.count, other.first.position)
        }
        return order.prefix(count).map { number in
            let lane = lanes[number]
            return .object {
                $0.appendMember("lane", lane.first.lane)
                $0.appendMember("entries", lane.count)
                $0.appendMember("status", lane.first.status.rawValue)
                $0.appendMember("first", Int(clamping: lane.first.position.rawValue))
            }
        }
    }
}
