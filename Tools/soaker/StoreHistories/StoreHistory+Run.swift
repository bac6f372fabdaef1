// Runs the commands of a StoreHistory on the store and on its model, and compares their results. The checks
// after each command are in StoreHistory+Check.

import DaybookOffline
import DaybookTestKit
import Foundation

/// The error that aborts a transaction.
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

    /// Opens the log again, and truncates the model to the log's end if relaxed events were lost.
    private mutating func reopen(knowsTrips: Bool) async throws {
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
                description: "the log ends at \(last), not at the end of a batch in "
                    + "\(model.durable)...\(model.lines.count)")
        }
        if last < model.lines.count { count("relaxed lost") }
        model.truncate(to: last)
        model.restoreClock()
    }

    package mutating func run(_ command: Command) async throws {
        switch command {
        case .append(let drafts, let durability): try await append(drafts, durability)
        case .payload(let fact, let durability): try await append(fact, durability)
        case .transaction(let drafts, let aborts): try await runTransaction(drafts, aborts: aborts)
        case .feature(let fact): try await performCommand(fact)
        case .setPreferences(let user, let new): try await setPreferences(user, new)
        case .flush: try await performIfOpen { try await $0.events.flush() }
        case .checkpoint: try await performIfOpen { try await $0.events.checkpoint() }
        case .setClock(let step):
            model.now += step
            clock.milliseconds = model.now
        case .compact(let dryRun): try await compact(dryRun: dryRun)
        case .sync(let verdicts, let status, let ahead):
            try await sync(verdicts, status, ahead)
        case .suspend:
            guard phase != .closed else {
                return try await expectRefusal { try await $0.suspend() }
            }
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
            try await reopen(knowsTrips: knowsTrips)
        case .kill:
            try await crash(seed: 0) { disk, _ in disk.afterKill() }
        case .powerCut(let seed):
            try await crash(seed: seed) { disk, choices in disk.afterPowerCut(&choices) }
        case .erase: try await erase()
        case .wrongOpening: try await checkRefusedOpenings()
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

    /// Runs an operation on a suspended or closed store, which must throw `suspended` or `closed`. An invalid
    /// operation may throw an `EventError` instead.
    private func expectRefusal(
        orInvalid isInvalid: Bool = false, _ body: (OfflineStore) async throws -> Void
    ) async throws {
        let code: LogError.Code = phase == .closed ? .closed : .suspended
        do { try await body(store) } catch let error as LogError where error.code == code {
            return
        } catch is EventError where isInvalid { return }
        throw Difference(description: "an operation succeeded while the store is \(phase)")
    }

    /// Runs an operation after which all recorded events are durable; if the store is not open, it must be
    /// refused.
    private mutating func performIfOpen(_ body: (OfflineStore) async throws -> Void) async throws {
        guard phase == .open else { return try await expectRefusal(body) }
        try await body(store)
        model.durable = model.lines.count
    }

    // MARK: Recording

    mutating func append(_ drafts: [ModelDraft], _ durability: Durability) async throws {
        let eventDrafts = drafts.map(\.draft)
        guard phase == .open else {
            return try await expectRefusal {
                _ = try await $0.events.append(history: eventDrafts, durability: durability)
            }
        }
        var next = model
        let expected = next.append(drafts)
        do {
            let results = try await store.events.append(
                history: eventDrafts, durability: durability)
            try compareResults(results, expected, drafts)
        } catch let error as EventError {
            try compareRefusal(error, expected)
            return
        }
        for id in eventDrafts.map(\.id)
        where model.indexOfKnownLine(id) == nil && model.everHadID(id) {
            count("forgotten id")
        }
        let isNew = next.lines.count > model.lines.count
        model = next
        // A durable append flushes all earlier relaxed events. One of known events only appends nothing, so
        // it need not flush.
        if case .durable = durability, isNew { model.durable = model.lines.count }
    }

    private mutating func compareResults(
        _ results: [Appended], _ expected: StoreModel.Expected, _ drafts: [ModelDraft]
    ) throws {
        guard case .recorded(let all) = expected else {
            throw Difference(description: "an append succeeded that should be \(expected)")
        }
        try require(
            results.count == all.count, "an append has \(results.count) results, not \(all.count)")
        for ((result, expected), draft) in zip(zip(results, all), drafts) {
            try require(
                result.id == draft.draft.id,
                "the result of \(draft.draft.id) has the id \(result.id)")
            try require(
                result.position.rawValue == expected.position && result.isNew == expected.isNew,
                "the result of an append is \(result), not \(expected)")
            count(expected.isNew ? "new" : "known")
            if !expected.isNew, model.lines.count >= expected.position,
                model.lines[Int(expected.position) - 1].removedAt != nil
            {
                count("known though removed")
            }
        }
    }

    private mutating func compareRefusal(
        _ error: EventError, _ expected: StoreModel.Expected
    ) throws {
        guard case .refused(let codes) = expected, codes.contains(error.code) else {
            throw Difference(
                description: "an append was refused with \(error.code) (\(error)), not \(expected)")
        }
        count("refused: \(error.code.rawValue)")
    }

    /// Records a typed event.
    private mutating func append(_ fact: Fact, _ durability: Durability) async throws {
        guard let payload = fact.payload else { return }
        guard phase == .open else {
            return try await expectRefusal {
                _ = try await $0.append(payload, durability: durability)
            }
        }
        let draft = try makeDraft(fact, payload)
        var next = model
        let expected = next.append([draft], areNew: true)
        do {
            let result = try await store.append(payload, durability: durability)
            guard case .recorded(let all) = expected else {
                throw Difference(description: "an append succeeded that should be \(expected)")
            }
            try require(
                result.isNew && result.position.rawValue == all[0].position,
                "the result of a typed append is \(result), not \(all[0])")
            next.replaceID(ofLineAt: next.lines.count - 1, result.id, extensions: [])
        } catch let error as EventError {
            return try compareRefusal(error, expected)
        }
        model = next
        if case .durable = durability { model.durable = model.lines.count }
    }

    /// Makes a draft with the data that the library encodes, after a check that they encode `fact`.
    private func makeDraft(_ fact: Fact, _ payload: any EventPayload) throws -> ModelDraft {
        let json = try payload.json()
        try require(try fact.isEncoded(by: json), "the encoded data of \(fact) are wrong")
        let draft = EventDraft(
            type: fact.type, subject: payload.subjectText, lane: payload.laneText, data: .json(json)
        )
        return ModelDraft(draft: draft, fact: fact)
    }

    private mutating func runTransaction(_ drafts: [ModelDraft], aborts: Bool) async throws {
        let eventDrafts = drafts.map(\.draft)
        let (cities, pending) = (model.views.savedCities.map(\.string), model.outbox.count)
        let body: @Sendable (inout EventStore.Transaction) throws -> Int = { transaction in
            guard transaction.view(CitiesView.self).cityIDs.map(Text.init) == cities.map(Text.init),
                transaction.view(Outbox.self).count == pending
            else { throw Difference(description: "the views of a transaction are wrong") }
            transaction.takesHistory = true
            for draft in eventDrafts { transaction.append(draft) }
            if aborts { throw Abort() }
            return eventDrafts.count
        }
        guard phase == .open else {
            return try await expectRefusal { _ = try await $0.write(body) }
        }
        var next = model
        let expected = next.append(drafts)
        do {
            let result = try await store.write(body)
            try require(
                result == eventDrafts.count && !aborts, "the result of a transaction is wrong")
            guard case .recorded = expected else {
                throw Difference(description: "an append succeeded that should be \(expected)")
            }
            model = next
            model.durable = model.lines.count
        } catch is Abort {
            try require(aborts, "a transaction was aborted without an error")
            model.durable = model.lines.count
        } catch let error as EventError {
            try compareRefusal(error, expected)
            model.durable = model.lines.count
        }
    }

    // MARK: Commands of the features

    private mutating func performCommand(_ fact: Fact) async throws {
        var isRefused = false
        var fact = fact
        var extensions: [EventDraft.Extension] = []
        func empty(_ texts: Text...) -> Bool { texts.contains { $0.bytes.isEmpty } }
        switch fact {
        case .city(let user, let city, let isSaved):
            isRefused = empty(user, city) || !isSaved && !model.views.isSaved(city, by: user)
        case .noteAdded(_, let city, _, let user): isRefused = empty(city, user)
        case .noteUpdated(let note, _, let user), .noteDeleted(let note, let user):
            let live = model.views.liveNote(note)
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
            return try await expectRefusal(orInvalid: isRefused) {
                _ = try await Self.performCommand(fact, $0)
            }
        }
        let note: Note?
        do {
            note = try await Self.performCommand(fact, store)
        } catch let error as EventError {
            // The command may also be refused because its event is, for example if the text is too long.
            if !isRefused { try checkSameRefusal(fact, extensions, error) }
            count("command refused")
            return
        }
        try require(!isRefused, "an invalid command succeeded")
        if let note, case .noteAdded(_, let city, let content, let user) = fact {
            fact = .noteAdded(note: Text(note.id), city: city, content: content, user: user)
        }
        try await adoptCommand(fact, extensions)
        if let note {
            let live = model.views.liveNote(Text(note.id))
            try require(
                live.map { isEqual(note, Text(note.id), $0) } ?? false,
                "the note that a command returned is wrong")
        }
    }

    /// Checks that the event of a refused command would be refused with the same code.
    private func checkSameRefusal(
        _ fact: Fact, _ extensions: [EventDraft.Extension], _ error: EventError
    ) throws {
        guard let payload = fact.payload else { return }
        var draft = try makeDraft(fact, payload)
        draft.draft.extensions = extensions
        var next = model
        guard case .refused(let codes) = next.append([draft], areNew: true),
            codes.contains(error.code)
        else {
            throw error
        }
    }

    /// Appends the event of a command to the model, with the id that the store chose.
    private mutating func adoptCommand(
        _ fact: Fact, _ extensions: [EventDraft.Extension]
    ) async throws {
        guard let payload = fact.payload else { return }
        _ = model.append(
            [try makeDraft(fact, payload)], replacing: model.views.timestampReplaced(by: fact))
        model.durable = model.lines.count
        guard let event = try await store.events.event(at: Position(UInt64(model.lines.count)))
        else {
            throw Difference(description: "the command recorded no event")
        }
        model.replaceID(ofLineAt: model.lines.count - 1, event.id, extensions: extensions)
    }

    private static func performCommand(_ fact: Fact, _ store: OfflineStore) async throws -> Note? {
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
            return try await expectRefusal {
                _ = try await $0.preferences.update(for: user.string, body)
            }
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
            try require(isEqual(result, user), "the settings after the change are wrong")
        } catch let error as EventError {
            let containsNUL = Fact.preferences(user: user, changes).containsNUL
            try require(
                isRefused && error.code == .refused || containsNUL && error.code == .invalidData,
                "\(error)")
            model.durable = model.lines.count
            count("command refused")
        }
    }

    // MARK: Other writers, crashes, erasure

    /// Resumes the store. With drafts, another store records them while this one is suspended.
    private mutating func resume(while drafts: [ModelDraft]) async throws {
        let suspended = store
        let (offset, knowsTrips) = (model.offset, model.knowsTrips)
        if !drafts.isEmpty {
            copies += 1
            store = try await Self.open(
                disk, folder, clock, seed: seed << 20 + UInt64(copies), knowsTrips: knowsTrips)
            phase = .open
            model.restoreClock()
            do {
                try await suspended.resume()
                throw Difference(description: "a store resumed while another had the log open")
            } catch let error as LogError where error.code == .locked {}
            try await append(drafts, .durable)
            try await checkViews()
            try await store.close()
            model.durable = model.lines.count
            model.offset = offset
            store = suspended
        }
        try await store.resume()
        phase = .open
        count("resumed")
    }

    private mutating func crash(
        seed: UInt64, _ body: (Disk, inout Choices) -> Disk
    ) async throws {
        if phase == .open {
            model.durable = max(model.durable, Int(await store.events.lastDurable.rawValue))
        }
        var choices = seed == 0 ? Choices(replaying: []) : Choices(seed: seed)
        disk = body(disk, &choices)
        // `disk` is a copy, so writes of the old store no longer reach it.
        try await reopen(knowsTrips: model.knowsTrips)
    }

    private mutating func erase() async throws {
        let pending = model.outbox.count
        do {
            try await store.erase()
            try require(pending == 0, "\(pending) events were erased that no server has")
        } catch let error as UnsyncedError {
            try require(
                error.count == pending && pending > 0,
                "erasing reports \(error.count) unsynced events, not \(pending)")
            model.durable = model.lines.count
            try await checkViews()
            count("unsynced")
            try await store.erase(discardingUnsynced: true)
        }
        phase = .closed
        try await expectRefusal { try await $0.events.flush() }
        let (now, trips) = (model.now, model.knowsTrips)
        model = StoreModel()
        model.now = now
        try await reopen(knowsTrips: trips)
    }

    private mutating func checkRefusedOpenings() async throws {
        do {
            _ = try await Self.open(disk, folder, clock, seed: 1, knowsTrips: true)
            throw Difference(description: "two stores opened the same log")
        } catch let error as LogError where error.code == .locked {}
        try await run(.close)
        do {
            _ = try await Self.open(
                disk, folder, clock, seed: 1, knowsTrips: true, account: "user-457")
            throw Difference(description: "the log was opened for another account")
        } catch let error as LogError where error.code == .wrongAccount {}
        try await reopen(knowsTrips: model.knowsTrips)
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
