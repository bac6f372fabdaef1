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
        let catalogue = reader.adding(recordedRulesTo: catalogue, fileSystem)
        // Compaction may remove the event between the two reads: then the second pass finds the id.
        for _ in 0..<2 {
            let removed = try reader.removed(id: id.integer, now: now)?.position
            let (stories, tornTail) = try read(
                StoriesReader([StoryReader(of: id, removedFrom: removed)]), reader, fileSystem,
                catalogue, through: last, body)
            if let story = stories[id] { return (story, tornTail) }
        }
        return nil
    }

    /// Reads a log once for the stories of several events that are in it.
    ///
    /// - Parameter last: the last position to read.
    /// - Returns: the stories by id, without those of events that are not in the log.
    /// - Throws: `LogError` as `LogReader.forEachEvent`.
    /// - Complexity: O(bytes of the log + stories × (records + events of an outbox)).
    package static func read(
        of ids: [UUID], in directory: String, _ fileSystem: any FileSystem,
        catalogue: EventCatalogue, through last: Position
    ) throws -> [UUID: EventStory] {
        let reader = LogReader(directory, fileSystem: fileSystem)
        return try read(
            StoriesReader(ids.map { StoryReader(of: $0, removedFrom: nil) }), reader, fileSystem,
            reader.adding(recordedRulesTo: catalogue, fileSystem), through: last
        ) { _ in }.stories
    }

    private static func read(
        _ stories: consuming StoriesReader, _ reader: LogReader, _ fileSystem: any FileSystem,
        _ catalogue: EventCatalogue, through last: Position, _ body: (Event) throws -> Void
    ) throws -> (stories: [UUID: EventStory], tornTail: TornTail?) {
        var stories = stories
        let outcome = try reader.forEachEvent(catalogue: catalogue) { event in
            stories.fold(event)
            try body(event)
            return event.position < last
        }
        let segments = try LogDirectory.segments(of: reader.directory, fileSystem)
        return (stories.finished(in: segments), outcome.tornTail)
    }
}

/// Folds the events of a log into the stories of some.
private struct StoriesReader {
    private var outbox = Outbox()
    private var readers: [UUID: StoryReader]
    private var lastRecord = Position.zero

    init(_ readers: [StoryReader]) {
        self.readers = Dictionary(readers.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
    }

    /// Folds the next event of the log.
    mutating func fold(_ next: Event) {
        readers[next.id]?.setEvent(next)
        guard next.isOwn, LogRecord.isType(next.type) || next.content.causeID != nil else {
            return outbox.fold(next)
        }
        let json = next.content.json ?? []
        switch next.type {
        case SyncSettled.type: fold(settled: json, next)
        case EventsDiscarded.type:
            outbox.fold(next)
            guard let record = try? EventsDiscarded(json: json) else { return }
            forEachReader { $0.fold(record, next) }
        case EventsReinstated.type:
            outbox.fold(next)
            guard let record = try? EventsReinstated(json: json) else { return }
            forEachReader { $0.fold(record, next) }
        default:
            outbox.fold(next)
            forEachReader { $0.fold(replacement: next) }
        }
    }

    private mutating func forEachReader(_ body: (inout StoryReader) -> Void) {
        for index in readers.values.indices { body(&readers.values[index]) }
    }

    private mutating func fold(settled json: [UInt8], _ event: Event) {
        let waiting = readers.filter { _, reader in
            reader.position.map { outbox.entry(at: $0) != nil } ?? false
        }
        outbox.fold(event)
        guard let record = try? SyncSettled(json: json), Outbox.isOwn(record, event) else { return }
        let last = lastRecord
        lastRecord = event.position
        if let replaces = record.replaces {
            // It was computed before the records that came after `replaces`, so it has no effect.
            guard last <= replaces, replaces < event.position else { return }
        }
        let settled = outbox
        forEachReader { reader in
            guard let position = reader.position else { return }
            reader.fold(
                record, event, at: position, wasWaiting: waiting[reader.id] != nil,
                isWaiting: settled.entry(at: position) != nil)
        }
    }

    /// The stories as of the last event, without those of events that are not in the log.
    consuming func finished(in segments: [String]) -> [UUID: EventStory] {
        let outbox = outbox
        return readers.compactMapValues { reader in
            guard let position = reader.position else { return nil }
            let segment = segments.last { SegmentName.base($0).map { $0 <= position } ?? false }
            return reader.finished(at: position, in: segment, outbox)
        }
    }
}

/// The story of one event, as far as it was read.
private struct StoryReader {
    let id: UUID
    /// The event's position; nil until the event was read.
    private(set) var position: Position?
    private var event: Event?
    private var steps: [EventStory.Step] = []
    private var lastAttempt: Attempt?
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

    /// Stores the event itself and its position.
    mutating func setEvent(_ event: Event) { (self.event, position) = (event, event.position) }

    private mutating func appendStep(
        _ kind: EventStory.Kind, _ event: Event, at time: Timestamp?, _ description: String
    ) {
        steps.append(
            EventStory.Step(
                position: event.position, time: time, kind: kind, description: description))
    }

    // MARK: Verdicts

    /// - Parameters:
    ///   - wasWaiting: true if the event was in the outbox before the record, and `isWaiting` after it.
    mutating func fold(
        _ record: SyncSettled, _ event: Event, at position: Position, wasWaiting: Bool,
        isWaiting: Bool
    ) {
        guard wasWaiting || self.event == nil else { return }
        for entry in record.entries
        where entry.position == position.rawValue && entry.id == id {
            fold(entry, of: record, event)
        }
        guard wasWaiting, !isWaiting else { return }
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

    /// True if a decision, recorded by this log, names the event.
    private func isNamed(in events: [EventTarget], by source: UUID, _ record: Event) -> Bool {
        guard let position, record.position > position, source == record.source else {
            return false
        }
        return events.contains { $0.position == position }
    }

    mutating func fold(_ record: EventsDiscarded, _ event: Event) {
        guard isNamed(in: record.events, by: record.by, event), !isRetracted else { return }
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

    mutating func fold(_ record: EventsReinstated, _ event: Event) {
        guard isNamed(in: record.events, by: record.by, event), isRetracted else { return }
        isRetracted = false
        appendStep(
            .reinstated, event, at: event.time,
            "the server turned out to have it: it counts again")
    }

    mutating func fold(replacement event: Event) {
        guard let position, event.position > position, let cause = event.content.causeID,
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
    consuming func finished(
        at position: Position, in segment: String?, _ outbox: Outbox
    ) -> EventStory {
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
            steps: steps, status: status(in: outbox))
    }

    private func status(in outbox: Outbox) -> EventStory.Status {
        guard let event else { return .removed }
        guard let entry = outbox.entry(at: event.position) else {
            if isRetracted { return .retracted }
            if !event.isOwn { return .received }
            if event.action != nil { return .settled }
            return event.isKnownType || event.hasRecordedRule ? .local : .unknownType
        }
        switch entry.status {
        case .failed:
            guard entry.parking == .setAside, let next = entry.nextAttemptAt else {
                return .parked(nextAttemptAt: entry.nextAttemptAt)
            }
            return .setAside(nextAttemptAt: next)
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
