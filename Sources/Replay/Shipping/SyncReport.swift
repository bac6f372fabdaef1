// The result of a run of the replayer: counts, pending events, a message.

import EventSourcing
import Foundation
import LogFormat
import SyncWire

/// The result of a run of the replayer.
public struct SyncReport: Hashable, Sendable {
    /// The number of events that the server has applied.
    public var applied = 0
    /// The number of events that the server already had.
    public var duplicate = 0
    /// The number of events that were parked: rejected ones, those whose retries are used up, and those that are set
    /// aside because requests with them alone fail.
    public var rejected = 0
    /// The number of events in conflict, resolved ones included.
    public var conflict = 0
    /// The number of conflicts that were resolved.
    public var resolved = 0
    /// The number of events that are still to be sent, held ones included.
    public var pending = 0
    /// The number of pending events that are parked or in conflict, or after such an event in their lane.
    public var held = 0
    /// The number of own events of types that have no rule, here or in the log's records: they are not sent.
    /// Set when the run has ended.
    public var withoutRule = 0
    /// The number of events of other logs that were recorded, from pages and from conflicts; with an app's own API, of
    /// states that were read from it.
    public var received = 0
    /// The number of elements of an app's own API that were left for a later read: a change of the entity is unanswered,
    /// or the app has asked for it.
    public var waiting = 0
    /// Whether other logs' events were to be read and not all of them were.
    public var isBehind = false
    /// The number of elements from the server that could not be recorded: they are not events, they contain
    /// a token that was sent, or their id belongs to another event of this log.
    public var unusable = 0
    /// The number of events from the server whose types never leave a device: contents of caches, settings,
    /// records of another log. They were not recorded.
    public var refused = 0
    /// The time of the state to which the server was restored from a backup, if this log was ahead of it.
    public var restoredTo: Timestamp?
    /// The name or address of the server, if the log had synced with another database, or with an earlier state of
    /// this one: everything that the log has exchanged was offered to it.
    public var otherServer: String?
    /// The number of lines that compaction had removed before such an offer. No view needs them.
    public var compacted = 0
    /// The number of events that such a server lacked and that were shipped again.
    public var shippedAgain = 0
    /// The number of events that such a server lacks and does not accept.
    public var notAccepted: Int { notAcceptedPositions.count }
    /// The positions of these events, in the order of the answers: events that the server rejects or has in conflict,
    /// and those on which requests fail.
    public var notAcceptedPositions: [Position] = []
    /// The ids of the events in unanswered requests: an app shows them as SYNCING.
    public var underWay: Set<UUID> = []
    /// Whether another log was found to write with this log's incarnation, so that this log got a new one.
    public var tookNewName = false
    /// Whether nothing was done because another run exchanges this store's events.
    public var isElsewhere = false
    /// The reason why the run waits or has stopped although events that are not held are pending.
    public var message: String?
    /// The kind of that reason, by which an app chooses what to do; nil if there is none.
    ///
    /// ```swift
    /// switch report.failure?.remedy {
    /// case nil, .wait: break
    /// case .signIn: showSignIn()
    /// case .update, .askUser: show(report.message)
    /// }
    /// ```
    public var failure: SyncFailure?

    /// The error of the transport if it refused to send: a token of another account, events of no known account,
    /// or a token that is no header value. `message` has its description.
    public var refusal: TransportError?

    /// Creates an empty report.
    public init() {}

    /// Notes a restore, or the move to another server, whose recovery is complete.
    mutating func noteRestore(_ restore: ServerRestore) {
        if let server = restore.otherServer {
            otherServer = server
        } else {
            restoredTo = Timestamp(milliseconds: restore.time)
        }
    }
}

extension SyncReport: CustomStringConvertible {
    /// The numbers of applied and pending events, the other numbers that are not 0, and the message.
    public var description: String {
        func count(_ number: Int, _ noun: String) -> String? {
            number == 0 ? nil : "\(number) \(noun)"
        }
        let ofHeld = held == 0 ? "" : " (\(held) held)"
        let counts: [String?] = [
            "\(applied) applied", count(duplicate, "already there"), count(rejected, "parked"),
            count(conflict, "in conflict"), count(resolved, "resolved"),
            "\(pending) pending\(ofHeld)",
            count(underWay.count, "under way"), count(received, "received"),
            count(waiting, "to be read later"),
            count(unusable, "unusable"), count(refused, "refused"),
        ]
        let notes: [String?] = [
            counts.compactMap(\.self).joined(separator: ", "),
            restoredTo.map {
                "the server was restored to \($0): \(shippedAgain.counted("event")) shipped again"
            },
            otherServer.map {
                "the log has synced with another database than that of \($0): "
                    + "\(shippedAgain.counted("event")) shipped again"
            },
            compacted == 0
                ? nil : "compaction had removed \(compacted.counted("line")) before",
            notAccepted == 0
                ? nil
                : "\(notAccepted.counted("event")) not accepted by this server, at "
                    + notAcceptedPositions.listed,
            withoutRule == 0
                ? nil : "\(withoutRule.counted("event")) of types without a rule, not to be sent",
            isBehind ? "not all events of other logs were read" : nil,
            tookNewName ? "the log has a new incarnation" : nil,
            isElsewhere ? "another run syncs this store" : nil, message,
        ]
        return notes.compactMap(\.self).joined(separator: "; ")
    }
}

extension [Position] {
    /// The first ten positions, as text.
    package var listed: String {
        let rest = count > 10 ? " and \(count - 10) more" : ""
        return "position\(count == 1 ? "" : "s") "
            + prefix(10).map(\.description).joined(separator: ", ") + rest
    }
}
