// What the server has not settled yet: the shipped types of own lines, in order of position. The one
// view that follows positions and not stamps. Spec/sync-records.md.

import DequeModule
import EventSourcing
import Foundation
import LogFormat

/// One action that waits for the server.
public struct OutboxEntry: Hashable, Sendable, Identifiable {
    /// The event's id: the idempotency key.
    public let id: UUID
    /// The event's place.
    public let position: Position
    /// The action's name: `ADD_NOTE`.
    public let action: String
    /// What the action is about.
    public let entityId: String
    /// The lane whose order it keeps.
    public let lane: String
    /// When it was performed.
    public let timestamp: Timestamp
    /// Bytes of its line.
    public let lineBytes: Int
    /// Where it stands.
    public internal(set) var status = Status.pending
    /// How often the server asked for a retry.
    public internal(set) var retryCount = 0
    /// When a charged attempt was made last.
    public internal(set) var lastAttemptAt: Timestamp?
    /// The server's last words.
    public internal(set) var errorMessage: String?
    fileprivate var isSettled = false

    /// The states of the documents that an unsettled action can have on record.
    public enum Status: String, Sendable {
        /// It waits to be sent.
        case pending = "PENDING"
        /// It is parked: the server will never take it, or retries are used up.
        case failed = "FAILED"
        /// The server has a newer change; its lane waits for a resolution.
        case conflict = "CONFLICT"
    }

    init(_ event: Event, action: String) {
        id = event.id
        position = event.position
        self.action = action
        entityId = event.subject ?? ""
        lane = event.lane
        timestamp = event.time
        lineBytes = event.lineBytes
    }
}

extension OutboxEntry {
    /// The action as the documents' SyncAction, with the event's data.
    public func row(data: [UInt8]?) -> ViewRow {
        var row = ViewRow()
        row.add("id", id.text)
        row.add("actionType", action)
        row.add("entityId", entityId)
        row.add("actionData", raw: data)
        row.add("timestamp", timestamp.description)
        row.add("syncStatus", status.rawValue)
        row.add("retryCount", retryCount)
        row.add("lastAttemptAt", lastAttemptAt?.description)
        row.add("errorMessage", errorMessage)
        row.add("parked", status == .failed)
        row.add("position", Int(clamping: position.rawValue))
        return row
    }
}

/// The actions that the server has not settled.
public struct Outbox: Projection {
    public static let name = "outbox"
    public static let version = 1
    public static let dependsOnRules = true

    /// By position, ascending. Settled ones in the middle stay as tombstones for a while.
    private var queue: Deque<OutboxEntry> = []
    private var tombstones = 0
    /// Positions of own lines of types that nobody here knows: whoever does may ship them, so no
    /// range of settled positions may run over them.
    private var unknown: Deque<Position> = []
    /// The last position folded.
    public private(set) var through = Position.zero
    /// Records of this log that could not be read.
    public private(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        through = max(through, event.position)
        if event.type == SyncSettled.type {
            guard let record = try? SyncSettled(json: event.content.json ?? []) else {
                ignored += 1
                return
            }
            if event.isOwn, record.by == event.source { settle(record, at: event.time) }
        } else if event.isOwn, let action = event.action {
            queue.append(OutboxEntry(event, action: action))
        } else if event.isOwn, !event.isKnownType, !queue.isEmpty {
            unknown.append(event.position)
        }
    }

    private mutating func settle(_ record: SyncSettled, at time: Timestamp) {
        for range in record.applied + record.duplicate {
            var index = self.index(of: Position(range.lowerBound))
            while index < queue.count, queue[index].position.rawValue <= range.upperBound {
                if !queue[index].isSettled {
                    queue[index].isSettled = true
                    tombstones += 1
                }
                index += 1
            }
        }
        for entry in record.entries {
            let index = self.index(of: Position(entry.position))
            guard index < queue.count, queue[index].id == entry.id else { continue }
            queue[index].retryCount = entry.retryCount
            queue[index].lastAttemptAt = time
            queue[index].errorMessage = entry.detail ?? entry.code
            queue[index].status =
                switch entry.outcome {
                case .retry: .pending
                case .parked: .failed
                case .conflict: .conflict
                }
        }
        while queue.first?.isSettled ?? false {
            queue.removeFirst()
            tombstones -= 1
        }
        let first = queue.first?.position ?? through
        while let position = unknown.first, position < first { unknown.removeFirst() }
        if tombstones > queue.count / 2 {
            queue.removeAll { $0.isSettled }
            tombstones = 0
        }
    }

    /// The index of the first entry at or behind a position. O(log n).
    private func index(of position: Position) -> Int {
        var low = 0
        var high = queue.count
        while low < high {
            let middle = (low + high) / 2
            if queue[middle].position < position { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// How many actions are not settled. O(1).
    public var count: Int { queue.count - tombstones }

    /// The unsettled actions from a position on, in order. O(log n), then O(1) each.
    public func entries(from first: Position = .zero) -> some Sequence<OutboxEntry> {
        queue[index(of: first)...].lazy.filter { !$0.isSettled }
    }

    /// The positions of a settled set as ranges that touch neither an unsettled action nor an event
    /// of an unknown type. O(n) up to the last.
    func ranges(of positions: Set<Position>) -> [ClosedRange<UInt64>] {
        guard let first = positions.min(), let last = positions.max() else { return [] }
        var ranges: [ClosedRange<UInt64>] = []
        var open: ClosedRange<UInt64>?
        var barriers = unknown[...]
        for entry in queue[index(of: first)...] {
            guard entry.position <= last else { break }
            while let barrier = barriers.first, barrier < entry.position {
                barriers.removeFirst()
                if let range = open, range.upperBound < barrier.rawValue {
                    ranges.append(range)
                    open = nil
                }
            }
            if positions.contains(entry.position) {
                open = (open?.lowerBound ?? entry.position.rawValue)...entry.position.rawValue
            } else if !entry.isSettled, let range = open {
                ranges.append(range)
                open = nil
            }
        }
        if let open { ranges.append(open) }
        return ranges
    }
}
