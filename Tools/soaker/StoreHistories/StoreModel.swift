// The model of a store: an array of lines and what follows from it. As plain as it can be, so that
// one can see that it is right. Told by StoreHistory what was done; asked what must be.

import DaybookOffline
import Foundation

/// What a store must hold.
package struct StoreModel: Sendable {
    /// What the server has said of an event that it did not settle.
    struct Answer: Sendable {
        var status: OutboxEntry.Status
        var retryCount: Int
        var at: Int64
        var message: String?
        /// The five retries are used up, and the server has not said anything else since.
        var isExhausted = false
    }

    /// All lines that were accepted, by position; those that were taken out, too.
    private(set) var lines: [ModelLine] = []
    /// How many of them are certainly on the disk.
    var durable = 0
    /// Where batches end: what is lost goes in whole batches.
    private var ends: Set<Int> = [0]
    private(set) var views = ModelViews()
    /// The app's own view.
    private(set) var tally = TallyView()
    private var newest: [UUID: Int] = [:]
    /// Ids that compaction has forgotten.
    private var forgotten: Set<UInt64> = []
    private(set) var settled: Set<UInt64> = []
    private(set) var answers: [UInt64: Answer] = [:]
    var compactedThrough: UInt64 = 0

    /// The name under which events are recorded.
    var source = UUID()
    /// Whether the release that has the store open knows the app's own types.
    var knowsTrips = true
    /// The device's clock, and what the server says it should say.
    var now: Int64 = 1_800_000_000_000
    var offset: Int64 = 0
    /// The log's own records: where, when, and the offset that was on record then.
    private var contacts: [(position: Int, time: Int64, offset: Int64)] = []

    /// How long removed ids are known, in milliseconds.
    static let memory: Int64 = 90 * 24 * 3_600_000

    init() {}

    // MARK: Appending

    /// What must come of an append.
    enum Expected {
        /// Position, and whether it is new, for each draft.
        case recorded([(position: UInt64, isNew: Bool)])
        /// One of these.
        case refused(Set<EventError.Code>)
    }

    /// Takes in a batch, all or nothing. Times are those that the log's clock gives, or, for an event
    /// that replaces a value, the next one at which it counts more (VIEW-27).
    mutating func append(_ drafts: [ModelDraft], replacing replaced: ModelStamp? = nil) -> Expected
    {
        var refusals = Set(drafts.compactMap(\.refusal))
        var new: [ModelLine] = []
        var results: [(position: UInt64, isNew: Bool)] = []
        var floor = times
        for draft in drafts where draft.refusal == nil {
            if let index = known(draft.draft.id) {
                let line = lines[index]
                guard isSame(line, draft) else {
                    refusals.insert(.idReused)
                    continue
                }
                results.append((line.position, false))
            } else if let twin = new.first(where: { $0.id == draft.draft.id }) {
                // Compared are the drafts: what a newcomer leaves open, the earlier one may say.
                guard
                    isSame(twin, draft)
                        && (draft.draft.time == nil || twin.draft.draft.time == draft.draft.time)
                else {
                    refusals.insert(.idReused)
                    continue
                }
                results.append((twin.position, false))
            } else {
                let position = UInt64(lines.count + new.count + 1)
                var time = draft.draft.time?.milliseconds ?? assigned(floor)
                if let replaced, line(draft, position, time).stamp <= replaced {
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
        for line in new { add(line) }
        ends.insert(lines.count)
        return .recorded(results)
    }

    private func line(_ draft: ModelDraft, _ position: UInt64, _ time: Int64) -> ModelLine {
        let place = place(draft)
        return ModelLine(
            draft, position: position, source: source, subject: place.subject, lane: place.lane,
            time: time)
    }

    private func place(_ draft: ModelDraft) -> (subject: Text?, lane: Text) {
        if let place = draft.fact.place { return place }
        if knowsTrips, case .trip(let name) = draft.fact {
            return (name, Text("trip:" + name.string))
        }
        let subject = draft.draft.subject.map(Text.init)
        return (subject, draft.draft.lane.map(Text.init) ?? subject ?? draft.type)
    }

    private mutating func add(_ line: ModelLine) {
        newest[line.id] = lines.count
        lines.append(line)
        views.add(line)
        tally.add(line.id, line.position)
    }

    /// Gives the last line the id that the store has chosen.
    mutating func name(_ index: Int, _ id: UUID, extensions: [EventDraft.Extension]) {
        var draft = lines[index].draft
        draft.draft.id = id
        draft.draft.extensions = extensions
        newest[lines[index].id] = nil
        newest[id] = index
        lines[index] = line(draft, lines[index].position, lines[index].time)
        tally = TallyView()
        for line in lines { tally.add(line.id, line.position) }
    }

    /// The index of the line with an id, if the log still knows it.
    func known(_ id: UUID) -> Int? {
        guard let index = newest[id], !forgotten.contains(lines[index].position) else { return nil }
        if let removedAt = lines[index].removedAt, now - removedAt >= Self.memory { return nil }
        return index
    }

    /// Whether a line ever had an id.
    func had(_ id: UUID) -> Bool { newest[id] != nil }

    /// LINE-6, for drafts that this history makes: data are the same if what they say is.
    private func isSame(_ line: ModelLine, _ draft: ModelDraft) -> Bool {
        let old = line.draft
        // A rule that there is now applies to what was recorded before, too.
        let subject = hasRule(draft) ? place(old).subject : line.subject
        guard old.type == draft.type, subject == place(draft).subject,
            old.draft.extensions == draft.draft.extensions,
            old.draft.dataContentType == draft.draft.dataContentType,
            draft.draft.time.map({ $0.milliseconds == line.time }) ?? true,
            isSameData(old.draft.data, draft.draft.data)
        else { return false }
        // What was taken out is remembered without its lane; known types make their own.
        return line.removedAt != nil || hasRule(draft) || draft.draft.lane == nil
            || draft.draft.lane.map(Text.init) == line.lane
    }

    private func isSameData(_ one: EventDraft.Payload, _ other: EventDraft.Payload) -> Bool {
        guard case .json(let one) = one, case .json(let other) = other else { return one == other }
        let space: Set<UInt8> = [10, 13, 32, 9]
        // The histories change space behind the first brace only.
        return one.first == other.first
            && one.dropFirst().drop { space.contains($0) }
                .elementsEqual(other.dropFirst().drop { space.contains($0) })
    }

    private func hasRule(_ draft: ModelDraft) -> Bool {
        draft.fact.place != nil || knowsTrips && draft.isTrip
    }

    // MARK: Times

    /// The times of all lines.
    private var times: Set<Int64> { Set(lines.map(\.time)) }

    /// LINE-5: the clock, or the newest time that is at most five minutes ahead of it.
    private func assigned(_ times: Set<Int64>) -> Int64 {
        let clock = now + offset
        let sorted = times.sorted()
        let newest = sorted.suffix(64)
        let bound = clock + 300_000
        let rest = sorted.dropLast(64).last
        let known = newest.last { $0 <= bound } ?? rest.flatMap { $0 <= bound ? $0 : nil }
        return max(clock, known ?? .min)
    }

    // MARK: The outbox

    func action(of line: ModelLine) -> String? {
        line.draft.isTrip ? (knowsTrips ? "PLAN_TRIP" : nil) : line.draft.fact.action
    }

    /// What is not settled, by position.
    var outbox: [ModelLine] {
        lines.filter { action(of: $0) != nil && !settled.contains($0.position) }
    }

    mutating func settle(_ position: UInt64) {
        settled.insert(position)
        answers[position] = nil
    }

    mutating func set(_ answer: Answer, at position: UInt64) { answers[position] = answer }

    // MARK: Compaction, loss, time travel

    mutating func remove(_ position: UInt64) { lines[Int(position) - 1].removedAt = now }

    /// A compaction drops what it has remembered for too long.
    mutating func forget() {
        for line in lines {
            if let removedAt = line.removedAt, now - removedAt >= Self.memory {
                forgotten.insert(line.position)
            }
        }
    }

    var hasRemoved: Bool { lines.contains { $0.removedAt != nil } }
    var kept: [ModelLine] { lines.filter { $0.removedAt == nil } }

    /// Whether so many lines can be what is left when the process ends.
    func canEnd(at count: Int) -> Bool {
        (durable...lines.count).contains(count) && (count == durable || ends.contains(count))
    }

    /// The server was heard of. A folded record tells nothing new of the clock.
    mutating func hear(at time: Int64, tellsClock: Bool = true) {
        let known = contacts.last?.offset ?? 0
        let isNews = tellsClock && abs(offset - known) > 5_000
        contacts.append((lines.count, time, isNews ? offset : known))
    }

    /// CLOCK-2: what an opened log believes of its clock.
    mutating func restoreClock() {
        offset = 0
        guard let last = contacts.last, last.offset != 0 else { return }
        let present = now - last.time
        let corrected = present + last.offset
        if corrected >= 0, present < 0 || corrected < present { offset = last.offset }
    }

    /// Only so many lines were on the disk.
    mutating func cut(to count: Int) {
        contacts = contacts.filter { $0.position <= count }
        ends = ends.filter { $0 <= count }
        durable = count
        guard count < lines.count else { return }
        let left = lines[..<count]
        lines = []
        newest = [:]
        views = ModelViews()
        tally = TallyView()
        for line in left { add(line) }
    }

    /// The views after so many lines.
    func views(after count: Int) -> ModelViews {
        var views = ModelViews()
        for line in lines.prefix(count) { views.add(line) }
        return views
    }
}
