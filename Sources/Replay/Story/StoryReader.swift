// Builds the story of one event: reads the log in order and folds the outbox. Spec/operations/logtool.md,
// TOOL-22.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

extension EventStory {
    /// Reads a log for the story of an event.
    ///
    /// - Parameters:
    ///   - last: the last position to read.
    ///   - now: the time, in milliseconds since 1970: the ids of removed events are kept for 90 days.
    ///   - body: called with every event.
    /// - Returns: the story, and the log's torn tail, if it has one; nil if no event with the id is known.
    /// - Throws: `LogError` as `LogReader.forEachEvent`, and what `body` throws.
    /// - Complexity: O(bytes of the log); memory for one frame and the outbox.
    package static func read(
        of id: UUID, in directory: String, _ fileSystem: any FileSystem,
        catalogue: EventCatalogue, through last: Position = Position(.max), now: Int64,
        _ body: (Event) throws -> Void = { _ in }
    ) throws -> (story: EventStory, tornTail: TornTail?)? {
        let reader = LogReader(directory, fileSystem: fileSystem)
        // Compaction may remove the event between the two reads: then the second pass finds the id.
        for _ in 0..<2 {
            var story = StoryReader(
                of: id, removedFrom: try reader.removed(id: id.integer, now: now)?.position)
            let outcome = try reader.forEachEvent(catalogue: catalogue) { event in
                story.fold(event)
                try body(event)
                return event.position < last
            }
            guard let position = story.position else { continue }
            let segment = try LogDirectory.segments(of: directory, fileSystem).last {
                SegmentName.base($0).map { $0 <= position } ?? false
            }
            return (story.finished(at: position, in: segment), outcome.tornTail)
        }
        return nil
    }
}

/// Folds the events of a log into the story of one.
private struct StoryReader {
    private let id: UUID
    private var outbox = Outbox()
    /// The event's position; nil until the event was read.
    private(set) var position: Position?
    private var event: Event?
    private var steps: [EventStory.Step] = []
    private var lastAttempt: Attempt?
    private var lastRecord = Position.zero
    private var isRetracted = false
    /// The events that were superseded together with this one, itself included.
    private var superseded: Set<UUID> = []
    private var replacements: [(step: EventStory.Step, isDirect: Bool)] = []

    /// The identity of an attempt.
    private struct Attempt: Equatable {
        var outcome: SyncSettled.Outcome
        var retryCount: Int
        var time: Timestamp
    }

    /// - Parameter position: the event's position if compaction has removed it.
    init(of id: UUID, removedFrom position: Position?) {
        self.id = id
        self.position = position
    }

    /// Folds the next event of the log.
    mutating func fold(_ next: Event) {
        if next.id == id { (event, position) = (next, next.position) }
        let isWaiting = position.map { outbox.entry(at: $0) != nil } ?? false
        outbox.fold(next)
        guard next.isOwn else { return }
        let json = next.content.json ?? []
        if next.type == SyncSettled.type { fold(settled: json, next, wasWaiting: isWaiting) }
        guard let position, next.position > position else { return }
        switch next.type {
        case SyncSettled.type: break
        case EventsDiscarded.type: fold(discarded: json, next, position)
        case EventsReinstated.type: fold(reinstated: json, next, position)
        default: fold(replacement: next)
        }
    }

    private mutating func appendStep(
        _ kind: EventStory.Kind, _ event: Event, at time: Timestamp?, _ description: String
    ) {
        steps.append(
            EventStory.Step(
                position: event.position, time: time, kind: kind, description: description))
    }

    // MARK: Verdicts

    private mutating func fold(settled json: [UInt8], _ event: Event, wasWaiting: Bool) {
        guard let record = try? SyncSettled(json: json), Outbox.isOwn(record, event) else { return }
        let before = lastRecord
        lastRecord = event.position
        if let replaces = record.replaces {
            // It was computed before the records that came after `replaces`, so it has no effect.
            guard before <= replaces, replaces < event.position else { return }
        }
        guard let position, wasWaiting || self.event == nil else { return }
        for entry in record.entries
        where entry.position == position.rawValue && entry.id == id {
            fold(entry, of: record, event)
        }
        guard wasWaiting, outbox.entry(at: position) == nil else { return }
        if record.replaces != nil {
            appendStep(
                .settled, event, at: nil,
                "the server has it; the time of its verdict is not on record any more")
        } else if record.duplicate.contains(where: { $0.contains(position.rawValue) }) {
            appendStep(.duplicate, event, at: event.time, "the server had it already")
        } else {
            appendStep(.applied, event, at: event.time, "the server has applied it")
        }
    }

    private mutating func fold(
        _ entry: SyncSettled.Entry, of record: SyncSettled, _ event: Event
    ) {
        let attempt = Attempt(
            outcome: entry.outcome, retryCount: entry.retryCount, time: entry.at ?? event.time)
        // A folded record repeats an attempt whose own record is still in the log.
        guard attempt != lastAttempt else { return }
        lastAttempt = attempt
        let message = [entry.code, entry.detail].compactMap { $0 }.joined(separator: ": ")
        let suffix = message.isEmpty ? "" : ": " + message
        switch entry.outcome {
        case .retry where entry.isDecision:
            appendStep(.retried, event, at: attempt.time, "a retry was requested")
        case .retry:
            appendStep(
                .retry, event, at: attempt.time,
                "the server said not now, retry \(entry.retryCount)\(suffix)")
        case .parked: appendStep(.parked, event, at: attempt.time, "it was parked\(suffix)")
        case .conflict:
            appendStep(
                .conflict, event, at: attempt.time, "the server has a newer change\(suffix)")
        }
        let index = steps.count - 1
        if !entry.isDecision {
            steps[index].verdict = EventStory.Refusal(
                code: entry.code, message: entry.detail, retryCount: entry.retryCount)
        }
        if record.replaces != nil {
            steps[index].description += " (earlier attempts were summed up)"
        }
    }

    // MARK: Decisions

    private mutating func fold(discarded json: [UInt8], _ event: Event, _ position: Position) {
        guard let record = try? EventsDiscarded(json: json), record.by == event.source,
            record.events.contains(where: { $0.position == position }), !isRetracted
        else { return }
        isRetracted = true
        switch record.reason {
        case .superseded:
            superseded.formUnion(record.events.map(\.id))
            appendStep(
                .superseded, event, at: event.time,
                "a conflict was decided: it counts as never recorded")
        case .discarded:
            appendStep(
                .discarded, event, at: event.time,
                "it was discarded: it counts as never recorded")
        }
    }

    private mutating func fold(reinstated json: [UInt8], _ event: Event, _ position: Position) {
        guard let record = try? EventsReinstated(json: json), record.by == event.source,
            record.events.contains(where: { $0.position == position }), isRetracted
        else { return }
        isRetracted = false
        appendStep(
            .reinstated, event, at: event.time,
            "the server turned out to have it: it counts again")
    }

    private mutating func fold(replacement event: Event) {
        guard let cause = event.content.causeID,
            cause == id || superseded.contains(cause)
        else { return }
        let isDirect = cause == id
        replacements.append(
            (
                EventStory.Step(
                    position: event.position, time: event.time, kind: .replacement,
                    description: "the event \(event.id.text) replaces it"
                        + (isDirect ? "" : " and others of its lane"),
                    replacement: EventStory.Replacement(id: event.id, type: event.type)),
                isDirect
            ))
    }

    // MARK: The end

    /// The story as of the last event.
    consuming func finished(at position: Position, in segment: String?) -> EventStory {
        let areDirect = replacements.contains(where: \.isDirect)
        let shown = replacements.filter { $0.isDirect || !areDirect }.map(\.step)
        if let index = steps.lastIndex(where: { $0.kind == .superseded }) {
            if shown.isEmpty { steps[index].description += ", and the server's state wins" }
            steps.insert(contentsOf: shown, at: index + 1)
        } else {
            steps += shown
        }
        return EventStory(
            id: id, position: position, segment: event == nil ? nil : segment, event: event,
            steps: steps, status: status)
    }

    private var status: EventStory.Status {
        guard let event else { return .removed }
        guard let entry = outbox.entry(at: event.position) else {
            if isRetracted { return .retracted }
            if !event.isOwn { return .received }
            if event.action != nil { return .settled }
            return event.isKnownType ? .local : .unknownType
        }
        switch entry.status {
        case .failed: return .parked(nextAttemptAt: entry.nextAttemptAt)
        case .conflict: return .conflict
        case .pending:
            let lane = EntityID(entry.lane)
            let ahead = outbox.entries.filter {
                $0.position < entry.position && EntityID($0.lane) == lane
            }
            return .pending(ahead: ahead.count, first: ahead.first)
        }
    }
}
