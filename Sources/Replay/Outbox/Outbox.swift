// What the server has not settled yet: the shipped types of own lines, in order of position. The one
// view that follows positions and not stamps. Spec/protocol/sync-records.md.

import DequeModule
import EventSourcing
import Foundation
import LogFormat

/// The actions that the server has not settled.
public struct Outbox: Projection {
    public static let name = "outbox"
    public static let version = 4
    public static let dependsOnRules = true

    /// By position, ascending. Settled ones in the middle stay as tombstones for a while.
    var queue: Deque<OutboxEntry> = []
    var tombstones = 0
    /// Positions of own lines of types that nobody here knows, and that no record has settled:
    /// whoever knows them may ship them, so no range of settled positions may run over them.
    var unknown = PositionSet()
    /// What the last record said of events of unknown types, by position: a release that knows the
    /// type needs it, also when compaction has taken out the record.
    var unknownAnswers: [UInt64: UnknownAnswer] = [:]
    /// The last position folded.
    public internal(set) var through = Position.zero
    /// The last record of this log.
    var lastRecord = Position.zero
    /// The last record that stands for others.
    var folded: Folded?
    /// How far the account's events have been read, and the record that says so.
    var pulled: Pulled?
    /// What has to be added to the device's clock to get the server's, as the last record has it;
    /// in milliseconds.
    package internal(set) var clockOffset: Int64 = 0
    /// When the server was last heard of, as far as records tell.
    package internal(set) var lastContact = Timestamp(milliseconds: 0)
    /// The last record with which somebody decided on an event. Not part of the stored state: a
    /// running replayer looks whether it has moved.
    package private(set) var lastDecision = Position.zero
    /// Records that could not be read.
    public internal(set) var ignored = 0

    /// An answer to an event of a type that is not known here.
    struct UnknownAnswer: Hashable, Sendable {
        /// The id that the record names. The outbox does not know that of the event.
        var id: UUID
        var answer: OutboxEntry.Answer
    }

    /// A record that stands for all records of this log up to a position.
    struct Folded: Hashable, Sendable {
        var replaces: Position
        var stamp: Stamp
    }

    /// A cursor of the server.
    struct Pulled: Hashable, Sendable {
        var cursor: String
        var stamp: Stamp
    }

    public init() {}

    /// The cursor behind which the account's events have not been read yet; nil is the beginning.
    package var cursor: String? { pulled?.cursor }

    public mutating func fold(_ event: Event) {
        through = max(through, event.position)
        if event.type == SyncSettled.type {
            guard let record = try? SyncSettled(json: event.content.json ?? []) else {
                ignored += 1
                return
            }
            if Self.isOwn(record, event) { take(record, event) }
        } else if event.type == SyncPulled.type {
            guard let record = try? SyncPulled(json: event.content.json ?? []) else {
                ignored += 1
                return
            }
            if event.isOwn, record.by == event.source {
                pulled = Pulled(cursor: record.next, stamp: event.stamp)
            }
        } else if event.type == EventsDiscarded.type {
            take(discards: event)
        } else if event.type == EventsReinstated.type {
            take(reinstates: event)
        } else if event.isOwn, let action = event.action {
            queue.append(OutboxEntry(event, action: action))
        } else if event.isOwn, !event.isKnownType {
            unknown.append(event.position.rawValue...event.position.rawValue)
        }
    }

    /// Whether a record speaks of this log's positions.
    static func isOwn(_ record: SyncSettled, _ event: Event) -> Bool {
        event.isOwn && record.by == event.source
    }

    private mutating func take(_ record: SyncSettled, _ event: Event) {
        let before = lastRecord
        lastRecord = event.position
        lastContact = event.time
        if let replaces = record.replaces {
            // Made without knowing the records that came after: they know better.
            guard before <= replaces, replaces < event.position else { return }
            folded = Folded(replaces: replaces, stamp: event.stamp)
        }
        if let clock = record.clockOffset { clockOffset = clock }
        for range in record.applied + record.duplicate { settle(range) }
        for entry in record.entries {
            let answer = OutboxEntry.Answer(
                outcome: entry.outcome, retryCount: entry.retryCount, at: entry.at ?? event.time,
                code: entry.code, detail: entry.detail, current: entry.current,
                isFinal: entry.isFinal)
            if unknown.intersects(entry.position...entry.position) {
                unknownAnswers[entry.position] = UnknownAnswer(id: entry.id, answer: answer)
                continue
            }
            guard let index = self.index(at: Position(entry.position)),
                queue[index].id == entry.id
            else { continue }
            queue[index].answer = answer
            if entry.isDecision { lastDecision = event.position }
        }
        dropTombstones()
    }

    /// What was taken back has left the outbox; if the view is folded anew, it was never in it.
    private mutating func take(discards event: Event) {
        guard event.isOwn, let record = try? EventsDiscarded(json: event.content.json ?? []),
            record.by == event.source
        else { return }
        settle(record.events)
        lastDecision = event.position
    }

    /// What counts again is on the server: it need not be sent.
    private mutating func take(reinstates event: Event) {
        guard event.isOwn, let record = try? EventsReinstated(json: event.content.json ?? []),
            record.by == event.source
        else { return }
        settle(record.events)
    }

    private mutating func settle(_ targets: [EventTarget]) {
        for target in targets where index(at: target.position) != nil {
            settle(target.position.rawValue...target.position.rawValue)
        }
        dropTombstones()
    }

    private mutating func dropTombstones() {
        // An entry that is only looked at is not to be copied.
        var settled = 0
        while settled < queue.count, queue[settled].isSettled { settled += 1 }
        queue.removeFirst(settled)
        tombstones -= settled
        if tombstones > queue.count / 2 {
            queue.removeAll { $0.isSettled }
            tombstones = 0
        }
    }

    private mutating func settle(_ range: ClosedRange<UInt64>) {
        unknown.subtract(range)
        if !unknownAnswers.isEmpty {
            unknownAnswers = unknownAnswers.filter { !range.contains($0.key) }
        }
        var index = self.index(of: Position(range.lowerBound))
        while index < queue.count, queue[index].position.rawValue <= range.upperBound {
            if !queue[index].isSettled {
                queue[index].isSettled = true
                tombstones += 1
            }
            index += 1
        }
    }

    /// The index of the entry at a position, tombstones included. O(log n).
    func index(at position: Position) -> Int? {
        let index = self.index(of: position)
        return index < queue.count && queue[index].position == position ? index : nil
    }

    /// The index of the first entry at or behind a position. O(log n).
    private func index(of position: Position) -> Int {
        queue.partitioningIndex { $0.position >= position }
    }

    /// The unsettled action at a position. O(log n).
    package func entry(at position: Position) -> OutboxEntry? {
        index(at: position).map { queue[$0] }.flatMap { $0.isSettled ? nil : $0 }
    }

    /// How many actions are not settled. O(1).
    public var count: Int { queue.count - tombstones }

    /// The unsettled actions, in order. O(1), then O(1) each; `count` of the outbox itself is faster than
    /// that of the entries.
    public var entries: some BidirectionalCollection<OutboxEntry> { entries(from: .zero) }

    /// The unsettled actions from a position on, in order. O(log n), then O(1) each.
    public func entries(from first: Position) -> some BidirectionalCollection<OutboxEntry> {
        queue[index(of: first)...].lazy.filter { !$0.isSettled }
    }

    /// Those of some positions where an action is that is not settled, in order, each once.
    /// O(n) from the first up to the last.
    package func held(_ positions: some Collection<Position>) -> [Position] {
        var held: [Position] = []
        let positions = positions.sorted()
        guard let first = positions.first else { return [] }
        var index = self.index(of: first)
        for position in positions {
            while index < queue.count, queue[index].position < position { index += 1 }
            guard index < queue.count else { break }
            guard queue[index].position == position, !queue[index].isSettled else { continue }
            held.append(position)
            index += 1
        }
        return held
    }

    /// Settled positions as ranges that touch neither an unsettled action nor an event of an unknown
    /// type. O(n) from the first up to the last.
    package func ranges(of positions: some Collection<Position>) -> [ClosedRange<UInt64>] {
        let positions = positions.sorted()
        guard let first = positions.first, let last = positions.last else { return [] }
        var ranges: [ClosedRange<UInt64>] = []
        var open: ClosedRange<UInt64>?
        var next = 0
        for index in index(of: first)..<queue.count {
            let place = queue[index].position
            guard place <= last else { break }
            while positions[next] < place { next += 1 }
            if positions[next] == place {
                let position = place.rawValue
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
