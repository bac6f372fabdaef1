// One action of the outbox: the event's fields and the server's last answer. Spec/protocol/sync-records.md,
// OUT-4 and OUT-5.

import EventSourcing
import Foundation
import LogFormat

/// One action that the server has not settled.
public struct OutboxEntry: Hashable, Sendable, Identifiable {
    /// The event's position.
    public let position: Position
    /// A reference, because entries are copied when the queue grows, is stored, or is shipped.
    private let content: Content
    /// The recorded answer and the last attempt. Most entries have neither, so the enum is `indirect` and
    /// an entry stays small.
    private var recorded = Recorded.nothing
    var answer: Answer? {
        get {
            switch recorded {
            case .nothing: nil
            case .answer(let answer): answer
            case .attempted(let answer, _): answer
            }
        }
        set { recorded = newValue.map(Recorded.answer) ?? .nothing }
    }
    /// An attempt of this process that is later than the record. Never part of the view.
    private var attempt: SyncAttempt? {
        if case .attempted(_, let attempt) = recorded { attempt } else { nil }
    }
    /// Whether it is a tombstone.
    var isSettled = false

    private indirect enum Recorded: Hashable, Sendable {
        case nothing
        case answer(Answer)
        case attempted(Answer?, SyncAttempt)
    }

    /// The last answer to an action that the server did not settle.
    struct Answer: Hashable, Sendable {
        var outcome: SyncSettled.Outcome
        var retryCount: Int
        var at: Timestamp
        var code: String?
        var detail: String?
        var current: UUID?
        var isFinal = false
        var failuresAlone = 0
    }

    /// The recorded state of an unsettled action.
    public enum Status: String, Sendable {
        /// Not sent yet, or to be sent again.
        case pending = "PENDING"
        /// Parked, and holds its lane; `parking` has the reason.
        case failed = "FAILED"
        /// The server has a newer change; its lane waits for a resolution.
        case conflict = "CONFLICT"
    }

    /// The reason why an action is parked. Spec/protocol/parking.md.
    public enum Parking: String, Sendable {
        /// The server will never apply it: the user or the app decides.
        case rejected
        /// The server has answered `retry` five times. The replayer sends the action again every 30 to
        /// 60 minutes until the server gives another answer; the user or the app may decide before.
        case exhausted
        /// Requests with this action alone fail, and the server accepts others. The replayer sends it again, alone,
        /// after 1, 2, 4 … minutes, at most 60, and once a run; the user or the app may decide before.
        case setAside
    }

    /// The event's fields.
    struct Fields: Hashable, Sendable {
        let id: UUID
        let source: UUID
        let action: String
        let entityId: String
        let lane: String
        let timestamp: Timestamp
        let lineBytes: Int
    }

    private final class Content: Hashable, Sendable {
        let fields: Fields
        init(_ fields: Fields) { self.fields = fields }
        static func == (one: Content, other: Content) -> Bool {
            one === other || one.fields == other.fields
        }
        func hash(into hasher: inout Hasher) { hasher.combine(fields) }
    }

    init(at position: Position, _ fields: Fields) {
        self.position = position
        content = Content(fields)
    }

    init(_ event: Event, action: String) {
        self.init(
            at: event.position,
            Fields(
                id: event.id, source: event.source, action: action, entityId: event.subject ?? "",
                lane: event.lane, timestamp: event.time, lineBytes: event.lineBytes))
    }

    /// The event's id: the idempotency key.
    public var id: UUID { content.fields.id }
    /// The action's name: `PLAN_TRIP`.
    public var action: String { content.fields.action }
    /// The id of the action's entity.
    public var entityId: String { content.fields.entityId }
    /// The event's lane.
    public var lane: String { content.fields.lane }
    /// The event's time.
    public var timestamp: Timestamp { content.fields.timestamp }
    /// The size of the event's line in bytes.
    public var lineBytes: Int { content.fields.lineBytes }
    /// The incarnation that recorded the event.
    var source: UUID { content.fields.source }

    /// The recorded state.
    public var status: Status {
        switch answer?.outcome {
        case nil, .retry: .pending
        case .parked: .failed
        case .conflict: .conflict
        }
    }
    /// The reason why the action is parked; nil if it is not.
    public var parking: Parking? {
        guard let answer, answer.outcome == .parked else { return nil }
        if answer.failuresAlone > 0 { return .setAside }
        return answer.retryCount == Retries.max && !answer.isFinal
            ? .exhausted : .rejected
    }
    /// The earliest time at which the replayer sends an exhausted action, or one that is set aside, again; nil for
    /// other actions.
    public var nextAttemptAt: Timestamp? {
        guard let answer else { return nil }
        switch parking {
        case nil, .rejected: return nil
        case .exhausted:
            return Timestamp(
                milliseconds: answer.at.milliseconds + Retries.exhaustedDelay(of: id))
        case .setAside:
            return Timestamp(
                milliseconds: answer.at.milliseconds
                    + Retries.setAsideDelay(of: id, afterFailures: failuresAlone))
        }
    }
    /// How often requests with this action alone failed; not 0 if it is set aside.
    var failuresAlone: Int { parking == nil ? 0 : answer?.failuresAlone ?? 0 }
    /// The number of `retry` verdicts: 0 to 5.
    public var retryCount: Int { answer?.retryCount ?? 0 }
    /// The time of the last attempt, recorded or of this process.
    public var lastAttemptAt: Timestamp? { attempt?.at ?? answer?.at }
    /// The id of the server's event for an action in conflict, if the server sent it. The log has that
    /// event, too.
    public var conflictsWith: UUID? { answer?.current }
    /// The server's code of the recorded answer, such as `http_422`, or one of `RequestTransport.Code`.
    public var code: String? { answer?.code }
    /// The reason why the last attempt of this process brought no verdict; otherwise the server's last
    /// message, or its code.
    public var errorMessage: String? { attempt?.message ?? answer?.detail ?? answer?.code }

    /// The entry with an attempt of this process, if that is later than the recorded answer.
    func with(_ attempt: SyncAttempt?) -> OutboxEntry {
        guard let attempt, attempt.at > answer?.at ?? Timestamp(milliseconds: .min) else {
            return self
        }
        var entry = self
        entry.recorded = .attempted(answer, attempt)
        return entry
    }
}

extension OutboxEntry: CustomStringConvertible {
    /// Position, action, entity, state, and the message of the last attempt.
    public var description: String {
        "\(position) \(action) \(entityId) \(status.rawValue)"
            + (errorMessage.map { ": \($0)" } ?? "")
    }
}

extension OutboxEntry {
    /// The action as a row with the fields of `SyncAction`, with the event's data.
    public func row(data: [UInt8]?) -> ViewRow { row.filled { _ in data } }

    /// The row, whose data are those of the event.
    var row: ViewRow {
        var row = ViewRow()
        row.appendField("id", id.text)
        row.appendField("actionType", action)
        row.appendField("entityId", entityId)
        row.appendField("actionData", member: nil, ofEvent: id)
        row.appendField("timestamp", timestamp.description)
        row.appendField("syncStatus", status.rawValue)
        row.appendField("retryCount", retryCount)
        row.appendField("lastAttemptAt", lastAttemptAt?.description)
        row.appendField("errorMessage", errorMessage)
        row.appendField("parked", parking != nil)
        row.appendField("position", Int(clamping: position.rawValue))
        return row
    }
}
