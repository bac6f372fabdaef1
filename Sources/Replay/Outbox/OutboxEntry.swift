// One action of the outbox: what the event says, and what the server has answered so far.
// Spec/protocol/sync-records.md, OUT-4 and OUT-5.

import EventSourcing
import Foundation
import LogFormat

/// One action that waits for the server.
public struct OutboxEntry: Hashable, Sendable, Identifiable {
    /// The event's place.
    public let position: Position
    /// An object: entries are copied when the queue grows, is stored, or is shipped from.
    private let content: Content
    /// What the records say of it: mostly nothing, so it takes its room elsewhere.
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
    /// A later attempt that no record speaks of. Never part of the view.
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

    /// What the last answer did to an action that it did not settle.
    struct Answer: Hashable, Sendable {
        var outcome: SyncSettled.Outcome
        var retryCount: Int
        var at: Timestamp
        var code: String?
        var detail: String?
        var current: UUID?
        var isFinal = false
    }

    /// The states of the documents that an unsettled action can have on record.
    public enum Status: String, Sendable {
        /// It waits to be sent.
        case pending = "PENDING"
        /// It is parked, and holds its lane; `parking` says why.
        case failed = "FAILED"
        /// The server has a newer change; its lane waits for a resolution.
        case conflict = "CONFLICT"
    }

    /// Why an action is parked, and what ends that. Spec/protocol/parking.md.
    public enum Parking: String, Sendable {
        /// The server will never take it: a person decides.
        case rejected
        /// The server has answered `retry` five times: the action is sent again by itself, every 30 to
        /// 60 minutes, until the server gives another answer. A person may decide before.
        case exhausted
    }

    /// What the event says.
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
    /// What the action is about.
    public var entityId: String { content.fields.entityId }
    /// The lane whose order it keeps.
    public var lane: String { content.fields.lane }
    /// When it was performed.
    public var timestamp: Timestamp { content.fields.timestamp }
    /// Bytes of its line.
    public var lineBytes: Int { content.fields.lineBytes }
    /// The incarnation that made it.
    var source: UUID { content.fields.source }

    /// Where it stands.
    public var status: Status {
        switch answer?.outcome {
        case nil, .retry: .pending
        case .parked: .failed
        case .conflict: .conflict
        }
    }
    /// Why it is parked; nil unless it is.
    public var parking: Parking? {
        guard let answer, answer.outcome == .parked else { return nil }
        return answer.retryCount == Retries.max && !answer.isFinal
            ? .exhausted : .rejected
    }
    /// When an exhausted action is sent again by itself at the earliest, on a device that syncs then;
    /// nil for others.
    public var nextAttemptAt: Timestamp? {
        guard parking == .exhausted, let answer else { return nil }
        return Timestamp(
            milliseconds: answer.at.milliseconds + Retries.exhaustedDelay(of: id))
    }
    /// How often the server asked for a retry: 0 to 5.
    public var retryCount: Int { answer?.retryCount ?? 0 }
    /// When an attempt was made last: one that is on record, or a later one of this process.
    public var lastAttemptAt: Timestamp? { attempt?.at ?? answer?.at }
    /// The event that the server holds instead, for an action in conflict, if it said so. The log
    /// has it, too.
    public var conflictsWith: UUID? { answer?.current }
    /// Why the last attempt of this process brought no verdict; else the server's last message, or
    /// its code.
    public var errorMessage: String? { attempt?.message ?? answer?.detail ?? answer?.code }

    /// The entry with an attempt of this process, if that is later than what is on record.
    func with(_ attempt: SyncAttempt?) -> OutboxEntry {
        guard let attempt, attempt.at > answer?.at ?? Timestamp(milliseconds: .min) else {
            return self
        }
        var entry = self
        entry.recorded = .attempted(answer, attempt)
        return entry
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
        row.add("parked", parking != nil)
        row.add("position", Int(clamping: position.rawValue))
        return row
    }
}
