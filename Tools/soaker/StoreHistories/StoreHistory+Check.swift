// Compares a store with its model: views and queries after every command; past states, the log's lines and
// subscriptions by separate commands.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogStorage

extension StoreHistory {
    func require(_ isTrue: Bool, _ difference: @autoclosure () -> String) throws {
        if !isTrue { throw Difference(description: difference()) }
    }

    package mutating func check() async throws {
        try await checkViews()
        try await checkWatch()
    }

    /// Compares the log, a past state and the events with the model, opens the store once more, and closes
    /// it.
    package mutating func end() async throws {
        if phase != .open { try await run(.open(knowsTrips: model.knowsTrips, isCopy: false)) }
        try await readBack()
        try await checkPast(UInt64(model.lines.count))
        try await follow(after: 0)
        try await run(.open(knowsTrips: true, isCopy: false))
        try await checkViews()
        try await store.close()
    }

    // MARK: The current state

    func checkViews() async throws {
        let last = Int(await store.events.lastDurable.rawValue)
        try require(
            (model.durable...model.lines.count).contains(last),
            "the last durable position is \(last), not in \(model.durable)...\(model.lines.count)")
        try checkViews(
            model.views, cities: store.view(CitiesView.self), notes: store.view(NotesView.self),
            preferences: store.view(PreferencesView.self), progress: store.view(ProgressView.self))
        try require(store.view(TallyView.self) == model.tally, "the app's own view")
        try checkOutbox()
        for user in model.views.users.prefix(3) {
            try require(
                store.cities.saved(by: user.string).current.map(Text.init)
                    == model.views.cities(of: user), "the cities of \(user)")
            try require(
                isEqual(store.preferences(for: user.string).current, user),
                "the settings of \(user)")
            try require(
                store.progress(of: user.string).current
                    == store.view(ProgressView.self)[user.string],
                "the progress of \(user)")
        }
        for city in model.views.cities.prefix(3) {
            try require(
                store.cities.savers(of: city.string).current.map(Text.init)
                    == model.views.savers(of: city), "the savers of \(city)")
            try compareNotes(store.notes(in: city.string).current, model.views, city)
        }
    }

    private func checkViews(
        _ views: ModelViews, cities: CitiesView, notes: NotesView, preferences: PreferencesView,
        progress: ProgressView
    ) throws {
        try require(cities.cityIDs.map(Text.init) == views.savedCities, "saved cities")
        for mark in views.marks.keys {
            try require(
                cities.isSaved(mark.city.string, by: mark.user.string)
                    == views.isSaved(mark.city, by: mark.user), "whether \(mark) is saved")
        }
        for city in views.cities {
            try require(
                cities.savers(of: city.string).map(Text.init) == views.savers(of: city),
                "the savers of \(city)")
            try compareNotes(notes.notes(in: city.string), views, city)
        }
        for (id, note) in views.notes {
            let stored = notes[id.string]
            let live = views.liveNote(id)
            try require((stored == nil) == (live == nil), "whether the note \(id) exists")
            if let stored, let live { try require(isEqual(stored, id, live), "the note \(id)") }
            try require(notes.isDeleted(id.string) == note.isDeleted, "whether \(id) is deleted")
        }
        let counts = notes.counts
        let undeleted = views.notes.values.filter { !$0.isDeleted }
        try require(
            counts.live == undeleted.count { $0.origin != nil }
                && counts.waiting == undeleted.count { $0.origin == nil }, "the number of notes")
        try require(preferences.userIDs.map(Text.init) == views.settings.keys.sorted(), "users")
        for user in views.users {
            try require(isEqual(preferences[user.string], user, views), "the settings of \(user)")
            try checkProgress(progress, user, views)
        }
        let unknown = Text("never heard of")
        try require(isEqual(preferences[unknown.string], unknown, views), "the default settings")
        try require(
            notes.notes(in: unknown.string).isEmpty && notes[unknown.string] == nil,
            "a note that was never added")
        try require(
            cities.ignored + notes.ignored + preferences.ignored + progress.ignored == 0,
            "the number of ignored events")
    }

    private func checkProgress(_ progress: ProgressView, _ user: Text, _ views: ModelViews) throws {
        let stored = progress[user.string]
        try require(
            stored.activeCourseId.map(Text.init) == views.courses[user]?.value,
            "the active course of \(user)")
        let expected = views.progress(of: user)
        try require(
            stored.courses.map { Text($0.courseId ?? "") } == expected.keys.sorted(),
            "the courses of \(user)")
        for course in stored.courses {
            let numbers = [
                course.lessonsCompleted, course.reviewsCompleted, course.itemsSeen,
                course.itemsCorrect,
            ]
            try require(
                numbers == expected[Text(course.courseId ?? "")],
                "the progress of \(user) in \(course.courseId ?? ""): \(numbers)")
        }
        for (key, completion) in views.lessons where key.user == user {
            let stored = progress.lesson(
                key.lesson.string, course: key.course.string, of: user.string)
            try require(
                stored?.bestScore == completion.best.map { Double($0) / 4 }
                    && stored?.completedAt.milliseconds == completion.first.time,
                "the completion of \(key)")
        }
    }

    private func compareNotes(_ notes: NoteList, _ views: ModelViews, _ city: Text) throws {
        try require(
            notes.map { Text($0.id) } == views.notes(in: city)
                && notes.allSatisfy { note in
                    views.liveNote(Text(note.id)).map { isEqual(note, Text(note.id), $0) } ?? false
                }, "the notes of \(city): \(notes.map(\.id)), not \(views.notes(in: city))")
    }

    func isEqual(
        _ note: Note, _ id: Text,
        _ live: (
            origin: ModelRegister<ModelViews.Origin>, content: ModelRegister<ModelViews.Content>
        )
    ) -> Bool {
        Text(note.id) == id && Text(note.cityId) == live.origin.value.city
            && Text(note.createdBy) == live.origin.value.user
            && Text(note.content) == live.content.value.content
            && note.createdAt.milliseconds == live.origin.lwwTimestamp.time
            && note.updatedAt.milliseconds == live.content.lwwTimestamp.time
    }

    func isEqual(
        _ preferences: OfflinePreferences, _ user: Text, _ views: ModelViews? = nil
    ) -> Bool {
        let views = views ?? model.views
        func flag(_ name: String) -> Bool { views.setting(name, of: user) == 1 }
        return Text(preferences.userId) == user && preferences.autoSync == flag("autoSync")
            && preferences.autoDownloadEnabled == flag("autoDownloadEnabled")
            && preferences.wifiOnlyDownload == flag("wifiOnlyDownload")
            && preferences.showStaleDataWarning == flag("showStaleDataWarning")
            && preferences.maxStorageLimit == views.setting("maxStorageLimit", of: user)
            && preferences.pruneAfterDays == views.setting("pruneAfterDays", of: user)
            && preferences.updatedAt?.milliseconds
                == views.settings[user]?.values.map(\.lwwTimestamp).max()?.time
    }

    private func checkOutbox() throws {
        let outbox = store.view(Outbox.self)
        let expected = model.outbox
        let entries = Array(outbox.entries)
        try require(
            outbox.count == expected.count
                && entries.map(\.position.rawValue) == expected.map(\.position),
            "the outbox has \(entries.map(\.position)), not \(expected.map(\.position))")
        try require(store.outboxCount.current == expected.count, "the count of the outbox")
        for (entry, line) in zip(entries, expected) {
            let answer = model.answers[line.position]
            try require(
                entry.id == line.id && entry.action == model.action(of: line)
                    && Text(entry.entityId) == line.subject ?? Text("")
                    && Text(entry.lane) == line.lane
                    && entry.timestamp.milliseconds == line.time
                    && entry.lineBytes == line.text.count, "the outbox entry of \(line.position)")
            try require(
                entry.status == answer?.status ?? .pending
                    && entry.retryCount == answer?.retryCount ?? 0
                    && entry.lastAttemptAt?.milliseconds == answer?.at
                    && entry.errorMessage == answer?.message
                    && (entry.parking == .exhausted) == (answer?.isExhausted ?? false),
                "the outbox entry of \(line.position): \(entry.status), not "
                    + String(describing: answer))
        }
    }

    // MARK: The past and the log

    mutating func checkPast(_ position: UInt64) async throws {
        let past: PastState
        do {
            past = try await store.state(at: Position(position))
        } catch let error as LogError where phase != .open {
            try require(error.code == (phase == .closed ? .closed : .suspended), "\(error.code)")
            return
        } catch let error as EventError where error.code == .refused {
            model.durable = model.lines.count
            try require(
                position > model.lines.count || position < model.compactedThrough,
                "the state at \(position) is refused: \(error)")
            count(position > model.lines.count ? "no future" : "compacted past")
            return
        }
        model.durable = model.lines.count
        try require(
            phase == .open
                && (model.compactedThrough...UInt64(model.lines.count)).contains(position),
            "the state at \(position) should be refused")
        try checkViews(
            model.views(after: Int(position)), cities: past.view(CitiesView.self),
            notes: past.view(NotesView.self), preferences: past.view(PreferencesView.self),
            progress: past.view(ProgressView.self))
        count("past")
        guard !model.hasRemoved else { return }
        var tally = TallyView()
        for line in model.lines.prefix(Int(position)) { tally.countEvent(line.id, line.position) }
        try require(past.view(TallyView.self) == tally, "the app's own view at \(position)")
    }

    /// Compares the log's lines with the model's, byte for byte.
    mutating func readBack() async throws {
        if phase == .open {
            try await store.events.flush()
            model.durable = model.lines.count
        }
        var stored: [[UInt8]] = []
        try LogReader(folder, fileSystem: disk.system).forEachLine { _, line in
            stored.append(line.withUnsafeBytes { Array($0) })
            return true
        }
        let expected = model.storedLines.prefix { $0.position <= model.durable }
        try require(
            stored.count == expected.count,
            "the log has \(stored.count) lines, not \(expected.count)")
        for (line, expected) in zip(stored, expected) where line != expected.text {
            throw Difference(
                description:
                    "the stored line \(String(decoding: line.prefix(2_000), as: UTF8.self)) is not "
                    + String(decoding: expected.text.prefix(2_000), as: UTF8.self))
        }
        count("read back")
        guard phase == .open, let last = model.lines.last else { return }
        let event = try await store.events.event(at: Position(last.position))
        try require(
            (event?.id == last.id) == (last.removedAt == nil), "the event at \(last.position)")
        let next = try await store.events.event(at: Position(last.position + 1))
        try require(next == nil, "there is an event after the end of the log")
    }

    mutating func follow(after position: UInt64) async throws {
        let expected = model.storedLines.filter {
            $0.position > position && $0.position <= model.durable
        }
        var events = store.events(after: Position(position)).makeAsyncIterator()
        if position > UInt64(model.lines.count) {
            do {
                _ = try await events.next()
                throw Difference(description: "events after \(position), past the end, not refused")
            } catch let error as EventError where error.code == .refused { count("no future") }
            return
        }
        guard position <= UInt64(model.durable), phase != .suspended else { return }
        for line in expected {
            let event = try await events.next()
            try require(
                event?.id == line.id && event?.position.rawValue == line.position
                    && event.map { Text($0.type) } == line.draft.type
                    && event.map { Text($0.lane) } == line.lane
                    && event?.time.milliseconds == line.time, "the event at \(line.position)")
        }
        if phase == .closed {
            let end = try await events.next()
            try require(end == nil, "the events of a closed store do not end")
        }
        count("followed")
    }

    // MARK: Subscriptions

    /// Reads the next value of the subscription, but only if the view has changed: otherwise the read would
    /// never return.
    mutating func checkWatch() async throws {
        guard var watch, phase != .closed else { return }
        let current = store.notes(in: watch.city.string).current
        guard watch.last != current else { return }
        count(watch.last == nil ? "watched" : "watched a change")
        watch.last = await watch.notes.next()
        try require(watch.last == current, "the subscription did not deliver the newest value")
        self.watch = watch
    }

    mutating func endWatch() async throws {
        guard var watch else { return }
        self.watch = nil
        while let value = await watch.notes.next() {
            try require(value != watch.last, "the subscription delivered a value twice")
            watch.last = value
        }
    }
}
