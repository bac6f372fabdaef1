// The story of one event: when it was recorded, what the server has said of it, what somebody decided
// on it, and what it waits for. Put together while its log is read in order. Spec/operations/logtool.md, TOOL-22.

import DaybookOffline
import Foundation
import LogFormat

struct EventStory {
    /// What happened to it at one time.
    struct Step {
        var position: Position?
        var time: Timestamp?
        var what: What
        var detail: String
        /// What programs read beside these.
        var facts = ViewRow()
    }

    enum What: String {
        case recorded, replaces, base
        case removed
        case retry, parked, conflict, retried
        case applied, duplicate, settled
        case discarded, superseded, replacement, reinstated
        case now
    }

    private let id: UUID
    private var outbox = Outbox()
    /// Where it is, or was.
    private var position: Position?
    private var event: Event?
    private(set) var steps: [Step] = []
    private var lastAttempt: Attempt?
    private var lastRecord = Position.zero
    private var isTakenBack = false
    /// What was superseded together with it, itself included.
    private var superseded: Set<UUID> = []
    private var replacements: [(step: Step, isDirect: Bool)] = []

    /// What tells two attempts apart.
    private struct Attempt: Equatable {
        var outcome: SyncSettled.Outcome
        var retryCount: Int
        var time: Timestamp
    }

    /// Begins the story of an event.
    ///
    /// - Parameter removed: what is remembered of it, if compaction took it out.
    init(of id: UUID, removed: RemovedID?) {
        self.id = id
        guard let removed else { return }
        position = removed.position
        add(
            Step(
                position: removed.position, what: .removed,
                detail: "compaction took it out, since later events had replaced it"))
    }

    /// Whether the event is known.
    var isKnown: Bool { position != nil }

    private mutating func add(_ step: Step) { steps.append(step) }

    // MARK: Reading

    /// Takes in the next event of the log.
    mutating func fold(_ next: Event) {
        if next.id == id { begin(next) }
        let waited = position.map { outbox.entry(at: $0) != nil } ?? false
        outbox.fold(next)
        guard next.isOwn else { return }
        let json = next.content.json ?? []
        if next.type == SyncSettled.type {
            take(json, next, waited: waited)
        } else if let position, next.position > position {
            if next.type == EventsDiscarded.type {
                take(discards: json, next, position)
            } else if next.type == EventsReinstated.type {
                take(reinstates: json, next, position)
            } else {
                take(replacement: next)
            }
        }
    }

    private mutating func begin(_ event: Event) {
        self.event = event
        position = event.position
        let content = event.content
        var facts = ViewRow()
        facts.add("type", event.type)
        facts.add("subject", event.subject)
        facts.add("lane", event.lane)
        facts.add("source", "urn:uuid:\(event.source.text)")
        facts.add("sequence", Int(clamping: event.sequence))
        facts.add("own", event.isOwn)
        if case .base64(let text) = content.data {
            facts.add("data_base64", raw: text)
        } else {
            facts.add("data", raw: content.json)
        }
        let origin =
            event.isOwn
            ? "made here"
            : "made elsewhere, as event \(event.sequence) of urn:uuid:\(event.source.text)"
        let subject = event.subject.map { " about \($0)" } ?? ""
        add(
            Step(
                position: event.position, time: event.time, what: .recorded,
                detail: "\(event.type)\(subject), in the lane \(event.lane), \(origin)",
                facts: facts))
        if let cause = content.string("causationid") {
            add(Step(what: .replaces, detail: "it stands for the event \(cause)", facts: id(cause)))
        }
        if let base = content.string("baseid") {
            add(
                Step(
                    what: .base, detail: "it was made on top of the event \(base)", facts: id(base))
            )
        }
    }

    private func id(_ text: String) -> ViewRow {
        var facts = ViewRow()
        facts.add("id", text)
        return facts
    }

    // MARK: Answers

    private mutating func take(_ json: [UInt8], _ event: Event, waited: Bool) {
        guard let record = try? SyncSettled(json: json), record.by == event.source else { return }
        let before = lastRecord
        lastRecord = event.position
        if let replaces = record.replaces {
            // Made without knowing the records that came after: it changes nothing.
            guard before <= replaces, replaces < event.position else { return }
        }
        guard let position, waited || self.event == nil else { return }
        for entry in record.entries
        where entry.position == position.rawValue && entry.id == id {
            take(entry, of: record, event)
        }
        guard waited, outbox.entry(at: position) == nil else { return }
        var step = Step(
            position: event.position, time: event.time, what: .applied,
            detail: "the server has applied it")
        if record.replaces != nil {
            step.what = .settled
            step.time = nil
            step.detail = "the server has it; when it said so was summed up with other records"
        } else if record.duplicate.contains(where: { $0.contains(position.rawValue) }) {
            step.what = .duplicate
            step.detail = "the server had it already"
        }
        add(step)
    }

    private mutating func take(
        _ entry: SyncSettled.Entry, of record: SyncSettled, _ event: Event
    ) {
        let attempt = Attempt(
            outcome: entry.outcome, retryCount: entry.retryCount, time: entry.at ?? event.time)
        // What a folded record says of an attempt that is still on record itself.
        guard attempt != lastAttempt else { return }
        lastAttempt = attempt
        let words = [entry.code, entry.detail].compactMap { $0 }.joined(separator: ": ")
        let said = words.isEmpty ? "" : ": " + words
        var step = Step(position: event.position, time: attempt.time, what: .parked, detail: "")
        switch entry.outcome {
        case .retry where entry.retryCount == 0:
            step.what = .retried
            step.detail = "somebody had it sent once more"
        case .retry:
            step.what = .retry
            step.detail = "the server said not now, retry \(entry.retryCount)\(said)"
        case .parked:
            step.detail = "it was parked\(said)"
        case .conflict:
            step.what = .conflict
            step.detail = "the server holds something newer\(said)"
        }
        if step.what != .retried {
            step.facts.add("code", entry.code)
            step.facts.add("message", entry.detail)
            step.facts.add("retryCount", entry.retryCount)
        }
        if record.replaces != nil { step.detail += " (earlier attempts were summed up)" }
        add(step)
    }

    // MARK: Decisions

    private mutating func take(discards json: [UInt8], _ event: Event, _ position: Position) {
        guard let record = try? EventsDiscarded(json: json), record.by == event.source,
            record.events.contains(where: { $0.position == position }), !isTakenBack
        else { return }
        isTakenBack = true
        let isSuperseded = record.reason == .superseded
        if isSuperseded { superseded.formUnion(record.events.map(\.id)) }
        add(
            Step(
                position: event.position, time: event.time,
                what: isSuperseded ? .superseded : .discarded,
                detail: isSuperseded
                    ? "a conflict was decided: it counts as never recorded"
                    : "somebody did without it: it counts as never recorded"))
    }

    private mutating func take(reinstates json: [UInt8], _ event: Event, _ position: Position) {
        guard let record = try? EventsReinstated(json: json), record.by == event.source,
            record.events.contains(where: { $0.position == position }), isTakenBack
        else { return }
        isTakenBack = false
        add(
            Step(
                position: event.position, time: event.time, what: .reinstated,
                detail: "the server turned out to hold it: it counts again"))
    }

    private mutating func take(replacement event: Event) {
        guard let cause = event.content.string("causationid").flatMap(UUID.init(text:)),
            cause == id || superseded.contains(cause)
        else { return }
        var facts = id(event.id.text)
        facts.add("type", event.type)
        let isDirect = cause == id
        replacements.append(
            (
                Step(
                    position: event.position, time: event.time, what: .replacement,
                    detail: "the event \(event.id.text) stands for it"
                        + (isDirect ? "" : " and others of its lane"), facts: facts),
                isDirect
            ))
    }

    // MARK: The end

    /// Ends the story with how things stand.
    mutating func finish() {
        let areDirect = replacements.contains(where: \.isDirect)
        let shown = replacements.filter { $0.isDirect || !areDirect }.map(\.step)
        if let index = steps.lastIndex(where: { $0.what == .superseded }) {
            if shown.isEmpty { steps[index].detail += ", and what the server holds stands" }
            steps.insert(contentsOf: shown, at: index + 1)
        } else {
            steps += shown
        }
        guard let event else { return }
        add(present(event))
    }

    private func present(_ event: Event) -> Step {
        guard let entry = outbox.entry(at: event.position) else {
            let isSettled = event.isOwn && event.action != nil && !isTakenBack
            return present(isSettled ? "SUCCESS" : nil, rest(event))
        }
        switch entry.status {
        case .failed:
            guard let next = entry.nextAttemptAt else {
                return present("FAILED", "it is parked until somebody decides: see logtool parked")
            }
            var step = present(
                "FAILED",
                "it is parked, since its retries are used up; a device that syncs sends it again "
                    + "at \(next)")
            step.facts.add("nextAttemptAt", next.description)
            return step
        case .conflict:
            return present("CONFLICT", "it waits until its conflict is decided: see logtool parked")
        case .pending: break
        }
        let lane = EntityID(entry.lane)
        let ahead = outbox.entries().filter {
            $0.position < entry.position && EntityID($0.lane) == lane
        }
        guard let first = ahead.first else {
            return present("PENDING", "it waits for the server")
        }
        switch first.status {
        case .pending:
            return present(
                "PENDING", "it waits for the server, with \(ahead.count) ahead of it in its lane",
                behind: first)
        case .failed, .conflict:
            let state = first.status == .failed ? "parked" : "in conflict"
            return present(
                "PENDING",
                "it waits behind the event \(first.id.text) at position \(first.position), which is "
                    + state, behind: first)
        }
    }

    private func present(
        _ status: String?, _ detail: String, behind first: OutboxEntry? = nil
    ) -> Step {
        var step = Step(what: .now, detail: detail)
        step.facts.add("status", status)
        if let first { step.facts.add("behind", first.id.text) }
        return step
    }

    /// How an event stands that does not wait.
    private func rest(_ event: Event) -> String {
        if isTakenBack { return "it counts as never recorded" }
        if !event.isOwn { return "it came from elsewhere, so there is nothing to send" }
        if event.action != nil { return "the server has it" }
        return event.isKnownType
            ? "its type stays on the device" : "its type is not known here, and is not sent"
    }
}
