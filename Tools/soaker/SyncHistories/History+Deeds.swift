// What the rest of the world does while a request is under way, or the replayer waits: one deed at a
// time, drawn. Part of History; called by SimulatedNetwork and by the replayer's waits.

import DaybookOffline
import DaybookTestKit
import Foundation

extension History {
    /// Something happens, or nothing.
    func step() async {
        guard !isCalm, death == nil, failure == nil, let store else { return }
        do {
            guard draw(0...2) > 0 else { return }
            switch choices.draw({ $0.element(of: deeds) }) {
            case .append: try await append(store)
            case .flush:
                try await store.events.flush()
                model.durable = await store.events.lastDurable
            case .doom: if draw(0...1) == 1 { doom() }
            case .tidy: try await tidy(store)
            case .note: try await otherDevice()
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
                tell("suspend and resume")
                try await store.events.suspend()
                try await store.events.resume()
                model.durable = await store.events.lastDurable
            }
        } catch {
            do { try died(of: error) } catch { failure = error }
        }
    }

    func append(_ store: OfflineStore) async throws {
        // Whoever goes on recording is never done with syncing.
        guard model.events.count < Self.eventsMax else { return }
        var drafts: [EventDraft] = []
        for _ in 0..<draw(1...3) { drafts.append(try draft()) }
        let known = drafts.map { draft in
            HistoryModel.Known(
                id: draft.id, lane: store.events.catalogue.lane(of: draft), json: draft.json ?? [],
                isTick: draft.type == HistoryModel.tickType)
        }
        if isSyncing { choices.count("client: appended while syncing") }
        let durability: Durability = draw(0...2) == 2 ? .relaxed : .durable
        tell("append \(drafts.count) \(durability)")
        if isReusing { try await reuse(drafts[0]) }
        model.inFlight = known
        let places = try await store.events.append(drafts, durability: durability)
        for (place, known) in zip(places, known) { model.events[place.position] = known }
        model.inFlight = []
        if durability == .durable { model.durable = await store.events.lastDurable }
    }

    func draft() throws -> EventDraft {
        let place = "\(draw(0...2))"
        let id = UUID(integer: ids.randomUUID())
        switch draw(0...5) {
        case 0, 1: return try EventDraft(CitySaved(userId: "u", cityId: place), id: id)
        case 2: return try EventDraft(CityUnsaved(userId: "u", cityId: place), id: id)
        case 3:
            return try EventDraft(
                NoteAdded(noteId: place, cityId: "c", content: "\(draw(0...9))", createdBy: "u"),
                id: id)
        case 4:
            let base = draw(0...1) == 0 ? nil : lastEvent(of: "note:\(place)")
            return try EventDraft(
                NoteUpdated(noteId: place, content: "\(draw(0...9))", updatedBy: "u"), id: id,
                basedOn: base)
        default:
            return EventDraft(id: id, type: HistoryModel.tickType, data: .json(Array("{}".utf8)))
        }
    }

    func lastEvent(of lane: String) -> UUID? {
        model.events.filter { $0.value.lane == lane }.max { $0.key < $1.key }?.value.id
    }

    /// Checkpoint, or compaction with all that comes before it.
    func tidy(_ store: OfflineStore) async throws {
        if draw(0...1) == 0 {
            choices.count("client: checkpoint")
            tell("checkpoint")
            try await store.events.checkpoint()
        } else {
            choices.count("client: compacted")
            tell("compact")
            try await store.events.flush()
            try store.events.log.roll()
            try await store.compact()
        }
        model.durable = await store.events.lastDurable
    }

    /// Another device of the account changes a note, so that ours may be in conflict.
    func otherDevice() async throws {
        tell("another device")
        let id = UUID(integer: ids.randomUUID())
        let draft = try EventDraft(
            NoteAdded(noteId: "\(draw(0...2))", cityId: "c", content: "theirs", createdBy: "v"),
            id: id)
        try await send(draft, sequence: UInt64(model.foreign.count + 1))
    }

    /// Another device has used an id that ours is about to use for something else.
    func reuse(_ draft: EventDraft) async throws {
        isReusing = false
        tell("another device takes \(draft.id)")
        try await send(
            try EventDraft(
                CitySaved(userId: "v", cityId: "theirs"), id: draft.id),
            sequence: UInt64(model.foreign.count + 1))
    }

    func send(_ draft: EventDraft, sequence: UInt64) async throws {
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
        try await server.take([line])
    }
}
