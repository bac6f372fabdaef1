// The random actions of the app, of another device and of the server while a request is in progress or the
// replayer waits. SimulatedNetwork and the replayer's `sleep` call `step`.

import DaybookOffline
import DaybookTestKit
import Foundation

extension History {
    /// Runs one random action, or none.
    func step() async {
        guard !isCalm, death == nil, failure == nil, let store else { return }
        do {
            guard draw(0...2) > 0 else { return }
            switch choices.draw({ $0.element(of: actions) }) {
            case .append: try await append(store)
            case .flush:
                try await store.events.flush()
                model.durable = await store.events.lastDurable
            case .scheduleDeath: if draw(0...1) == 1 { scheduleDeath() }
            case .checkpointOrCompact: try await checkpointOrCompact(store)
            case .noteOnOtherDevice: try await changeNoteOnOtherDevice()
            case .reusedID: isReusing = true
            case .token:
                tokens += 1
                server.changeToken(to: "token-\(tokens)")
                choices.count("server: token changed")
            case .image: takeImage()
            case .lateRequests: await network?.deliverAll()
            case .secondSync: if isSyncing { try await sync(again: true) }
            case .suspend:
                choices.count("client: suspended")
                appendStory("suspend and resume")
                try await store.events.suspend()
                try await store.events.resume()
                model.durable = await store.events.lastDurable
            }
        } catch {
            do { try expectDeath(by: error) } catch { failure = error }
        }
    }

    func append(_ store: OfflineStore) async throws {
        // Limited, so that syncing ends.
        guard model.events.count < Self.eventsMax else { return }
        var drafts: [EventDraft] = []
        for _ in 0..<draw(1...3) { drafts.append(try draft()) }
        let recorded = drafts.map { draft in
            HistoryModel.RecordedEvent(
                id: draft.id, lane: store.events.catalogue.lane(of: draft), json: draft.json ?? [],
                isTick: draft.type == HistoryModel.tickType)
        }
        if isSyncing { choices.count("client: appended while syncing") }
        let durability: Durability = draw(0...2) == 2 ? .relaxed : .durable
        appendStory("append \(drafts.count) \(durability)")
        if isReusing { try await reuseID(of: drafts[0]) }
        model.inFlight = recorded
        let results = try await store.events.append(contentsOf: drafts, durability: durability)
        for (result, event) in zip(results, recorded) { model.events[result.position] = event }
        model.inFlight = []
        if durability == .durable { model.durable = await store.events.lastDurable }
    }

    func draft() throws -> EventDraft {
        let subject = "\(draw(0...2))"
        let id = UUID(integer: ids.randomUUID())
        switch draw(0...5) {
        case 0, 1: return try EventDraft(CitySaved(userId: "u", cityId: subject), id: id)
        case 2: return try EventDraft(CityUnsaved(userId: "u", cityId: subject), id: id)
        case 3:
            return try EventDraft(
                NoteAdded(noteId: subject, cityId: "c", content: "\(draw(0...9))", createdBy: "u"),
                id: id)
        case 4:
            let base = draw(0...1) == 0 ? nil : lastEvent(of: "note:\(subject)")
            return try EventDraft(
                NoteUpdated(noteId: subject, content: "\(draw(0...9))", updatedBy: "u"), id: id,
                basedOn: base)
        default:
            return EventDraft(id: id, type: HistoryModel.tickType, data: .json(Array("{}".utf8)))
        }
    }

    func lastEvent(of lane: String) -> UUID? {
        model.events.filter { $0.value.lane == lane }.max { $0.key < $1.key }?.value.id
    }

    /// Stores a checkpoint, or flushes, seals the live segment and compacts.
    func checkpointOrCompact(_ store: OfflineStore) async throws {
        if draw(0...1) == 0 {
            choices.count("client: checkpoint")
            appendStory("checkpoint")
            try await store.events.checkpoint()
        } else {
            choices.count("client: compacted")
            appendStory("compact")
            try await store.events.flush()
            try store.events.log.roll()
            try await store.compact()
        }
        model.durable = await store.events.lastDurable
    }

    /// Changes a note on another device of the account, so that this one's changes may be in conflict.
    func changeNoteOnOtherDevice() async throws {
        appendStory("another device")
        let id = UUID(integer: ids.randomUUID())
        let draft = try EventDraft(
            NoteAdded(noteId: "\(draw(0...2))", cityId: "c", content: "theirs", createdBy: "v"),
            id: id)
        try await sendFromOtherDevice(draft, sequence: UInt64(model.foreign.count + 1))
    }

    /// Sends an event of another device with the id of a draft that this device is about to record.
    func reuseID(of draft: EventDraft) async throws {
        isReusing = false
        appendStory("another device uses \(draft.id)")
        try await sendFromOtherDevice(
            try EventDraft(
                CitySaved(userId: "v", cityId: "theirs"), id: draft.id),
            sequence: UInt64(model.foreign.count + 1))
    }

    func sendFromOtherDevice(_ draft: EventDraft, sequence: UInt64) async throws {
        var draft = draft
        draft.lane = "theirs"
        draft.time = Timestamp(milliseconds: clock.milliseconds)
        var line: [UInt8] = []
        LineEncoder.append(
            draft,
            LinePrefix(
                own: draft.id.integer, source: 0xDE7_1CE, at: Position(sequence)), to: &line)
        line.removeLast()
        model.foreign.insert(draft.id)
        try await server.appendFromOtherDevice([line])
    }
}
