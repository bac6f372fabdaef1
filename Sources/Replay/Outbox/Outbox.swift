// The own events of shipped types that the server has not settled, in order of position. The only view that
// is ordered by position and not by LWW timestamp. Spec/protocol/sync-records.md.

import DequeModule
import EventSourcing
import Foundation
import LogFormat

/// The actions that the server has not settled.
public struct Outbox: Projection {
    public static let name = "outbox"
    public static let version = 7
    public static let dependsOnRules = true

    /// The entries, by ascending position. Settled entries in the middle stay as tombstones until they are
    /// more than half of the queue.
    var queue: Deque<OutboxEntry> = []
    var tombstones = 0
    /// The number of parked actions. Derived from the queue.
    public private(set) var parkedCount = 0
    /// The number of actions in conflict. Derived from the queue.
    public private(set) var conflictCount = 0
    /// Positions of own events of unknown types that no record has settled. Another release may know the
    /// types and ship the events, so no range of settled positions may include them.
    var unknown = PositionSet()
    /// The last recorded answer to each event of an unknown type, by position: a release that knows the
    /// type needs the answer, even after compaction has removed the record.
    var unknownAnswers: [UInt64: UnknownAnswer] = [:]
    /// The recorded requests for unsettled events, by the events' positions.
    var requests: [UInt64: RecordedRequest] = [:]
    /// The last position folded.
    public internal(set) var through = Position.zero
    /// The last record of this log.
    var lastRecord = Position.zero
    /// The newest summary record, which replaces the records before it.
    var folded: Folded?
    /// The cursor up to which the account's events have been read, and the peer, with the record that holds them.
    var pulled: Pulled?
    /// The recorded offset of the server's clock: server time − device time, in milliseconds.
    package internal(set) var clockOffset: Int64 = 0
    /// The recorded offset that one answer has shown and none has confirmed (CLOCK-3).
    var clockCandidate: Int64?
    /// The time of the last record of a server's answer.
    package internal(set) var lastContact = Timestamp(milliseconds: 0)
    /// The position of the last record of a decision (retry, discard, resolution). Not part of the stored
    /// state. A running replayer compares it with the value of its last look, to find new decisions.
    package private(set) var lastDecision = Position.zero
    /// The number of records that could not be read.
    public internal(set) var ignored = 0

    /// An answer to an event of an unknown type.
    struct UnknownAnswer: Hashable, Sendable {
        /// The event's id according to the record: the outbox does not store the ids of unknown events.
        var id: UUID
        var answer: OutboxEntry.Answer
    }

    /// A record that replaces all records of this log up to a position.
    struct Folded: Hashable, Sendable {
        var replaces: Position
        var lwwTimestamp: LWWTimestamp
    }

    /// A cursor of the server, with the LWW timestamp of its record.
    struct Pulled: Hashable, Sendable {
        var cursor: String?
        var peer: SyncPeer
        var lwwTimestamp: LWWTimestamp
    }

    public init() {}

    /// The cursor from which to read the account's events; nil is the beginning.
    package var cursor: String? { pulled?.cursor }

    /// The server and the account that the log has synced with.
    package var peer: SyncPeer { pulled?.peer ?? SyncPeer() }

    /// Whether the log has unsent events, or has exchanged some.
    package var hasContent: Bool { count > 0 || lastRecord > .zero || cursor != nil }

    /// The time of the last record of verdicts, of a decision on them, or of a page; nil before the first.
    package var lastExchange: Timestamp? {
        let hasRead = pulled?.cursor != nil && pulled?.peer.refusal == nil
        let times = [
            lastRecord > .zero ? lastContact : nil, hasRead ? pulled?.lwwTimestamp.time : nil,
        ]
        return times.compactMap(\.self).max()
    }

    public mutating func fold(_ event: Event) {
        through = max(through, event.position)
        if event.type == SyncSettled.type {
            guard let record = try? SyncSettled(json: event.content.json ?? []) else {
                ignored += 1
                return
            }
            if Self.isOwn(record, event) { foldSettled(record, event) }
        } else if event.type == SyncPulled.type {
            guard let record = try? SyncPulled(json: event.content.json ?? []) else {
                ignored += 1
                return
            }
            if event.isOwn, record.by == event.source {
                pulled = Pulled(
                    cursor: record.next, peer: record.peer, lwwTimestamp: event.lwwTimestamp)
            }
        } else if event.type == SyncRequested.type {
            foldRequested(event)
        } else if event.type == EventsDiscarded.type {
            foldDiscarded(event)
        } else if event.type == EventsReinstated.type {
            foldReinstated(event)
        } else if event.isOwn, let action = event.action {
            queue.append(OutboxEntry(event, action: action))
        } else if event.isOwn, !event.isKnownType, !event.hasRecordedRule {
            unknown.append(event.position.rawValue...event.position.rawValue)
        }
    }

    /// Whether a record was written by this log, so that its positions are positions of this log.
    static func isOwn(_ record: SyncSettled, _ event: Event) -> Bool {
        event.isOwn && record.by == event.source
    }

    private mutating func foldSettled(_ record: SyncSettled, _ event: Event) {
        let before = lastRecord
        lastRecord = event.position
        lastContact = event.time
        if let replaces = record.replaces {
            // It was computed before the records that came after `replaces`, so it would undo them.
            guard before <= replaces, replaces < event.position else { return }
            folded = Folded(replaces: replaces, lwwTimestamp: event.lwwTimestamp)
        }
        if let clock = record.clockOffset { (clockOffset, clockCandidate) = (clock, nil) }
        if let candidate = record.clockCandidate { clockCandidate = candidate }
        for range in record.applied + record.duplicate { settleRange(range) }
        for entry in record.entries {
            let answer = OutboxEntry.Answer(
                outcome: entry.outcome, retryCount: entry.retryCount, at: entry.at ?? event.time,
                code: entry.code, detail: entry.detail, current: entry.current,
                isFinal: entry.isFinal, failuresAlone: entry.failuresAlone)
            if unknown.intersects(entry.position...entry.position) {
                unknownAnswers[entry.position] = UnknownAnswer(id: entry.id, answer: answer)
                continue
            }
            guard let index = self.index(at: Position(entry.position)),
                queue[index].id == entry.id
            else { continue }
            if !queue[index].isSettled { adjustCounts(for: queue[index], by: -1) }
            queue[index].answer = answer
            if !queue[index].isSettled { adjustCounts(for: queue[index], by: 1) }
            if entry.isDecision {
                lastDecision = event.position
                // The decision to send it although the API may have forgotten the key.
                if entry.code == FailureCode.keyExpired {
                    requests[entry.position]?.since = entry.at ?? event.time
                }
            }
        }
        dropTombstones()
    }

    /// Removes the discarded events. When the view is rebuilt, retracted events are not folded at all.
    private mutating func foldDiscarded(_ event: Event) {
        guard event.isOwn, let record = try? EventsDiscarded(json: event.content.json ?? []),
            record.by == event.source
        else { return }
        settleTargets(record.events)
        lastDecision = event.position
    }

    /// Removes the reinstated events: the server has them, so they need not be sent.
    private mutating func foldReinstated(_ event: Event) {
        guard event.isOwn, let record = try? EventsReinstated(json: event.content.json ?? []),
            record.by == event.source
        else { return }
        settleTargets(record.events)
    }

    private mutating func settleTargets(_ targets: [EventTarget]) {
        for target in targets where index(at: target.position) != nil {
            settleRange(target.position.rawValue...target.position.rawValue)
        }
        dropTombstones()
    }

    private mutating func dropTombstones() {
        // Reads by index, so that no entry is copied.
        var settled = 0
        while settled < queue.count, queue[settled].isSettled { settled += 1 }
        queue.removeFirst(settled)
        tombstones -= settled
        if tombstones > queue.count / 2 {
            queue.removeAll { $0.isSettled }
            tombstones = 0
        }
    }

    private mutating func settleRange(_ range: ClosedRange<UInt64>) {
        unknown.subtract(range)
        if !unknownAnswers.isEmpty {
            unknownAnswers = unknownAnswers.filter { !range.contains($0.key) }
        }
        dropRequests(of: range)
        var index = firstIndex(from: Position(range.lowerBound))
        while index < queue.count, queue[index].position.rawValue <= range.upperBound {
            if !queue[index].isSettled {
                adjustCounts(for: queue[index], by: -1)
                queue[index].isSettled = true
                tombstones += 1
            }
            index += 1
        }
    }

    /// Adds a difference to the count of an entry's status.
    mutating func adjustCounts(for entry: OutboxEntry, by difference: Int) {
        switch entry.status {
        case .pending: break
        case .failed: parkedCount += difference
        case .conflict: conflictCount += difference
        }
    }

    /// The index of the entry at a position, tombstones included. O(log n).
    func index(at position: Position) -> Int? {
        let index = firstIndex(from: position)
        return index < queue.count && queue[index].position == position ? index : nil
    }

    /// The index of the first entry at or after a position. O(log n).
    private func firstIndex(from position: Position) -> Int {
        queue.partitioningIndex { $0.position >= position }
    }

    /// The unsettled action at a position. O(log n).
    package func entry(at position: Position) -> OutboxEntry? {
        index(at: position).map { queue[$0] }.flatMap { $0.isSettled ? nil : $0 }
    }

    /// The number of own events of types that have no rule, here or in the log's records: they are not sent.
    /// O(runs of such events).
    public var withoutRule: Int { unknown.count }

    /// The number of unsettled actions. O(1).
    public var count: Int { queue.count - tombstones }

    /// The unsettled actions, in order. O(1), then O(1) each; `count` of the outbox itself is faster than
    /// that of the entries.
    public var entries: some BidirectionalCollection<OutboxEntry> { entries(from: .zero) }

    /// The unsettled actions from a position on, in order. O(log n), then O(1) each.
    public func entries(from first: Position) -> some BidirectionalCollection<OutboxEntry> {
        queue[firstIndex(from: first)...].lazy.filter { !$0.isSettled }
    }

    /// The given positions that have an unsettled action, in order, each once. O(n) from the first up to
    /// the last.
    package func unsettledPositions(among positions: some Collection<Position>) -> [Position] {
        var unsettled: [Position] = []
        let positions = positions.sorted()
        guard let first = positions.first else { return [] }
        var index = firstIndex(from: first)
        for position in positions {
            while index < queue.count, queue[index].position < position { index += 1 }
            guard index < queue.count else { break }
            guard queue[index].position == position, !queue[index].isSettled else { continue }
            unsettled.append(position)
            index += 1
        }
        return unsettled
    }

    /// Settled positions as ranges that touch neither an unsettled action nor an event of an unknown
    /// type. O(n) from the first up to the last.
    package func ranges(of positions: some Collection<Position>) -> [ClosedRange<UInt64>] {
        let positions = positions.sorted()
        guard let first = positions.first, let last = positions.last else { return [] }
        var ranges: [ClosedRange<UInt64>] = []
        var open: ClosedRange<UInt64>?
        var next = 0
        for index in firstIndex(from: first)..<queue.count {
            let entryPosition = queue[index].position
            guard entryPosition <= last else { break }
            while positions[next] < entryPosition { next += 1 }
            if positions[next] == entryPosition {
                let position = entryPosition.rawValue
                if let range = open, unknown.intersects(range.upperBound...position) {
                    ranges.append(range)
                    open = nil
                }
                open = (open?.lowerBound ?? position)...position
            } else if !queue[index].isSettled, let range = open {
                ranges.append(range)
                open = nil
            }
        }
        if let open { ranges.append(open) }
        return ranges
    }
}
