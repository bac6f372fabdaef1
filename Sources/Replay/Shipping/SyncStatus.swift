// How a store syncs now, for a screen: how it is connected, what waits, and why nothing moves.
// Spec/protocol/triggers.md, STA-1 to STA-5.

import EventSourcing
import Foundation

/// How a store syncs now.
///
/// ```swift
/// let status = Observed(store.syncStatus)
/// Text("\(status.value.pending) to send")
/// if let obstacle = status.value.obstacle { Text(obstacle.message) }
/// ```
///
/// Times are those of the device's clock.
public struct SyncStatus: Hashable, Sendable {
    /// How the store learns of the account's new events.
    public enum Connection: String, Hashable, Sendable {
        /// No run syncs the store.
        case inactive
        /// The run reads when it begins, and when the app asks for it.
        case onDemand
        /// The run reads all events, to follow a stream of the server then.
        case connecting
        /// The server pushes them.
        case pushed
        /// The run reads at intervals, because no stream can be had: the server has none, or a proxy
        /// withholds it.
        case polled
    }

    /// The reason why events are not exchanged now.
    public struct Obstacle: Hashable, Sendable {
        /// The kind of the reason.
        public let kind: SyncFailure
        /// The reason in English, for a log or a support screen. Without a token, and without an event's
        /// content, but a server's words may be in it.
        public let message: String

        /// Creates a reason.
        public init(kind: SyncFailure, message: String) {
            self.kind = kind
            self.message = message
        }
    }

    /// How the store learns of the account's new events.
    public var connection = Connection.inactive
    /// Whether a request is unanswered.
    public var isExchanging = false
    /// The number of the account's events that the server has and this log has not read, by the server's
    /// last answer; nil before one, and after the server was restored. Own events that were shipped count until they have been read back.
    public var behind: Int?
    /// The number of events that are to be sent; those in the lane of a parked event or of a conflict wait
    /// for its resolution.
    public var pending = 0
    /// The number of parked events.
    public var parked = 0
    /// The number of events in conflict.
    public var inConflict = 0
    /// The time of the last complete exchange: verdicts, a page or a pushed event. After an opening, that of the
    /// last record of an exchange or of a decision; nil before the first. A server that has nothing new to push
    /// does not change it.
    public var lastSuccess: Timestamp?
    /// The time of the next attempt or the next read without a trigger; nil if none is planned.
    public var nextAttempt: Timestamp?
    /// The reason why events are not exchanged now; nil if nothing is in the way.
    public var obstacle: Obstacle?

    /// Creates the status of a store without events and without a run; for previews of a screen.
    public init() {}
}

extension EventStore {
    /// How the store syncs now, and each change: of the outbox, of the connection, of the time of the next
    /// attempt. The value is computed in O(1).
    public nonisolated var syncStatus: ViewQuery<SyncStatus> {
        query(Outbox.self, with: SyncActivity.self) { outbox, activities in
            SyncStatus(outbox, activities[true] ?? SyncActivity())
        }
    }
}

/// What a run does now. Kept in memory.
struct SyncActivity: TransientState, Equatable {
    typealias Key = Bool
    typealias Value = SyncActivity

    var connection = SyncStatus.Connection.inactive
    var isExchanging = false
    var behind: Int?
    var lastSuccess: Timestamp?
    var nextAttempt: Timestamp?
    var obstacle: SyncStatus.Obstacle?

    /// Changes the activity of a store's run.
    static func update(in store: EventStore, _ change: (inout SyncActivity) -> Void) {
        store.transient(SyncActivity.self).update(true) {
            var activity = $0 ?? SyncActivity()
            change(&activity)
            return activity
        }
    }

    /// Records that a run has ended.
    static func end(in store: EventStore, _ reason: SyncStatus.Obstacle?) {
        update(in: store) {
            $0.connection = .inactive
            $0.isExchanging = false
            $0.nextAttempt = nil
            $0.obstacle = reason
        }
    }
}

extension SyncStatus {
    fileprivate init(_ outbox: Outbox, _ activity: SyncActivity) {
        connection = activity.connection
        isExchanging = activity.isExchanging
        behind = activity.behind
        parked = outbox.parkedCount
        inConflict = outbox.conflictCount
        pending = outbox.count - parked - inConflict
        // After an opening, the last record of an exchange is known. Its time is the server's.
        lastSuccess =
            activity.lastSuccess
            ?? outbox.lastExchange.map {
                Timestamp(milliseconds: $0.milliseconds - outbox.clockOffset)
            }
        nextAttempt = activity.nextAttempt
        obstacle = activity.obstacle
    }
}

extension SyncStatus.Obstacle {
    static let postponed = SyncStatus.Obstacle(
        kind: .postponed, message: "the server has asked to send some events again later")

    init(_ pause: ReplayState.Pause) {
        self.init(kind: SyncFailure(pause), message: pause.message)
    }
}

extension SyncStatus: CustomStringConvertible {
    /// The connection, the numbers that are not 0, and the obstacle.
    public var description: String {
        let parts: [String?] = [
            connection.rawValue, "\(pending) pending",
            parked > 0 ? "\(parked) parked" : nil,
            inConflict > 0 ? "\(inConflict) in conflict" : nil,
            behind.map { "\($0) to read" },
            lastSuccess.map { "last success \($0)" },
            nextAttempt.map { "next attempt \($0)" },
            obstacle.map { "\($0.kind.rawValue): \($0.message)" },
        ]
        return parts.compactMap(\.self).joined(separator: ", ")
    }
}
