// The history of one event: its segment, causes and replacements, the server's verdicts, decisions, and its
// present state. Built by StoryReader. Spec/operations/logtool.md, TOOL-22.

import EventSourcing
import Foundation
import LogFormat

/// The history and the present state of one event.
///
/// ```swift
/// if let story = try await store.story(of: id) {
///     for step in story.steps { print(step) }
///     print(story.status)
/// }
/// ```
public struct EventStory: Hashable, Sendable {
    /// The event's id.
    public let id: UUID
    /// The event's position, also after compaction has removed the event.
    public let position: Position
    /// The name of the segment file that holds the event; nil once compaction has removed it.
    public let segment: String?
    /// The event as it was recorded; nil once compaction has removed it.
    public let event: Event?
    /// The records of the event, in the order of the log.
    public let steps: [Step]
    /// The event's present state, and what it waits for.
    public let status: Status

    /// The id of the event that this one replaces (`causationid`), if a resolution of a conflict recorded it.
    public var replacedID: String? { event?.content.string("causationid") }
    /// The id of the event on which this one is based (`baseid`).
    public var baseID: String? { event?.content.string("baseid") }
    /// The steps that come from the server.
    public var verdicts: [Step] { steps.filter(\.kind.isVerdict) }
    /// The events that replace this one.
    public var replacements: [Replacement] { steps.compactMap(\.replacement) }

    /// One record of an event.
    public struct Step: Hashable, Sendable, CustomStringConvertible {
        /// The position of the record.
        public let position: Position
        /// The time of the step; nil if a folded record has replaced the record of the time.
        public let time: Timestamp?
        /// The kind of the step.
        public let kind: Kind
        /// The step, in English.
        public internal(set) var description: String
        /// The server's verdict: for `retry`, `parked` and `conflict`.
        public internal(set) var verdict: Refusal?
        /// The other event: for `replacement`.
        public internal(set) var replacement: Replacement?
    }

    /// The kinds of steps.
    public enum Kind: String, Sendable {
        /// The server asked to send it again later.
        case retry
        /// It was parked.
        case parked
        /// The server has a newer change.
        case conflict
        /// A retry was requested by the user or the app.
        case retried
        /// The server applied it.
        case applied
        /// The server had it already.
        case duplicate
        /// The server has it; whether it was a duplicate is no longer on record.
        case settled
        /// It was discarded, and so retracted.
        case discarded
        /// A conflict was resolved, and the event was retracted.
        case superseded
        /// Another event replaces it, or others that were superseded with it.
        case replacement
        /// The server turned out to have it: it is not retracted any more.
        case reinstated

        var isVerdict: Bool {
            [.retry, .parked, .conflict, .applied, .duplicate, .settled].contains(self)
        }
    }

    /// The server's verdict on an attempt that did not settle the event.
    public struct Refusal: Hashable, Sendable {
        /// The server's code, or one that begins with `http_`.
        public let code: String?
        /// The server's message.
        public let message: String?
        /// The number of `retry` verdicts so far.
        public let retryCount: Int
    }

    /// An event that replaces another.
    public struct Replacement: Hashable, Sendable {
        /// The event's id.
        public let id: UUID
        /// The event's type.
        public let type: String
    }

    /// The state of an event.
    public enum Status: Hashable, Sendable {
        /// The server has it.
        case settled
        /// The server has not settled it.
        ///
        /// - Parameters:
        ///   - ahead: the number of earlier unsettled events in its lane.
        ///   - first: the first of them; if it is parked or in conflict, it holds the lane.
        case pending(ahead: Int, first: OutboxEntry?)
        /// It is parked until the time of the next attempt, or, without one, until a decision.
        case parked(nextAttemptAt: Timestamp?)
        /// It is parked until this time, because requests with it alone fail and the server accepts others.
        case setAside(nextAttemptAt: Timestamp)
        /// Its conflict is not decided yet.
        case conflict
        /// It was discarded or superseded.
        case retracted
        /// It came from another log: nothing is to be sent.
        case received
        /// Events of its type stay on the device.
        case local
        /// No rule names its type: it is not sent.
        case unknownType
        /// Compaction has removed it, since later events had replaced it.
        case removed
    }
}

extension EventStory: CustomStringConvertible {
    /// The event with its state, followed by its steps, one a line.
    public var description: String {
        var text = "event \(id.text) at position \(position)"
        if let event { text += ", \(event.type)" + (event.subject.map { " \($0)" } ?? "") }
        if let replacedID { text += ", replaces \(replacedID)" }
        if let baseID {
            text += ", based on \(baseID == EventDraft.noBase.text ? "nothing" : baseID)"
        }
        let lines = steps.map { step in "position \(step.position): \(step)" }
        return (["\(text): \(status)"] + lines).joined(separator: "\n")
    }
}

extension EventStory.Status: CustomStringConvertible {
    /// The state, in English.
    public var description: String {
        switch self {
        case .settled: return "the server has it"
        case .pending(_, nil): return "it waits for the server"
        case .pending(let ahead, let first?):
            guard first.status != .pending else {
                return "it waits for the server, with \(ahead) ahead of it in its lane"
            }
            return
                "it waits for the event \(first.id.text) at position \(first.position), which is "
                + (first.status == .failed ? "parked" : "in conflict")
        case .parked(nil): return "it is parked until it is retried or discarded"
        case .parked(let next?):
            return
                "it is parked, since its retries are used up; a device that syncs sends it again "
                + "at \(next)"
        case .setAside(let next):
            return
                "it is set aside, since requests with it alone fail; a device that syncs sends it again at "
                + "\(next)"
        case .conflict: return "it waits until its conflict is decided"
        case .retracted: return "it counts as never recorded"
        case .received: return "it came from elsewhere, so there is nothing to send"
        case .local: return "its type stays on the device"
        case .unknownType: return "no rule names its type, so it is not sent"
        case .removed: return "compaction removed it, since later events had replaced it"
        }
    }
}
