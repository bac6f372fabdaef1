// A change that saw a value replaces it, whatever the clocks show: one device whose clock was ahead,
// several whose clocks jump, built-in events and an app's own.

import DaybookTestKit
import EventGenerators
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

private struct Theme: Projection, Codable {
    static let name = "theme"
    static let version = 1
    static let eventTypes: Set<String>? = [ThemeChosen.type]
    private(set) var chosen: Register<String>?
    mutating func fold(_ event: Event) {
        guard let theme = try? event.payload(as: ThemeChosen.self) else { return }
        chosen.set(theme.name, event.lwwTimestamp)
    }
}

/// A device of the account, with a clock of its own.
private final class Device {
    static let hour: Int64 = 3_600_000
    static let start: Int64 = 1_800_000_000_000
    private let files = InMemoryFileSystem()
    private let clock: VirtualClock
    private let number: Int
    var store: OfflineStore

    init(_ number: Int, ahead: Int64 = 0) async throws {
        self.number = number
        clock = VirtualClock(milliseconds: Self.start + ahead)
        store = try await Self.open(files, number, clock)
    }

    private static func open(
        _ files: InMemoryFileSystem, _ number: Int, _ clock: VirtualClock
    ) async throws -> OfflineStore {
        let random = Mutex(SeededRandom(seed: UInt64(number) << 32 + UInt64(files.usedBytes)))
        return try await OfflineStore.open(
            at: URL(filePath: "/log"), rules: [.of(ThemeChosen.self, action: "CHOOSE_THEME")],
            views: [Theme.self], compaction: nil,
            environment: LogEnvironment(
                fileSystem: files, now: { clock.milliseconds },
                random: { random.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) } }))
    }

    func reopen(withoutCheckpoints: Bool = false) async throws {
        try await store.close()
        if withoutCheckpoints {
            for path in files.image.keys where path.contains("/checkpoints/") { files[path] = nil }
        }
        store = try await Self.open(files, number, clock)
    }

    func move(by milliseconds: Int64) { clock.milliseconds += milliseconds }
    func setClock(_ milliseconds: Int64) { clock.milliseconds = milliseconds }

    /// Receives all events of another device.
    func receive(from other: Device) async throws {
        var events: [ForeignEvent] = []
        let last = await other.store.events.lastDurable.rawValue
        for position in 1...max(1, last) {
            guard try await other.store.events.event(at: Position(position)) != nil else {
                continue
            }
            let array = try await other.store.events.jsonArray(of: [Position(position)])
            let event = try ForeignEvent(Array(array.dropFirst().dropLast()).span.bytes)
            if !event.draft.type.hasPrefix("daybook.sync.") { events.append(event) }
        }
        _ = try await store.events.receive(events)
    }

    /// The server settles the outbox; compaction removes the replaced events.
    func compact() async throws -> Int {
        var record = SyncSettled(by: store.events.incarnation)
        let outbox = store.view(Outbox.self)
        record.applied = outbox.ranges(of: Set(outbox.entries.map(\.position)))
        if !record.isEmpty { try await store.events.append(record: record) }
        try store.events.log.roll()
        return try await store.compact().removed
    }

    func choose(_ theme: String) async throws {
        try await store.write { transaction in
            let known = transaction.view(Theme.self).chosen
            try transaction.append(ThemeChosen(name: theme), replacing: known?.lwwTimestamp)
        }
    }
}

/// The value that a change sets, as a user sees it.
private enum Place: Hashable {
    case note(String)
    case saved(String)
    case pruning, storage, course, review, theme

    func value(in store: OfflineStore) -> String? {
        switch self {
        case .note(let id): store.view(NotesView.self)[id]?.content
        case .saved(let city): "\(store.view(CitiesView.self).isSaved(city, by: "u"))"
        case .pruning: "\(store.view(PreferencesView.self)["u"].pruneAfterDays)"
        case .storage: "\(store.view(PreferencesView.self)["u"].maxStorageLimit)"
        case .course: store.view(ProgressView.self).activeCourse(of: "u")
        case .review: store.view(ProgressView.self).courses(of: "u").first.map { "\($0.itemsSeen)" }
        case .theme: store.view(Theme.self).chosen?.value
        }
    }
}

@Suite struct ReplacingTests {
    private static let aheads: [Int64] = [Device.hour, 4 * 365 * 24 * Device.hour, 1, 299_999]

    @Test(.verifies("VIEW-27", "LINE-7"), arguments: aheads)
    func `a user's change takes effect, also after the clock was ahead`(
        ahead: Int64
    ) async throws {
        let device = try await Device(1, ahead: ahead)
        var store = device.store
        let note = try await store.notes.add("one", city: "oslo", by: "u")
        try await store.cities.save("oslo", by: "u")
        try await store.cities.save("bergen", by: "u")
        try await store.cities.unsave("bergen", by: "u")
        try await store.preferences.update(for: "u") { $0.pruneAfterDays = 1 }
        try await store.progress.activateCourse("one", by: "u")
        try await store.progress.completeReview(
            "r", course: "c", by: "u", itemsSeen: 1, itemsCorrect: 1)
        try await device.choose("one")
        device.move(by: -ahead)
        try await store.notes.update(note.id, "two", by: "u")
        try await store.cities.unsave("oslo", by: "u")
        try await store.cities.save("bergen", by: "u")
        try await store.preferences.update(for: "u") {
            $0.pruneAfterDays = 2
            $0.autoSync = false
        }
        try await store.progress.activateCourse("two", by: "u")
        try await store.progress.completeReview(
            "r", course: "c", by: "u", itemsSeen: 2, itemsCorrect: 1)
        try await device.choose("two")
        // Once more, over a value that is a millisecond ahead of the one before.
        let theme = store.view(Theme.self).chosen
        try await store.append(ThemeChosen(name: "three"), replacing: theme?.lwwTimestamp)
        for _ in 0..<3 {
            #expect(store.view(NotesView.self)[note.id]?.content == "two")
            #expect(store.view(CitiesView.self).cityIDs == ["bergen"])
            #expect(store.view(PreferencesView.self)["u"].pruneAfterDays == 2)
            #expect(!store.view(PreferencesView.self)["u"].autoSync)
            #expect(store.view(ProgressView.self).activeCourse(of: "u") == "two")
            #expect(store.view(ProgressView.self).courses(of: "u").map(\.itemsSeen) == [2])
            #expect(store.view(Theme.self).chosen?.value == "three")
            try await device.reopen(withoutCheckpoints: true)
            store = device.store
        }
        // A change that replaces nothing has the clock's time.
        try await store.notes.add("three", city: "oslo", by: "u")
        let last = await store.events.lastDurable
        let time = try await store.events.event(at: last)?.time.milliseconds
        #expect(try #require(time) - Device.start <= min(ahead + 10, 300_000))
        try await store.close()
    }

    @Test(.verifies("VIEW-27", "CITY-12"))
    func `a city that is saved again is present, although its removal has a later time`()
        async throws
    {
        let device = try await Device(1, ahead: Device.hour)
        let store = device.store
        try await store.preferences.update(for: "u") { $0.autoDownloadEnabled = true }
        try await store.cities.save("oslo", by: "u")
        let job = try await store.downloads.queue("oslo")
        try await store.downloads.cancel(job.id)
        #expect(try await store.downloads.queueWanted(for: "u") == [])
        device.move(by: -Device.hour)
        try await store.cities.save("oslo", by: "u")
        #expect(try await store.downloads.queueWanted(for: "u") == ["oslo"])
        try await store.close()
    }

    @Test(.verifies("LINE-7"))
    func `events of one transaction count in their order, whatever the time of the first`()
        async throws
    {
        let device = try await Device(1, ahead: Device.hour)
        try await device.choose("one")
        device.move(by: -Device.hour)
        try await device.store.write { transaction in
            let known = transaction.view(Theme.self).chosen
            var early = try EventDraft(ThemeChosen(name: "two"))
            early.time = transaction.now
            transaction.append(early, replacing: known?.lwwTimestamp)
            try transaction.append(ThemeChosen(name: "three"))
        }
        #expect(device.store.view(Theme.self).chosen?.value == "three")
        try await device.store.close()
    }

    @Test(.verifies("LINE-7"))
    func `if no LWW timestamp can be greater, the change is refused and nothing is recorded`()
        async throws
    {
        let device = try await Device(1)
        let store = device.store
        let last = Timestamp.range.upperBound
        for (milliseconds, isRefused) in [(last - 1, false), (last, true)] {
            let time = Timestamp(milliseconds: milliseconds)
            let line =
                #"{"specversion":"1.0","id":"\#(UUID().text)","source":"urn:uuid:"#
                + #"ffffffff-0000-4000-bfff-ffffffffffff","sequence":"00000000000000000007","#
                + #""type":"daybook.course.activated","subject":"u","partitionkey":"course:u","#
                + #""time":"\#(time)","data":{"userId":"u","courseId":"theirs"}}"#
            _ = try await store.events.receive([ForeignEvent(Array(line.utf8).span.bytes)])
            let before = await store.events.lastDurable
            do {
                try await store.progress.activateCourse("ours", by: "u")
                #expect(!isRefused)
                #expect(store.view(ProgressView.self).activeCourse(of: "u") == "ours")
            } catch let error as EventError {
                #expect(isRefused)
                #expect(error.code == .refused)
                #expect(error.detail.contains("9999-12-31T23:59:59.999Z"))
                #expect(await store.events.lastDurable == before)
            }
            try await store.notes.add("other things go on", city: "c", by: "u")
        }
        try await store.close()
    }

    @Test(.verifies("LINE-7"))
    func `a time that an app gives is at most 24 hours ahead; history keeps its times`()
        async throws
    {
        let device = try await Device(1)
        let store = device.store
        let day = 24 * Device.hour
        func draft(_ ahead: Int64) throws -> EventDraft {
            try EventDraft(
                ThemeChosen(name: "\(ahead)"), time: Timestamp(milliseconds: Device.start + ahead))
        }
        var known = try draft(day)
        try await store.events.append(contentsOf: [known])
        for write in [false, true] {
            let far = try draft(day + 1)
            let error = await #expect(throws: EventError.self) {
                if write {
                    try await store.write { $0.append(far) }
                } else {
                    try await store.events.append(contentsOf: [far, try draft(0)])
                }
            }
            #expect(error?.code == .refused)
            #expect(error?.detail.contains(far.id.text) == true)
        }
        #expect(await store.events.lastDurable == Position(1))
        // A recorded event is recognised, whatever the clock shows by now.
        device.move(by: -2 * day)
        #expect(try await store.events.append(contentsOf: [known])[0].isNew == false)
        known.id = UUID()
        try await store.events.append(history: [known])
        #expect(try await store.events.event(at: Position(2))?.time == known.time)
        try await store.close()
    }

    @Test(.verifies("VIEW-27", "VIEW-2", "CMP-1"))
    func `a change that saw a value replaces it, on all devices, whatever their clocks say`()
        async throws
    {
        let removed = Mutex(0)
        try await Property.check("replacing", runs: Self.runs) { choices in
            var history = try await History(devices: choices.int(in: 1...3))
            for _ in 0..<choices.int(in: 2...24) {
                let gone = try await history.step(&choices)
                removed.withLock { $0 += gone }
            }
            try await history.finish()
        }
        #expect(removed.withLock { $0 } > 0)
    }

    /// Fewer runs without optimisation.
    private static let runs: Int = {
        #if DEBUG
            30
        #else
            1_000
        #endif
    }()
}

/// The changes of some devices, each with the changes that it had seen.
private struct History {
    /// A change that a user made.
    private struct Change {
        let place: Place
        let value: String?
        let isDeletion: Bool
        /// The earlier changes of the same value on the device.
        let seen: Set<Int>
    }

    private let devices: [Device]
    private var changes: [Change] = []
    /// The changes of each device.
    private var held: [Set<Int>]
    private var notes: [String] = []

    init(devices count: Int) async throws {
        var devices: [Device] = []
        for number in 0..<count { devices.append(try await Device(number)) }
        self.devices = devices
        held = devices.map { _ in [] }
    }

    /// - Returns: the number of events that compaction removed.
    mutating func step(_ choices: inout Choices) async throws -> Int {
        let number = choices.int(in: 0...devices.count - 1)
        let device = devices[number]
        switch choices.int(in: 0...11) {
        case 0, 1:
            let year = 365 * 24 * Device.hour
            let jump = choices.element(
                of: [
                    1, -1, 1_000, Device.hour, -Device.hour, 24 * Device.hour, 4 * year, -4 * year,
                ])
            choices.note("\(number): clock \(jump)")
            device.move(by: jump)
        case 2:
            choices.note("\(number): clock is right")
            device.setClock(Device.start)
        case 3, 4:
            let other = choices.int(in: 0...devices.count - 1)
            guard other != number else { return 0 }
            choices.note("\(number): receives from \(other)")
            try await device.receive(from: devices[other])
            held[number].formUnion(held[other])
        case 5:
            choices.note("\(number): compacts")
            return try await device.compact()
        case 6:
            let withoutCheckpoints = choices.bool()
            choices.note("\(number): reopens, checkpoints lost: \(withoutCheckpoints)")
            try await device.reopen(withoutCheckpoints: withoutCheckpoints)
        default:
            try await change(&choices, on: number)
        }
        return 0
    }

    private mutating func change(_ choices: inout Choices, on number: Int) async throws {
        let store = devices[number].store
        let value = "\(changes.count)"
        let place: Place
        var expected: String? = value
        var isDeletion = false
        switch choices.int(in: 0...7) {
        case 0:
            let note = try await store.notes.add(value, city: "c", by: "u")
            notes.append(note.id)
            place = .note(note.id)
        case 1:
            let known = notes.filter { store.view(NotesView.self)[$0] != nil }
            guard !known.isEmpty else { return }
            let id = choices.element(of: known)
            place = .note(id)
            isDeletion = choices.bool(oneIn: 5)
            if isDeletion {
                expected = nil
                try await store.notes.delete(id, by: "u")
            } else {
                try await store.notes.update(id, value, by: "u")
            }
        case 2:
            let city = choices.element(of: ["oslo", "bergen"])
            place = .saved(city)
            let isSaved = store.view(CitiesView.self).isSaved(city, by: "u")
            expected = "\(!isSaved)"
            if isSaved {
                try await store.cities.unsave(city, by: "u")
            } else {
                try await store.cities.save(city, by: "u")
            }
        case 3:
            place = .pruning
            expected = "\(changes.count + 1)"
            let days = changes.count + 1
            let withStorage = choices.bool()
            let bytes = OfflinePreferences.storageLimits.lowerBound + days
            try await store.preferences.update(for: "u") {
                $0.pruneAfterDays = days
                if withStorage { $0.maxStorageLimit = bytes }
            }
            if withStorage { add(.storage, "\(bytes)", false, number) }
        case 4:
            place = .course
            try await store.progress.activateCourse(value, by: "u")
        case 5:
            place = .review
            try await store.progress.completeReview(
                "r", course: "c", by: "u", itemsSeen: changes.count, itemsCorrect: 0)
        default:
            place = .theme
            try await devices[number].choose(value)
        }
        choices.note("\(number): \(place) = \(expected ?? "deleted")")
        add(place, expected, isDeletion, number)
        let shown = place.value(in: store)
        guard shown == expected else {
            throw Swallowed(description: "\(place) is \(shown ?? "nil"), not \(expected ?? "nil")")
        }
    }

    private mutating func add(_ place: Place, _ value: String?, _ isDeletion: Bool, _ number: Int) {
        let seen = held[number].filter { changes[$0].place == place }
        held[number].insert(changes.count)
        changes.append(Change(place: place, value: value, isDeletion: isDeletion, seen: seen))
    }

    /// All devices have the same values, and no value is shown that a change had seen and replaced.
    func finish() async throws {
        for _ in 0..<2 {
            for device in devices {
                for other in devices where other !== device {
                    try await device.receive(from: other)
                }
            }
        }
        let replaced = changes.reduce(into: Set<Int>()) { $0.formUnion($1.seen) }
        for place in Set(changes.map(\.place)) {
            let own = changes.indices.filter { changes[$0].place == place }
            let isDeleted = own.contains { changes[$0].isDeletion }
            let possible = own.filter { !replaced.contains($0) }.map { changes[$0].value }
            for device in devices {
                let shown = place.value(in: device.store)
                let isRight = isDeleted ? shown == nil : possible.contains(shown)
                guard isRight, shown == place.value(in: devices[0].store) else {
                    throw Swallowed(
                        description: "\(place) is \(shown ?? "nil"), possible are \(possible)")
                }
            }
        }
        for device in devices { try await device.store.close() }
    }

    private struct Swallowed: Error, CustomStringConvertible { let description: String }
}
