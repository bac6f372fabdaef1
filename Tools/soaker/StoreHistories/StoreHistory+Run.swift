// Carries out the commands of a history on the store and on its model, and compares what each of them
// answers. Used by StoreHistory; what must hold afterwards is in StoreHistory+Check.

import DaybookOffline
import DaybookTestKit
import Foundation

/// What a transaction is aborted with.
private struct Abort: Error {}

extension StoreHistory {
    static let account = "user-456"

    static func open(
        _ disk: Disk, _ folder: String, _ clock: VirtualClock, seed: UInt64, knowsTrips: Bool,
        account: String = account
    ) async throws -> OfflineStore {
        try await OfflineStore.open(
            at: URL(filePath: folder), account: account,
            rules: knowsTrips ? [.of(TripPlanned.self, action: "PLAN_TRIP")] : [],
            views: [TallyView.self], compaction: nil,
            environment: disk.environment(clock, seed: seed))
    }

    /// Opens the log again; the model says what must be there then.
    private mutating func openAgain(knowsTrips: Bool) async throws {
        copies += 1
        store = try await Self.open(
            disk, folder, clock, seed: seed << 20 + UInt64(copies), knowsTrips: knowsTrips)
        phase = .open
        watch = nil
        model.knowsTrips = knowsTrips
        model.source = store.events.incarnation
        let last = Int(await store.events.lastDurable.rawValue)
        guard model.canEnd(at: last) else {
            throw Difference(
                description: "the log ends at \(last), not from \(model.durable) to "
                    + "\(model.lines.count) with a whole batch")
        }
        if last < model.lines.count { count("relaxed lost") }
        model.cut(to: last)
        model.restoreClock()
    }

    package mutating func run(_ command: Command) async throws {
        switch command {
        case .append(let drafts, let durability): try await append(drafts, durability)
        case .payload(let fact, let durability): try await append(fact, durability)
        case .transaction(let drafts, let aborts): try await write(drafts, aborts: aborts)
        case .feature(let fact): try await perform(fact)
        case .setPreferences(let user, let new): try await setPreferences(user, new)
        case .flush: try await whenOpen { try await $0.events.flush() }
        case .checkpoint: try await whenOpen { try await $0.events.checkpoint() }
        case .setClock(let step):
            model.now += step
            clock.milliseconds = model.now
        case .compact(let dryRun): try await compact(dryRun: dryRun)
        case .sync(let words, let status, let ahead):
            try await sync(words, status, ahead)
        case .suspend:
            guard phase != .closed else { return try await refused { try await $0.suspend() } }
            try await store.suspend()
            if phase == .open { model.durable = model.lines.count }
            phase = .suspended
        case .resume(let drafts): try await resume(while: drafts)
        case .close:
            try await store.close()
            if phase == .open { model.durable = model.lines.count }
            phase = .closed
            try await endWatch()
        case .open(let knowsTrips, let isCopy):
            try await run(.close)
            if isCopy {
                let copy = "/copy\(copies)"
                disk.memory?.copyFolder(folder, to: copy)
                folder = copy
                count("copied folder")
            }
            try await openAgain(knowsTrips: knowsTrips)
        case .kill:
            try await lose(seed: 0) { disk, _ in disk.afterKill() }
        case .powerCut(let seed):
            try await lose(seed: seed) { disk, choices in disk.afterPowerCut(&choices) }
        case .erase: try await erase()
        case .wrongOpening: try await openWrongly()
        case .fullDisk(let drafts): try await append(onFullDisk: drafts)
        case .past(let position): try await checkPast(position)
        case .readBack: try await readBack()
        case .follow(let position): try await follow(after: position)
        case .watch(let city):
            watch = Watch(
                city: city, notes: store.notes(in: city.string).changes.makeAsyncIterator())
        }
    }

    // MARK: Refusals

    /// Where the store is not open, it must say so, and nothing is done. What makes no sense may be
    /// refused before.
    private func refused(
        orFor isNonsense: Bool = false, _ body: (OfflineStore) async throws -> Void
    ) async throws {
        let code: LogError.Code = phase == .closed ? .closed : .suspended
        do { try await body(store) } catch let error as LogError where error.code == code {
            return
        } catch is EventError where isNonsense { return }
        throw Difference(description: "done although the store is \(phase)")
    }

    /// Does something that leaves all that was recorded on the disk.
    private mutating func whenOpen(_ body: (OfflineStore) async throws -> Void) async throws {
        guard phase == .open else { return try await refused(body) }
        try await body(store)
        model.durable = model.lines.count
    }

    // MARK: Recording

    mutating func append(_ drafts: [ModelDraft], _ durability: Durability) async throws {
        let given = drafts.map(\.draft)
        guard phase == .open else {
            return try await refused {
                _ = try await $0.events.append(history: given, durability: durability)
            }
        }
        var next = model
        let expected = next.append(drafts)
        do {
            let results = try await store.events.append(history: given, durability: durability)
            try compare(results, expected, drafts)
        } catch let error as EventError {
            try compare(error, expected)
            return
        }
        for id in given.map(\.id) where model.known(id) == nil && model.had(id) {
            count("forgotten id")
        }
        let isNew = next.lines.count > model.lines.count
        model = next
        // A relaxed one may have been written by now, too; a durable one takes all with it. Known
        // ones alone wait only where they wait themselves.
        if case .durable = durability, isNew { model.durable = model.lines.count }
    }

    private mutating func compare(
        _ results: [Appended], _ expected: StoreModel.Expected, _ drafts: [ModelDraft]
    ) throws {
        guard case .recorded(let all) = expected else {
            throw Difference(description: "recorded, not refused: \(expected)")
        }
        try require(results.count == all.count, "answers")
        for ((result, expected), draft) in zip(zip(results, all), drafts) {
            try require(result.id == draft.draft.id, "id of an answer")
            try require(
                result.position.rawValue == expected.position && result.isNew == expected.isNew,
                "\(result) instead of \(expected)")
            count(expected.isNew ? "new" : "known")
            if !expected.isNew, model.lines.count >= expected.position,
                model.lines[Int(expected.position) - 1].removedAt != nil
            {
                count("known though removed")
            }
        }
    }

    private mutating func compare(_ error: EventError, _ expected: StoreModel.Expected) throws {
        guard case .refused(let codes) = expected, codes.contains(error.code) else {
            throw Difference(
                description: "refused with \(error.code) (\(error)), expected \(expected)")
        }
        count("refused: \(error.code.rawValue)")
    }

    /// Records a typed event.
    private mutating func append(_ fact: Fact, _ durability: Durability) async throws {
        guard let payload = fact.payload else { return }
        guard phase == .open else {
            return try await refused { _ = try await $0.append(payload, durability: durability) }
        }
        let draft = try typed(fact, payload)
        var next = model
        let expected = next.append([draft])
        do {
            let result = try await store.append(payload, durability: durability)
            guard case .recorded(let all) = expected else {
                throw Difference(description: "recorded, not refused: \(expected)")
            }
            try require(result.isNew && result.position.rawValue == all[0].position, "position")
            next.name(next.lines.count - 1, result.id, extensions: [])
        } catch let error as EventError {
            return try compare(error, expected)
        }
        model = next
        if case .durable = durability { model.durable = model.lines.count }
    }

    /// A draft with the data that the library writes, if they say the right thing.
    private func typed(_ fact: Fact, _ payload: any EventPayload) throws -> ModelDraft {
        let json = try payload.json()
        try require(try fact.isSaid(by: json), "data of \(fact)")
        let draft = EventDraft(
            type: fact.type, subject: payload.subject, lane: payload.lane, data: .json(json))
        return ModelDraft(draft: draft, fact: fact)
    }

    private mutating func write(_ drafts: [ModelDraft], aborts: Bool) async throws {
        let given = drafts.map(\.draft)
        let (cities, waiting) = (model.views.savedCities.map(\.string), model.outbox.count)
        let body: @Sendable (inout EventStore.Transaction) throws -> Int = { transaction in
            guard transaction.view(CitiesView.self).cityIDs.map(Text.init) == cities.map(Text.init),
                transaction.view(Outbox.self).count == waiting
            else { throw Difference(description: "views in a transaction") }
            transaction.takesHistory = true
            for draft in given { transaction.append(draft) }
            if aborts { throw Abort() }
            return given.count
        }
        guard phase == .open else { return try await refused { _ = try await $0.write(body) } }
        var next = model
        let expected = next.append(drafts)
        do {
            let result = try await store.write(body)
            try require(result == given.count && !aborts, "result of a transaction")
            guard case .recorded = expected else {
                throw Difference(description: "recorded, not refused: \(expected)")
            }
            model = next
            model.durable = model.lines.count
        } catch is Abort {
            try require(aborts, "an abort")
            model.durable = model.lines.count
        } catch let error as EventError {
            try compare(error, expected)
            model.durable = model.lines.count
        }
    }

    // MARK: Commands of the features

    private mutating func perform(_ fact: Fact) async throws {
        var isRefused = false
        var fact = fact
        var extensions: [EventDraft.Extension] = []
        func empty(_ texts: Text...) -> Bool { texts.contains { $0.bytes.isEmpty } }
        switch fact {
        case .city(let user, let city, let isSaved):
            isRefused = empty(user, city) || !isSaved && !model.views.isSaved(city, by: user)
        case .noteAdded(_, let city, _, let user): isRefused = empty(city, user)
        case .noteUpdated(let note, _, let user), .noteDeleted(let note, let user):
            let live = model.views.live(note)
            isRefused = empty(note, user) || live == nil
            if let head = live?.content.value.line {
                let id = model.lines[Int(head) - 1].id.uuidString.lowercased()
                extensions = [.init(name: "baseid", json: Array("\"\(id)\"".utf8))]
            }
        case .course(let user, let course): isRefused = empty(user, course)
        case .lesson(_, _, _, let score): isRefused = score.map { !(0...4).contains($0) } ?? false
        case .review(_, _, _, let seen, let correct): isRefused = !(0...seen).contains(correct)
        case .preferences, .trip, .other: return
        }
        guard phase == .open else {
            return try await refused(orFor: isRefused) { _ = try await Self.perform(fact, $0) }
        }
        let note: Note?
        do {
            note = try await Self.perform(fact, store)
        } catch let error as EventError {
            // A command's text may also be too long for an event.
            if !isRefused { try refuseAsEvent(fact, extensions, error) }
            count("command refused")
            return
        }
        try require(!isRefused, "a command that makes no sense was carried out")
        if let note, case .noteAdded(_, let city, let content, let user) = fact {
            fact = .noteAdded(note: Text(note.id), city: city, content: content, user: user)
        }
        try await adoptCommand(fact, extensions)
        if let note {
            let live = model.views.live(Text(note.id))
            try require(live.map { isEqual(note, Text(note.id), $0) } ?? false, "the added note")
        }
    }

    /// The same as an event must be refused alike.
    private func refuseAsEvent(
        _ fact: Fact, _ extensions: [EventDraft.Extension], _ error: EventError
    ) throws {
        guard let payload = fact.payload else { return }
        var draft = try typed(fact, payload)
        draft.draft.extensions = extensions
        var next = model
        guard case .refused(let codes) = next.append([draft]), codes.contains(error.code) else {
            throw error
        }
    }

    /// Takes in the event that a command has recorded, whatever id it has got.
    private mutating func adoptCommand(
        _ fact: Fact, _ extensions: [EventDraft.Extension]
    ) async throws {
        guard let payload = fact.payload else { return }
        _ = model.append([try typed(fact, payload)], replacing: model.views.stampReplaced(by: fact))
        model.durable = model.lines.count
        guard let event = try await store.events.event(at: Position(UInt64(model.lines.count)))
        else {
            throw Difference(description: "the command has recorded nothing")
        }
        model.name(model.lines.count - 1, event.id, extensions: extensions)
    }

    private static func perform(_ fact: Fact, _ store: OfflineStore) async throws -> Note? {
        switch fact {
        case .city(let user, let city, true):
            try await store.cities.save(city.string, by: user.string)
        case .city(let user, let city, false):
            try await store.cities.unsave(city.string, by: user.string)
        case .noteAdded(_, let city, let content, let user):
            return try await store.notes.add(content.string, city: city.string, by: user.string)
        case .noteUpdated(let note, let content, let user):
            try await store.notes.update(note.string, content.string, by: user.string)
        case .noteDeleted(let note, let user):
            try await store.notes.delete(note.string, by: user.string)
        case .course(let user, let course):
            try await store.progress.activateCourse(course.string, by: user.string)
        case .lesson(let user, let course, let lesson, let score):
            try await store.progress.completeLesson(
                lesson.string, course: course.string, by: user.string,
                score: score.map { Double($0) / 4 })
        case .review(let user, let course, let review, let seen, let correct):
            try await store.progress.completeReview(
                review.string, course: course.string, by: user.string, itemsSeen: seen,
                itemsCorrect: correct)
        case .preferences, .trip, .other: break
        }
        return nil
    }

    private mutating func setPreferences(_ user: Text, _ new: [String: Int]) async throws {
        let body: @Sendable (inout OfflinePreferences) -> Void = { settings in
            for (name, value) in new {
                switch name {
                case "autoDownloadEnabled": settings.autoDownloadEnabled = value == 1
                case "autoSync": settings.autoSync = value == 1
                case "showStaleDataWarning": settings.showStaleDataWarning = value == 1
                case "wifiOnlyDownload": settings.wifiOnlyDownload = value == 1
                case "maxStorageLimit": settings.maxStorageLimit = value
                default: settings.pruneAfterDays = value
                }
            }
        }
        guard phase == .open else {
            return try await refused { _ = try await $0.preferences.update(for: user.string, body) }
        }
        let changes = new.filter { model.views.setting($0.key, of: user) != $0.value }
        let isRefused =
            changes["pruneAfterDays"].map { !(1...90).contains($0) } ?? false
            || changes["maxStorageLimit"].map { !(52_428_800...524_288_000).contains($0) } ?? false
        do {
            let result = try await store.preferences.update(for: user.string, body)
            try require(!isRefused, "settings out of range were recorded")
            if changes.isEmpty {
                model.durable = model.lines.count
                count("nothing to record")
            } else {
                try await adoptCommand(.preferences(user: user, changes), [])
            }
            try require(isEqual(result, user), "the settings after the change")
        } catch let error as EventError {
            let hasZero = Fact.preferences(user: user, changes).hasZero
            try require(
                isRefused && error.code == .refused || hasZero && error.code == .invalidData,
                "\(error)")
            model.durable = model.lines.count
            count("command refused")
        }
    }

    // MARK: Other writers, ends and losses

    /// Somebody else records while this store is suspended.
    private mutating func resume(while drafts: [ModelDraft]) async throws {
        let mine = store
        let (offset, knowsTrips) = (model.offset, model.knowsTrips)
        if !drafts.isEmpty {
            copies += 1
            store = try await Self.open(
                disk, folder, clock, seed: seed << 20 + UInt64(copies), knowsTrips: knowsTrips)
            phase = .open
            model.restoreClock()
            do {
                try await mine.resume()
                throw Difference(description: "resumed while somebody else has the log")
            } catch let error as LogError where error.code == .locked {}
            try await append(drafts, .durable)
            try await checkViews()
            try await store.close()
            model.durable = model.lines.count
            model.offset = offset
            store = mine
        }
        try await store.resume()
        phase = .open
        count("resumed")
    }

    private mutating func lose(
        seed: UInt64, _ body: (Disk, inout Choices) -> Disk
    ) async throws {
        if phase == .open {
            model.durable = max(model.durable, Int(await store.events.lastDurable.rawValue))
        }
        var choices = seed == 0 ? Choices(replaying: []) : Choices(seed: seed)
        disk = body(disk, &choices)
        // What goes on in the old process no longer reaches this disk.
        try await openAgain(knowsTrips: model.knowsTrips)
    }

    private mutating func erase() async throws {
        let waiting = model.outbox.count
        do {
            try await store.erase()
            try require(waiting == 0, "events were erased that no server has")
        } catch let error as UnsyncedError {
            try require(
                error.count == waiting && waiting > 0, "unsynced \(error.count), not \(waiting)")
            model.durable = model.lines.count
            try await checkViews()
            count("unsynced")
            try await store.erase(discardingUnsynced: true)
        }
        phase = .closed
        try await refused { try await $0.events.flush() }
        let (now, trips) = (model.now, model.knowsTrips)
        model = StoreModel()
        model.now = now
        try await openAgain(knowsTrips: trips)
    }

    private mutating func openWrongly() async throws {
        do {
            _ = try await Self.open(disk, folder, clock, seed: 1, knowsTrips: true)
            throw Difference(description: "two stores have one log")
        } catch let error as LogError where error.code == .locked {}
        try await run(.close)
        do {
            _ = try await Self.open(
                disk, folder, clock, seed: 1, knowsTrips: true, account: "user-457")
            throw Difference(description: "opened for another account")
        } catch let error as LogError where error.code == .wrongAccount {}
        try await openAgain(knowsTrips: model.knowsTrips)
    }

    private mutating func append(onFullDisk drafts: [ModelDraft]) async throws {
        guard let files = disk.memory else { return }
        files.setQuota(files.usedBytes)
        do {
            try await append(drafts, .durable)
        } catch let error as LogError where error.code == .diskFull {
            count("disk full")
        }
        try await checkViews()
        files.setQuota(nil)
    }
}
