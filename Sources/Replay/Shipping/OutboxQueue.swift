// What is queued: the events of the outbox that are loaded, lane by lane. Part of Sending.
// Spec/protocol/replay.md, RPL-1 and RPL-2.

import EventSourcing
import Foundation
import LogFormat

/// The loaded part of the outbox.
struct OutboxQueue: Sendable {
    var lanes = LaneSet()
    /// The resolutions of conflicts in this run.
    var resolutions = Resolutions()
    private let resolvesConflicts: Bool
    /// The position up to which the outbox has been loaded.
    private var loaded = Position.zero
    /// The last decision that was taken into account.
    private var lastDecision = Position.zero
    /// The cursor on record, after which a probe reads.
    private(set) var cursor: String?
    /// The oldest event that was set aside before the run: the run tries it at once, and so shows whether the others
    /// need to wait.
    private var trial: UUID?

    init(resolvesConflicts: Bool) { self.resolvesConflicts = resolvesConflicts }

    /// Loads new events of the outbox, as many as can change the next batch or all.
    mutating func load(_ outbox: Outbox, clockOffset: Int64, all: Bool) {
        defer { lastDecision = outbox.lastDecision }
        cursor = outbox.cursor
        // Before the first load, the queue has no event that a decision could have changed.
        if outbox.lastDecision > lastDecision, loaded > .zero {
            return reload(outbox, clockOffset: clockOffset)
        }
        guard loaded < outbox.through else { return }
        lanes.advanceNewestPosition(to: outbox.through)
        var entries = outbox.entries(from: loaded.next).makeIterator()
        while all || wantsMore {
            guard let entry = entries.next() else {
                loaded = outbox.through
                break
            }
            append(entry, clockOffset: clockOffset)
            loaded = entry.position
        }
    }

    /// Loads the whole outbox anew, after a decision, or after own events were settled by a page. O(outbox).
    mutating func reload(_ outbox: Outbox, clockOffset: Int64) {
        replace(by: outbox.entries, clockOffset: clockOffset)
        loaded = outbox.through
    }

    /// Replaces all events.
    mutating func replace(by entries: some Sequence<OutboxEntry>, clockOffset: Int64) {
        var held: [(entry: OutboxEntry, hold: LaneSet.Hold)] = []
        for entry in entries { held.append((entry, hold(for: entry, clockOffset))) }
        lanes.replace(by: held)
    }

    /// Appends an event to its lane.
    mutating func append(_ entry: OutboxEntry, clockOffset: Int64) {
        lanes.enqueue(entry, hold: hold(for: entry, clockOffset))
    }

    /// Whether later events of the outbox can change the next batch. With enough ready lanes they change
    /// none, unless a lane was deferred: it comes after them.
    var wantsMore: Bool { lanes.readyCount < Sending.batchEvents || lanes.hasDeferredLanes }

    private mutating func hold(for entry: OutboxEntry, _ clockOffset: Int64) -> LaneSet.Hold {
        switch entry.status {
        case .pending: return .none
        case .failed:
            if entry.parking == .setAside, (trial ?? entry.id) == entry.id {
                trial = entry.id
                return .none
            }
            return entry.nextAttemptAt.map { .until($0.milliseconds - clockOffset) } ?? .forever
        case .conflict:
            return resolvesConflicts && resolutions.mayResolve(EntityID(entry.lane))
                ? .none : .forever
        }
    }
}

/// The resolutions of conflicts in a run. Without a limit, a server that answers every resolution with a conflict
/// would get new events without end.
struct Resolutions: Sendable {
    /// The number of resolutions of each lane's conflict since an event of the lane was settled.
    private var counts: [EntityID: Int] = [:]

    /// The largest number of resolutions of a lane's conflict in a run while no event of the lane is settled.
    static let max = 3

    /// Whether the conflict of a lane may be resolved once more in this run.
    func mayResolve(_ lane: EntityID) -> Bool { counts[lane, default: 0] < Self.max }

    /// Counts a resolution.
    mutating func resolved(_ lane: EntityID) { counts[lane, default: 0] += 1 }

    /// An event of the lane was settled.
    mutating func settled(_ item: ReplayItem) {
        if !counts.isEmpty { counts[item.laneID] = nil }
    }
}
