// Several devices of one account, each with the whole client, on one server. They change the same data, sync,
// crash, are restored from backups and installed anew. In the end all must show the same views, those that
// follow from the server's events. Spec/protocol/sync-simulation.md.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import Foundation

/// A history of several devices.
final class DeviceHistory {
    static let labels = [
        "devices: synced", "devices: events received", "devices: conflicts resolved",
        "devices: killed", "devices: power cut", "devices: image came back",
        "devices: copy came back", "devices: installed anew", "devices: compacted",
        "devices: fork noticed", "devices: discarded", "devices: retried by hand",
        "devices: a clock is a year off", "devices: checkpoint", "device histories",
    ]

    private let choices: SharedChoices
    private let server: HistoryServer
    private let clock = VirtualClock()
    private let ids: LogEnvironment
    private var devices: [Device] = []
    private(set) var story: [String] = []
    private var events = 0

    private static let yearMilliseconds: Int64 = 365 * 86_400_000
    private static let eventsMax = 60

    init(_ choices: SharedChoices, _ server: HistoryServer) {
        self.choices = choices
        self.server = server
        ids = clock.environment(
            fileSystem: SimulatedFileSystem(), seed: choices.draw { $0.next(below: 1 << 32) })
    }

    private func draw(_ range: ClosedRange<Int>) -> Int { choices.draw { $0.int(in: range) } }

    private func appendStory(_ line: @autoclosure () -> String) { story.append(line()) }

    // MARK: Running

    func run() async throws {
        for name in 0..<draw(2...3) { devices.append(try await makeDevice(name)) }
        for _ in 0..<draw(1...40) {
            clock.advance(by: .milliseconds(draw(1...5_000)))
            let device = devices[draw(0...devices.count - 1)]
            switch draw(0...17) {
            case 0...6: try await append(device)
            case 7...10: try await sync(device)
            case 11: try await crash(device)
            case 12: try await checkpointOrCompact(device)
            case 13: takeBackup(device)
            case 14: try await restore(device)
            default: try await decide(device)
            }
        }
        try await end()
        choices.count("device histories")
    }

    private func makeDevice(_ name: Int) async throws -> Device {
        let faults = choices.draw { (choices: inout Choices) -> [NetworkFault] in
            // Without this, faults that park events would be rare.
            if choices.bool(oneIn: 3) { return [.verdictsRetry, .malformedRequest] }
            return NetworkFault.allCases.filter { _ in choices.bool(oneIn: 6) }
        }
        let skew = [0, 0, Self.yearMilliseconds, -Self.yearMilliseconds, 90_000][draw(0...4)]
        if abs(skew) == Self.yearMilliseconds { choices.count("devices: a clock is a year off") }
        let resolvers: [any ConflictResolver] = [KeepMine(), KeepTheirs(), Self.merge]
        let device = Device(
            name, skew: skew,
            network: SimulatedNetwork(
                choices, clock: clock, replicas: server.replicas(choices, clock), faults: faults),
            resolver: resolvers[draw(0...2)])
        try await open(device)
        return device
    }

    /// A resolver with the same result on all devices.
    private static let merge = Merge { conflict in
        guard let mine = conflict.pending.last?.content, mine.type == NoteUpdated.type,
            let current = conflict.current, current.type != NoteDeleted.type
        else { return nil }
        let note = try NoteUpdated(json: mine.json ?? [])
        return try EventDraft(
            NoteUpdated(noteId: note.noteId, content: "merged", updatedBy: note.updatedBy))
    }

    // MARK: Actions

    private func open(_ device: Device) async throws {
        device.lives += 1
        let base = clock.environment(
            fileSystem: device.files,
            seed: UInt64(device.name) << 32 &+ device.lives &+ UInt64(draw(0...1_000_000)))
        var environment = base
        let skew = device.skew
        environment.now = { base.now() + skew }
        device.store = try await OfflineStore.open(
            at: URL(filePath: device.folder, directoryHint: .isDirectory), compaction: nil,
            environment: environment)
        device.network.reconnect()
        let store = try device.requireStore()
        let missing = try await store.missing(of: device.acknowledged)
        guard missing.isEmpty else {
            throw HistoryFailure("I1: device \(device.name) has lost the events \(missing)")
        }
    }

    private func append(_ device: Device) async throws {
        guard events < Self.eventsMax else { return }
        events += 1
        // Two logs with one incarnation must not record at the same time: their LWW timestamps would be
        // equal.
        clock.advance(by: .milliseconds(1))
        let store = try device.requireStore()
        let subject = "\(draw(0...2))"
        let id = UUID(integer: ids.randomUUID())
        let notes = store.view(NotesView.self)
        let base = notes.head(subject)
        let draft: EventDraft
        switch draw(0...8) {
        case 0: draft = try EventDraft(CitySaved(userId: "u", cityId: subject), id: id)
        case 1: draft = try EventDraft(CityUnsaved(userId: "u", cityId: subject), id: id)
        case 2, 3:
            draft = try EventDraft(
                NoteAdded(noteId: subject, cityId: "c", content: "\(events)", createdBy: "u"),
                id: id)
        case 4, 5, 6:
            draft = try EventDraft(
                NoteUpdated(noteId: subject, content: "\(events)", updatedBy: "u"), id: id,
                basedOn: base)
        case 7 where draw(0...2) == 0:
            draft = try EventDraft(
                NoteDeleted(noteId: subject, deletedBy: "u"), id: id, basedOn: base)
        default:
            draft = try EventDraft(
                LessonCompleted(
                    userId: "u", courseId: "c", lessonId: subject,
                    score: Double(draw(0...4)) / 4, durationSeconds: nil), id: id)
        }
        appendStory("\(device.name): \(draft.type) \(subject)")
        do {
            try await store.events.append(contentsOf: [draft])
        } catch let error as EventError
            where notes.isDeleted(subject) && error.code == .refused
        {
            choices.count("devices: a change of a deleted note is refused")
            return
        }
        device.acknowledged.insert(id)
    }

    private func sync(_ device: Device, isLast: Bool = false) async throws {
        let store = try device.requireStore()
        let incarnation = store.events.incarnation
        var options = Replayer.Options()
        options.requestsMax = 1
        options.resolver = device.resolver
        let clock = clock
        let replayer = Replayer(
            store.events, transport: device.network, options: options,
            sleep: { duration in
                // The end of the run, which races against a request, and not a wait of the replayer.
                guard duration < .seconds(1_000_000) else {
                    return try await Task.sleep(for: duration)
                }
                clock.advance(by: duration)
            })
        let end = Timestamp(milliseconds: store.events.deviceNow + 1_000_000_000_000)
        let report = try await replayer.run(until: isLast ? .at(end) : .whenNothingMoves)
        choices.count("devices: synced")
        choices.count("devices: events received", by: report.received)
        choices.count("devices: conflicts resolved", by: report.resolved)
        if store.events.incarnation != incarnation { choices.count("devices: fork noticed") }
        appendStory(
            "\(device.name): synced, \(report.applied) applied, \(report.received) received, "
                + "\(report.resolved) resolved, \(report.pending) left: \(report.message ?? "-")")
        device.acknowledged.subtract(try await store.retractedIDs())
    }

    private func crash(_ device: Device) async throws {
        let isKill = draw(0...1) == 0
        choices.count(isKill ? "devices: killed" : "devices: power cut")
        appendStory("\(device.name): \(isKill ? "killed" : "power cut")")
        device.files.cutPower(at: device.files.operations)
        try? await device.requireStore().close()
        device.store = nil
        device.files =
            isKill ? device.files.afterKill() : choices.draw { device.files.afterPowerCut(&$0) }
        try await open(device)
    }

    private func checkpointOrCompact(_ device: Device) async throws {
        let store = try device.requireStore()
        if draw(0...1) == 0 {
            choices.count("devices: checkpoint")
            appendStory("\(device.name): checkpoint")
            try await store.events.checkpoint()
        } else {
            choices.count("devices: compacted")
            appendStory("\(device.name): compact")
            try await store.events.flush()
            try store.events.log.roll()
            try await store.compact()
        }
    }

    private func takeBackup(_ device: Device) {
        appendStory("\(device.name): backup")
        device.backup = Device.Backup(
            files: device.files.afterKill(), folder: device.folder,
            acknowledged: device.acknowledged)
    }

    /// Restores the device from an image of its disk or a copy of its folder, or installs it anew.
    private func restore(_ device: Device) async throws {
        let how = draw(0...2)
        guard how == 2 || device.backup != nil else { return }
        try await device.requireStore().close()
        device.store = nil
        if how < 2, let backup = device.backup {
            device.files = backup.files.afterKill()
            device.folder = backup.folder
            device.acknowledged = backup.acknowledged
            choices.count(how == 0 ? "devices: image came back" : "devices: copy came back")
            appendStory("\(device.name): \(how == 0 ? "image" : "copy") came back")
            if how == 1 {
                let target = "/copy-\(device.lives)"
                try device.files.copyFolder(device.folder, to: target)
                device.folder = target
            }
        } else {
            choices.count("devices: installed anew")
            appendStory("\(device.name): installed anew")
            device.files = SimulatedFileSystem()
            device.folder = "/log"
            device.acknowledged = []
            device.backup = nil
        }
        try await open(device)
    }

    /// Retries or discards the first event that is parked or in conflict, as a user does.
    private func decide(_ device: Device) async throws {
        let store = try device.requireStore()
        guard let entry = store.outbox.entries.first(where: { $0.status != .pending }) else {
            return
        }
        if draw(0...1) == 0 {
            choices.count("devices: retried by hand")
            appendStory("\(device.name): retry \(entry.id)")
            try await store.outbox.retry(entry.id)
        } else {
            choices.count("devices: discarded")
            appendStory("\(device.name): discard \(entry.id)")
            let discarded = try await store.outbox.discard(entry.id, withDependents: true)
            device.acknowledged.subtract(discarded)
        }
    }

    // MARK: The end

    /// Stops the faults, syncs all devices, and checks that all show the same.
    private func end() async throws {
        appendStory("faults stop")
        server.calm()
        for device in devices {
            device.network.calm()
            await device.network.deliverAll()
        }
        for _ in 0..<4 {
            for device in devices {
                clock.advance(by: .seconds(7_200))
                let store = try device.requireStore()
                for entry in Array(store.outbox.entries) where entry.status == .failed {
                    try await store.outbox.retry(entry.id)
                }
                for entry in Array(store.outbox.entries) where entry.status == .conflict {
                    try await store.outbox.resolve(entry.id, .keepTheirs)
                }
                try await sync(device, isLast: true)
            }
        }
        try await check()
        for device in devices { try await device.requireStore().close() }
    }

    private func check() async throws {
        server.resetReading()
        var serverIDs: Set<UUID> = []
        var history = EventHistory()
        for line in try await server.newLines() {
            let event = try ForeignEvent(line.span.bytes)
            guard serverIDs.insert(event.draft.id).inserted else {
                throw HistoryFailure("I10: the server has the event \(event.draft.id) twice")
            }
            history.addForeign(event.draft, source: event.source, sequence: event.sequence)
        }
        let expected = Self.rows(of: OfflineModel.views.map { $0.folded(history.events) })
        for device in devices {
            let store = try device.requireStore()
            let outbox = store.view(Outbox.self)
            if let stuck = outbox.entries.first(where: { _ in true }) {
                throw HistoryFailure(
                    "I12: \(outbox.count) events of device \(device.name) are still pending; first "
                        + "\(stuck.action) \(stuck.status) \(stuck.errorMessage ?? "")")
            }
            let lost = device.acknowledged.subtracting(serverIDs)
            guard lost.isEmpty else {
                throw HistoryFailure(
                    "I10: the server lacks the events \(lost) of device \(device.name)")
            }
            let shown = Self.rows(of: OfflineModel.views.map { store.state(of: $0) })
            guard shown == expected else {
                let difference = shown.difference(from: expected).map { "\($0)" }
                throw HistoryFailure(
                    "the views of device \(device.name) differ from those of the server's events:\n"
                        + difference.joined(separator: "\n"))
            }
        }
    }

    private static func rows(of views: [any ListableView]) -> [String] {
        views.flatMap { view in
            view.rows().map { row in
                type(of: view).name + " "
                    + row.fields.map { "\($0.name)=\(String(decoding: $0.json, as: UTF8.self))" }
                    .joined(separator: " ")
            }
        }
    }
}

extension ListableView {
    fileprivate static func folded(_ events: [Event]) -> any ListableView {
        var view = Self()
        for event in events { view.fold(event) }
        return view
    }
}

extension OfflineStore {
    fileprivate func state<View: ListableView>(of view: View.Type) -> any ListableView {
        self.view(view)
    }

    /// The ids that are neither stored nor removed by compaction.
    fileprivate func missing(of ids: Set<UUID>) async throws -> Set<UUID> {
        try ids.filter {
            try events.log.line(id: $0.integer) == nil && events.log.removed(id: $0.integer) == nil
        }
    }

    /// The ids of events that records of this log have discarded.
    fileprivate func retractedIDs() async throws -> Set<UUID> {
        var ids: Set<UUID> = []
        try await events.flush()
        try events.log.forEachEvent(from: Position(1), catalogue: events.catalogue) { event in
            if event.type == EventsDiscarded.type, event.isOwn,
                let record = try? EventsDiscarded(json: event.content.json ?? [])
            {
                ids.formUnion(record.events.map(\.id))
            }
            return true
        }
        return ids
    }
}
