// The model of a store: an array of lines, and the state that follows from it. As simple as possible, so that
// it is evidently correct. StoreHistory applies each command to it, and compares the store with it.

import DaybookOffline
import Foundation

/// The expected content of a store.
package struct StoreModel: Sendable {
    /// The server's last verdict on an event that it did not settle.
    struct Answer: Sendable {
        var status: OutboxEntry.Status
        var retryCount: Int
        var at: Int64
        var message: String?
        /// Whether the five retries are used up, and no other verdict has come since.
        var isExhausted = false
    }

    /// All accepted lines by position, those that compaction removed included.
    private(set) var lines: [ModelLine] = []
    /// The number of lines that are known to be durable.
    var durable = 0
    /// The number of lines at the end of each batch. A crash loses whole batches only.
    private var batchEnds: Set<Int> = [0]
    private(set) var views = ModelViews()
    /// The app's own view.
    private(set) var tally = TallyView()
    /// The index of the newest line with each id.
    private var indexes: [UUID: Int] = [:]
    /// The positions of removed lines whose ids have expired.
    private var forgotten: Set<UInt64> = []
    private(set) var settled: Set<UInt64> = []
    private(set) var answers: [UInt64: Answer] = [:]
    var compactedThrough: UInt64 = 0

    /// The incarnation of the store.
    var source = UUID()
    /// Whether the app that has the store open has a rule for its own type.
    var knowsTrips = true
    /// Whether the log has recorded that rule (EVT-19).
    private var hasTripRule = false
    /// The device's clock.
    var now: Int64 = 1_800_000_000_000
    /// The correction of the device's clock by the server's.
    var offset: Int64 = 0
    /// The store's records of replies: position, time, and the recorded offset.
    private var contacts: [(position: Int, time: Int64, offset: Int64)] = []

    /// The time for which removed ids are known, in milliseconds.
    static let memory: Int64 = 90 * 24 * 3_600_000

    init() {}

    // MARK: Appending

    /// The expected result of an append.
    enum Expected {
        /// The position of each draft, and whether it is new.
        case recorded([(position: UInt64, isNew: Bool)])
        /// One of these codes.
        case refused(Set<EventError.Code>)
    }

    /// Appends a batch, all or nothing. An event without a time gets that of the log's clock, or, if it
    /// replaces a value and would lose against it, the next higher time (VIEW-27). Of new events, unlike those of
    /// another log's history, a change of a deleted note is refused.
    mutating func append(
        _ drafts: [ModelDraft], replacing replaced: ModelLWWTimestamp? = nil, areNew: Bool = false
    ) -> Expected {
        var refusals = Set(drafts.compactMap(\.refusal))
        var new: [ModelLine] = []
        var results: [(position: UInt64, isNew: Bool)] = []
        var floor = times
        for draft in drafts where draft.refusal == nil {
            if let index = indexOfKnownLine(draft.draft.id) {
                let line = lines[index]
                guard isSame(line, draft) else {
                    refusals.insert(.idReused)
                    continue
                }
                results.append((line.position, false))
            } else if let twin = new.first(where: { $0.id == draft.draft.id }) {
                // Within a batch the drafts are compared: the later one may omit the time.
                guard
                    isSame(twin, draft)
                        && (draft.draft.time == nil || twin.draft.draft.time == draft.draft.time)
                else {
                    refusals.insert(.idReused)
                    continue
                }
                results.append((twin.position, false))
            } else if areNew, changesDeletedNote(draft) {
                refusals.insert(.refused)
            } else {
                let position = UInt64(lines.count + new.count + 1)
                var time = draft.draft.time?.milliseconds ?? assignedTime(after: floor)
                if let replaced, line(draft, position, time).lwwTimestamp <= replaced {
                    time = replaced.time + 1
                }
                floor.insert(time)
                let line = line(draft, position, time)
                let bytes = line.text.count
                if bytes > (action(of: line) == nil ? 1_048_576 : 262_144) {
                    refusals.insert(.tooLarge)
                }
                new.append(line)
                results.append((line.position, true))
            }
        }
        if new.reduce(0, { $0 + $1.text.count + 1 }) > 4_194_304 { refusals.insert(.tooLarge) }
        guard refusals.isEmpty else { return .refused(refusals) }
        for line in new { appendLine(line) }
        if knowsTrips, new.contains(where: \.draft.isTrip) { hasTripRule = true }
        batchEnds.insert(lines.count)
        return .recorded(results)
    }

    private func changesDeletedNote(_ draft: ModelDraft) -> Bool {
        switch draft.fact {
        case .noteAdded(let note, _, _, _), .noteUpdated(let note, _, _): views.isDeleted(note)
        default: false
        }
    }

    private func line(_ draft: ModelDraft, _ position: UInt64, _ time: Int64) -> ModelLine {
        let (subject, lane) = subjectAndLane(of: draft)
        return ModelLine(
            draft, position: position, source: source, subject: subject, lane: lane, time: time)
    }

    private func subjectAndLane(of draft: ModelDraft) -> (subject: Text?, lane: Text) {
        if let fromRule = draft.fact.subjectAndLane { return fromRule }
        if knowsTrips, case .trip(let name) = draft.fact {
            return (name, Text("trip:" + name.string))
        }
        let subject = draft.draft.subject.map(Text.init)
        return (subject, draft.draft.lane.map(Text.init) ?? subject ?? draft.type)
    }

    private mutating func appendLine(_ line: ModelLine) {
        indexes[line.id] = lines.count
        lines.append(line)
        views.fold(line)
        tally.countEvent(line.id, line.position)
    }

    /// Replaces the id and the extensions of a line by those that the store chose.
    mutating func replaceID(ofLineAt index: Int, _ id: UUID, extensions: [EventDraft.Extension]) {
        var draft = lines[index].draft
        draft.draft.id = id
        draft.draft.extensions = extensions
        indexes[lines[index].id] = nil
        indexes[id] = index
        lines[index] = line(draft, lines[index].position, lines[index].time)
        tally = TallyView()
        for line in lines { tally.countEvent(line.id, line.position) }
    }

    /// The index of the line with an id; nil if the id is unknown or its removal has expired.
    func indexOfKnownLine(_ id: UUID) -> Int? {
        guard let index = indexes[id], !forgotten.contains(lines[index].position) else {
            return nil
        }
        if let removedAt = lines[index].removedAt, now - removedAt >= Self.memory { return nil }
        return index
    }

    /// Whether any line has had the id, removed ones included.
    func everHadID(_ id: UUID) -> Bool { indexes[id] != nil }

    /// LINE-6, for the drafts of a StoreHistory.
    private func isSame(_ line: ModelLine, _ draft: ModelDraft) -> Bool {
        let old = line.draft
        // The current rule also applies to events that were recorded before it.
        let subject = hasRule(draft) ? subjectAndLane(of: old).subject : line.subject
        guard old.type == draft.type, subject == subjectAndLane(of: draft).subject,
            old.draft.extensions == draft.draft.extensions,
            old.draft.dataContentType == draft.draft.dataContentType,
            draft.draft.time.map({ $0.milliseconds == line.time }) ?? true,
            isSameData(old.draft.data, draft.draft.data)
        else { return false }
        // Removed ids are stored without the lane, and a type with a rule computes it.
        return line.removedAt != nil || hasRule(draft) || draft.draft.lane == nil
            || draft.draft.lane.map(Text.init) == line.lane
    }

    private func isSameData(_ one: EventDraft.Payload, _ other: EventDraft.Payload) -> Bool {
        guard case .json(let one) = one, case .json(let other) = other else { return one == other }
        let whiteSpace: Set<UInt8> = [10, 13, 32, 9]
        // The histories change white space after the first brace only.
        return one.first == other.first
            && one.dropFirst().drop { whiteSpace.contains($0) }
                .elementsEqual(other.dropFirst().drop { whiteSpace.contains($0) })
    }

    private func hasRule(_ draft: ModelDraft) -> Bool {
        draft.fact.subjectAndLane != nil || knowsTrips && draft.isTrip
    }

    // MARK: Times

    /// The times of all lines.
    private var times: Set<Int64> { Set(lines.map(\.time)) }

    /// LINE-5: the clock, or the newest time that is at most five minutes ahead of it.
    private func assignedTime(after times: Set<Int64>) -> Int64 {
        let clock = now + offset
        let sorted = times.sorted()
        let newest = sorted.suffix(64)
        let bound = clock + 300_000
        let older = sorted.dropLast(64).last
        let floor = newest.last { $0 <= bound } ?? older.flatMap { $0 <= bound ? $0 : nil }
        return max(clock, floor ?? .min)
    }

    // MARK: The outbox

    func action(of line: ModelLine) -> String? {
        line.draft.isTrip
            ? (knowsTrips || hasTripRule ? "PLAN_TRIP" : nil) : line.draft.fact.action
    }

    /// The shipped events that are not settled, by position.
    var outbox: [ModelLine] {
        lines.filter { action(of: $0) != nil && !settled.contains($0.position) }
    }

    mutating func settleEvent(at position: UInt64) {
        settled.insert(position)
        answers[position] = nil
    }

    mutating func setAnswer(_ answer: Answer, at position: UInt64) { answers[position] = answer }

    // MARK: Compaction, crashes, past states

    mutating func removeLine(at position: UInt64) { lines[Int(position) - 1].removedAt = now }

    /// Forgets the ids of lines that were removed at least 90 days ago, as a compaction does.
    mutating func forgetExpiredIDs() {
        for line in lines {
            if let removedAt = line.removedAt, now - removedAt >= Self.memory {
                forgotten.insert(line.position)
            }
        }
    }

    var hasRemoved: Bool { lines.contains { $0.removedAt != nil } }
    var storedLines: [ModelLine] { lines.filter { $0.removedAt == nil } }

    /// Whether a log can have this number of lines after a crash.
    func canEnd(at count: Int) -> Bool {
        (durable...lines.count).contains(count) && (count == durable || batchEnds.contains(count))
    }

    /// Notes a record of a reply. A folded record, or a reply without a date, does not change the recorded
    /// offset.
    mutating func recordContact(at time: Int64, hasDate: Bool = true) {
        let recordedOffset = contacts.last?.offset ?? 0
        let isChanged = hasDate && abs(offset - recordedOffset) > 5_000
        contacts.append((lines.count, time, isChanged ? offset : recordedOffset))
    }

    /// CLOCK-2: restores the offset when the log is opened.
    mutating func restoreClock() {
        offset = 0
        guard let last = contacts.last, last.offset != 0 else { return }
        let present = now - last.time
        let corrected = present + last.offset
        if corrected >= 0, present < 0 || corrected < present { offset = last.offset }
    }

    /// Drops the lines that a crash has lost.
    mutating func truncate(to count: Int) {
        contacts = contacts.filter { $0.position <= count }
        batchEnds = batchEnds.filter { $0 <= count }
        durable = count
        guard count < lines.count else { return }
        let remaining = lines[..<count]
        lines = []
        indexes = [:]
        views = ModelViews()
        tally = TallyView()
        for line in remaining { appendLine(line) }
    }

    /// The views after the first `count` lines.
    func views(after count: Int) -> ModelViews {
        var views = ModelViews()
        for line in lines.prefix(count) { views.fold(line) }
        return views
    }
}
