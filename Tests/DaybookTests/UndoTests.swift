// Changes that are undone and redone, on one device and over synced and diverged histories. Spec/model/undo.md.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

/// Settings of a place: each member has a register, and the inverse of a change follows from them.
private struct PlaceSet: DeclaredPayload, Equatable {
    static let type = "com.example.place.set"
    var place: String
    var color: String?
    var size: Int?

    static var example: Self { Self(place: "-") }
    mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("place", &place, .identifier)
        try members.optional("color", &color, .text)
        try members.optional("size", &size, .count(0...100))
    }
    var subject: String? { place }
}

private struct Places: RegisterView {
    static let name = "places"
    static let version = 1
    static let eventTypes: Set<String>? = [PlaceSet.type]
    static let keyNames = ["place"]
    var registers = RegisterTable(initial: PlaceSet.example)
    init() {}
    static func change(in event: Event) throws -> RegisterChange<PlaceSet> {
        let set = try event.payload(as: PlaceSet.self)
        return RegisterChange(of: [set.place], to: set)
    }
}

/// A sum: the inverse of a walk is a walk back.
private struct Walked: EventPayload, Codable {
    static let type = "com.example.walked"
    var meters: Int
}

private struct Distance: Projection, Codable {
    static let name = "distance"
    static let version = 1
    static let eventTypes: Set<String>? = [Walked.type]
    private(set) var meters = 0
    mutating func fold(_ event: Event) {
        guard event.type == Walked.type, let walk = try? event.payload(as: Walked.self)
        else { return }
        meters += walk.meters
    }
}

private let rules: [EventRule] = [
    .of(PlaceSet.self, action: "SET_PLACE"),
    .of(Walked.self, action: "WALK").undoable { (walk: Walked) in Walked(meters: -walk.meters) },
]

private func openPair() async throws -> DevicePair {
    try await DevicePair(
        rules: rules, views: OfflineModel.views + [Places.self, Distance.self],
        extending: OfflineModel.catalogue)
}

extension EventStore {
    /// The rows and values of all views that the tests use.
    fileprivate nonisolated var rows: [String] {
        func rows(_ view: some ListableView) -> [String] {
            view.rows().map { String(decoding: $0.json, as: UTF8.self) }
        }
        return rows(view(Places.self)) + rows(view(NotesView.self)) + rows(view(CitiesView.self))
            + rows(view(PreferencesView.self)) + rows(view(ProgressView.self))
            + ["\(view(Distance.self).meters)"]
    }

    /// The code of the error with which an undo or a redo fails.
    fileprivate nonisolated func code(undoing id: UUID) async throws -> UndoError.Code? {
        do {
            try await undo(id)
            return nil
        } catch let error as UndoError { return error.code }
    }

    fileprivate nonisolated func code(redoing id: UUID) async throws -> UndoError.Code? {
        do {
            try await redo(id)
            return nil
        } catch let error as UndoError { return error.code }
    }

    fileprivate nonisolated func set(
        _ place: String, color: String? = nil, size: Int? = nil
    ) async throws -> UUID {
        try await append(PlaceSet(place: place, color: color, size: size)).id
    }

    fileprivate nonisolated func place(_ place: String) -> PlaceSet? {
        view(Places.self).registers[place]?.values
    }
}

@Suite(.timeLimit(.minutes(10))) struct UndoTests {
    @Test(.verifies("UNDO-1", "UNDO-3"))
    func `changes are undone one after the other, and redone`() async throws {
        let devices = try await openPair()
        let (store, clock) = (devices.phone, devices.clock)
        _ = try await store.set("a", color: "red", size: 1)
        clock.advance(by: .seconds(1))
        let green = try await store.set("a", color: "green")
        clock.advance(by: .seconds(1))
        let blue = try await store.set("a", color: "blue", size: 3)
        let all = store.rows

        let undone = try await store.undo(blue)
        #expect(store.place("a") == PlaceSet(place: "a", color: "green", size: 1))
        let event = try #require(
            try await store.story(of: undone.id)?.event)
        #expect(event.content.undoneID == blue)
        #expect(try await store.code(undoing: blue) == .alreadyUndone)
        try await store.undo(green)
        #expect(store.place("a") == PlaceSet(place: "a", color: "red", size: 1))
        // The newest change counts, so the older one is redone first.
        try await store.redo(green)
        #expect(store.place("a")?.color == "green")
        try await store.redo(blue)
        #expect(store.rows == all)
        #expect(try await store.code(redoing: blue) == .notUndone)
        try await store.undo(blue)
        try await store.redo(blue)
        #expect(store.rows == all)
        try await devices.close()
    }

    @Test(.verifies("UNDO-3"))
    func `only members that no newer change has set get their old values`()
        async throws
    {
        let devices = try await openPair()
        let store = devices.phone
        _ = try await store.set("a", color: "red", size: 1)
        let both = try await store.set("a", color: "green", size: 2)
        _ = try await store.set("a", size: 9)
        try await store.undo(both)
        #expect(store.place("a") == PlaceSet(place: "a", color: "red", size: 9))
        try await store.redo(both)
        #expect(store.place("a") == PlaceSet(place: "a", color: "green", size: 9))
        try await devices.close()
    }

    @Test(.verifies("UNDO-2", "UNDO-4"))
    func `what cannot be undone says why`() async throws {
        let devices = try await openPair()
        let store = devices.phone
        let first = try await store.set("a", color: "red")
        // The first value of a place: there is none before it.
        #expect(try await store.code(undoing: first) == .noInverse)
        let lesson = try await store.append(
            LessonCompleted(userId: "ana", courseId: "c", lessonId: "l"))
        let error = await #expect(throws: UndoError.self) { try await store.undo(lesson.id) }
        #expect(error?.detail.hasSuffix("a completed lesson stays completed") == true)
        let note = try await store.append(
            NoteAdded(noteId: "n", cityId: "c", content: "x", createdBy: "ana"))
        let deletion = try await store.append(NoteDeleted(noteId: "n", deletedBy: "ana"))
        #expect(try await store.code(undoing: note.id) == .noInverse)
        #expect(try await store.code(undoing: deletion.id) == .noInverse)
        #expect(try await store.code(undoing: UUID()) == .unknownEvent)
        #expect(try await store.code(redoing: first) == .notUndone)
        _ = try await store.set("a", color: "blue")
        #expect(try await store.code(undoing: first) == .superseded)
        let walk = try await store.append(Walked(meters: 5))
        let back = try await store.undo(walk.id)
        #expect(try await store.code(undoing: back.id) == .noInverse)
        try await store.outbox.discard(walk.id, withDependents: true)
        #expect(try await store.code(undoing: walk.id) == .retracted)
        let before = store.rows
        try await devices.sync()
        #expect(try await devices.tablet.code(undoing: first) == .notOwn)
        #expect(store.rows == before)
        try await devices.close()
    }

    @Test(.verifies("UNDO-2")) func `the changes of the model are undone and redone`() async throws
    {
        let store = try await OfflineStore.inMemory(account: "ana")
        func undoRedo<Payload: EventPayload>(_ payload: Payload) async throws -> [String] {
            func rows() -> [String] {
                [
                    "\(store.view(CitiesView.self).isSaved("lisbon", by: "ana"))",
                    store.view(NotesView.self)["n"]?.content ?? "",
                    "\(store.preferences(for: "ana").current.maxStorageLimit)",
                    store.view(ProgressView.self).activeCourse(of: "ana") ?? "",
                ]
            }
            let before = rows()
            let id = try await store.append(payload).id
            let after = rows()
            #expect(after != before)
            try await store.undo(id)
            #expect(rows() == before)
            try await store.redo(id)
            #expect(rows() == after)
            return after
        }
        _ = try await undoRedo(CitySaved(userId: "ana", cityId: "lisbon"))
        _ = try await undoRedo(CityUnsaved(userId: "ana", cityId: "lisbon"))
        try await store.append(
            NoteAdded(noteId: "n", cityId: "c", content: "first", createdBy: "ana"))
        _ = try await undoRedo(NoteUpdated(noteId: "n", content: "second", updatedBy: "ana"))
        var changes = PreferencesUpdated.Changes()
        changes.maxStorageLimit = 200 * 1_048_576
        _ = try await undoRedo(PreferencesUpdated(userId: "ana", changes: changes))
        try await store.append(CourseActivated(userId: "ana", courseId: "spanish"))
        _ = try await undoRedo(CourseActivated(userId: "ana", courseId: "dutch"))
        try await store.close()
    }

    @Test(.verifies("UNDO-5"))
    func `an undo loses to a newer change of another device that arrives later`() async throws {
        let devices = try await openPair()
        let (phone, tablet, clock) = (devices.phone, devices.tablet, devices.clock)
        _ = try await phone.set("a", color: "red")
        try await devices.sync()
        clock.advance(by: .seconds(1))
        let green = try await phone.set("a", color: "green")
        clock.advance(by: .seconds(1))
        _ = try await tablet.set("a", color: "theirs")
        clock.advance(by: .seconds(60))
        // The phone does not know of it, and undoes later than it.
        try await phone.undo(green)
        #expect(phone.place("a")?.color == "red")
        try await devices.sync()
        #expect([phone, tablet].map { $0.place("a")?.color } == ["theirs", "theirs"])
        #expect(try await phone.code(redoing: green) == .superseded)
        try await devices.close()
    }

    @Test(.verifies("UNDO-4")) func `after a compaction an earlier value is unknown`() async throws
    {
        let devices = try await openPair()
        let store = devices.phone
        _ = try await store.set("a", color: "red")
        let green = try await store.set("a", color: "green")
        try await devices.sync()
        try store.log.roll()
        let report = try await store.compact()
        #expect(report.compactedThrough > Position(2))
        #expect(try await store.code(undoing: green) == .compacted)
        try await devices.close()
    }

    @Test(.verifies("UNDO-1")) func `two undos at once are one`() async throws {
        let devices = try await openPair()
        let store = devices.phone
        let walk = try await store.append(Walked(meters: 7))
        let codes = try await withThrowingTaskGroup(of: UndoError.Code?.self) { group in
            for _ in 0..<8 { group.addTask { try await store.code(undoing: walk.id) } }
            // Others record meanwhile.
            group.addTask {
                for _ in 0..<50 { try await store.append(Walked(meters: 1)) }
                return .unknownEvent
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.filter { $0 == nil }.count == 1)
        #expect(codes.filter { $0 == .alreadyUndone }.count == 7)
        #expect(store.view(Distance.self).meters == 50)
        try await devices.close()
    }

    // MARK: Random histories

    /// The changes of one random history of two devices.
    private struct History {
        let devices: DevicePair
        /// The changes, with the device that recorded each.
        var changes: [(device: Int, id: UUID)] = []

        func store(_ device: Int) -> EventStore {
            device == 0 ? devices.phone : devices.tablet
        }
    }

    @Test(.verifies("UNDO-1", "UNDO-5"))
    func `undo then redo changes nothing, and no undo touches a newer change`() async throws {
        try await Property.check(
            "undo then redo changes nothing", runs: 150,
            covering: ["undone", "redone", "superseded", "no inverse"]
        ) { choices in
            var history = History(devices: try await openPair())
            for _ in 0..<choices.int(in: 4...24) { try await Self.step(&history, &choices) }
            try await history.devices.sync()
            try await history.devices.sync()
            try #require(history.devices.phone.rows == history.devices.tablet.rows)
            try await Self.checkNewest(history)
            try await history.devices.close()
        }
    }

    private static func step(_ history: inout History, _ choices: inout Choices) async throws {
        let device = choices.int(in: 0...1)
        let store = history.store(device)
        // Some changes have the same time.
        history.devices.clock.advance(by: .milliseconds(choices.int(in: 0...2)))
        switch choices.int(in: 0...9) {
        case 0: try await store.sync(over: history.devices.server)
        case 1...4:
            history.changes.append((device, try await Self.change(store, &choices)))
        case 5: try await history.devices.sync()
        default:
            guard !history.changes.isEmpty else { return }
            let (device, id) = history.changes[choices.int(in: 0...history.changes.count - 1)]
            let store = history.store(device)
            let before = store.rows
            switch try await store.code(undoing: id) {
            case nil:
                choices.count("undone")
                guard choices.bool() else { return }
                try #require(try await store.code(redoing: id) == nil)
            case .alreadyUndone:
                guard try await store.code(redoing: id) == nil else { break }
                choices.count("redone")
                guard choices.bool() else { return }
                try #require(try await store.code(undoing: id) == nil)
            case .superseded: choices.count("superseded")
            case .noInverse: choices.count("no inverse")
            case .some: break
            }
            try #require(store.rows == before)
        }
    }

    private static func change(_ store: EventStore, _ choices: inout Choices) async throws -> UUID {
        let name = choices.bool() ? "a" : "b"
        switch choices.int(in: 0...5) {
        case 0: return try await store.append(Walked(meters: choices.int(in: 1...9))).id
        case 1:
            return try await store.append(CitySaved(userId: "ana", cityId: name)).id
        case 2:
            return try await store.append(CityUnsaved(userId: "ana", cityId: name)).id
        case 3:
            var changes = PreferencesUpdated.Changes()
            changes.pruneAfterDays = choices.int(in: 1...90)
            if choices.bool() { changes.autoSync = choices.bool() }
            return try await store.append(PreferencesUpdated(userId: name, changes: changes)).id
        default:
            let isBoth = choices.bool()
            return try await store.set(
                name, color: isBoth || choices.bool() ? "\(choices.int(in: 0...99))" : nil,
                size: choices.int(in: 0...99))
        }
    }

    /// Checks that each member of a place shows the newest change, where that is not undone.
    private static func checkNewest(_ history: History) async throws {
        var events: [Event] = []
        let phone = history.devices.phone
        for try await event in phone.recordedEvents() where event.type == PlaceSet.type {
            events.append(event)
        }
        // A change is undone if an odd number of events, each of the one before it, undo and redo it.
        var roots: [UUID: UUID] = [:]
        var counts: [UUID: Int] = [:]
        for event in events.sorted(by: { $0.sequence < $1.sequence }) {
            guard let undone = event.content.undoneID else { continue }
            let root = roots[undone] ?? undone
            roots[event.id] = root
            counts[root, default: 0] += 1
        }
        for place in ["a", "b"] {
            let changes = try events.filter { $0.content.undoneID == nil && $0.subject == place }
                .map { (try $0.payload(as: PlaceSet.self), $0) }
            func newest<Value: Equatable>(_ member: (PlaceSet) -> Value?) -> (
                Value?, isUndone: Bool
            )? {
                changes.filter { member($0.0) != nil }
                    .max { $0.1.lwwTimestamp < $1.1.lwwTimestamp }
                    .map { (member($0.0), (counts[$0.1.id] ?? 0) % 2 == 1) }
            }
            if let (value, isUndone) = newest(\.color), !isUndone {
                try #require(phone.place(place)?.color == value)
            }
            if let (value, isUndone) = newest(\.size), !isUndone {
                try #require(phone.place(place)?.size == value)
            }
        }
    }
}
