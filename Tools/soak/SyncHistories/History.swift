// One history: an app with a log on a simulated disk, a replayer, a network and the server, on one
// virtual clock and one row of choices. Everything happens in one order: while a request is under way
// or the replayer waits, the rest of the world takes its turn (`step`). The app may be killed and its
// power cut at any operation, in recovery as well. Checks are in HistoryModel. Called by
// SyncHistories. Spec/sync-simulation.md.

import Daybook
import DaybookTestKit
import Foundation

/// One history of client, network and server.
actor History {
    static let labels = [
        "client: killed", "client: power cut", "client: sync failed", "client: died while syncing",
        "client: died while opening", "client: image came back", "client: backup came back",
        "client: closed and opened",
        "client: suspended", "client: two syncs at once", "client: upgraded",
        "client: compacted", "client: checkpoint", "client: appended while syncing",
        "client: fork noticed", "events settled", "events parked", "events in conflict",
        "events charged", "events retried in vain", "histories",
    ]

    private struct Image {
        var files: SimulatedFileSystem
        var folder: String
        var model: HistoryModel
    }

    private enum Death { case kill, powerCut, failedSync }

    /// What the rest of the world does while the replayer waits.
    private enum Deed: CaseIterable {
        case append, flush, doom, tidy, note, reusedID, token, image, lateRequests, secondSync
        case suspend
    }

    private let choices: SharedChoices
    private let server: HistoryServer
    private let clock = VirtualClock()
    /// Where the random numbers of the app, and of each of its lives, begin.
    private let seed: UInt64
    private let ids: LogEnvironment
    private var network: SimulatedNetwork?
    private var files = SimulatedFileSystem()
    /// The log's folder.
    private var folder = "/log"
    private var copies = 0
    private var store: OfflineStore?
    private var model = HistoryModel()
    /// What the server holds, as far as it has been read.
    private var held: [UUID: HistoryModel.Held] = [:]
    private var image: Image?
    /// How the app is going to die, or has.
    private var death: Death?
    private var isSyncing = false
    private var isCalm = false
    /// What happens in this history.
    private var deeds: [Deed] = []
    private var clientToken: String?
    /// The next event gets an id that another device has used.
    private var isReusing = false
    private var tokens = 0
    private var lives = 0
    private static let eventsMax = 100
    private var requests = 0
    /// What the last run of the replayer reported, if it came to its end.
    private var lastReport: SyncReport?
    /// Requests of a history that has gone astray.
    private static let requestsMax = 2_000
    /// The first thing that was wrong while nobody could throw.
    private var failure: (any Error)?
    /// What happened, for a failure report.
    private(set) var story: [String] = []

    init(_ choices: SharedChoices, _ server: HistoryServer) {
        self.choices = choices
        self.server = server
        seed = choices.draw { $0.next(below: 1 << 32) }
        ids = clock.environment(fileSystem: files, seed: seed)
    }

    /// A hash of what went over the network.
    var traceHash: UInt64 { network?.traceHash ?? 0 }

    private func draw(_ range: ClosedRange<Int>) -> Int { choices.draw { $0.int(in: range) } }

    private func tell(_ line: @autoclosure () -> String) { story.append(line()) }

    // MARK: The whole

    func live() async throws {
        // Swarm: every history has faults of its own.
        let faults = choices.draw { choices in
            let oneIn = choices.element(of: [3, 8, 20, 0] as [UInt64])
            if oneIn == 0 { return [choices.element(of: NetworkFault.allCases)] }
            return NetworkFault.allCases.filter { _ in choices.bool(oneIn: oneIn) }
        }
        deeds = choices.draw { choices in
            let oneIn = choices.element(of: [2, 4] as [UInt64])
            return [.append, .append] + Deed.allCases.filter { _ in choices.bool(oneIn: oneIn) }
        }
        let network = SimulatedNetwork(
            choices, clock: clock, replicas: server.replicas(choices, clock), faults: faults,
            meanwhile: { await self.step() })
        self.network = network
        try await open()
        var sessions = 0
        while sessions < 8, draw(0...5) > 0 {
            sessions += 1
            for _ in 0..<draw(0...3) { await step() }
            if death == nil, draw(0...3) > 0 { try await sync() }
            clock.advance(by: .milliseconds(draw(0...20_000)))
            if let failure { throw failure }
            if death != nil {
                try await reopen()
            } else if draw(0...5) == 5 {
                try await closeAndOpen()
            }
        }
        try await end(network)
        choices.count("histories")
    }

    /// Faults stop: all that nobody holds arrives, and nothing else changes (I12).
    private func end(_ network: SimulatedNetwork) async throws {
        tell("faults stop")
        isCalm = true
        network.calm()
        server.calm()
        if death != nil { try await reopen() }
        await network.deliverAll()
        for _ in 0..<3 {
            clock.advance(by: .seconds(7_200))
            clientToken = server.token
            try await sync()
            if let failure { throw failure }
        }
        let outbox = try opened().view(Outbox.self)
        try model.checkNothingMoves(Array(outbox.entries()))
        guard lastReport?.pending == outbox.count, lastReport?.held == outbox.count else {
            throw HistoryFailure(
                "\(outbox.count) are held; the report says \(lastReport?.held ?? -1)")
        }
        held = [:]
        server.readAgain()
        try await check(try opened())
        let shipped = model.events.values.count { model.isShipped($0) }
        choices.count("events settled", by: shipped - outbox.count)
        for entry in outbox.entries() {
            if entry.status == .failed { choices.count("events parked") }
            if entry.status == .conflict { choices.count("events in conflict") }
            if entry.retryCount == 5 { choices.count("events retried in vain") }
        }
        try await opened().close()
        store = nil
    }

    private func opened() throws -> OfflineStore {
        guard let store else { throw HistoryFailure("the store is not open") }
        return store
    }

    // MARK: Shipping

    /// The client's end of the line: remembers what it was told.
    private struct Ear: Transport {
        let history: History
        let network: SimulatedNetwork

        func send(_ batch: [UInt8], token: String?) async throws -> TransportReply {
            let sent = try await history.check(batch)
            let reply = try await network.send(batch, token: token)
            await history.hear(reply, to: sent)
            return reply
        }
    }

    private struct Tokens: Credentials {
        let history: History
        func token() async throws -> String? { try await history.token() }
        func refresh(refused: String?) async -> String? { await history.refresh() }
    }

    private func token() throws -> String? {
        if !isCalm, draw(0...19) == 19 { throw CancellationError() }
        return clientToken
    }

    private func refresh() -> String? {
        if isCalm || draw(0...3) < 3 { clientToken = server.token }
        return clientToken
    }

    private func hear(_ reply: TransportReply, to sent: [UUID]) { model.hear(reply, to: sent) }

    /// Checks what the replayer is about to send.
    ///
    /// - Returns: the ids of the events.
    private func check(_ batch: [UInt8]) throws -> [UUID] {
        guard case .array(let events) = try JSONValue(batch.span.bytes) else {
            throw HistoryFailure("what is sent is no batch")
        }
        requests += 1
        if requests > Self.requestsMax, failure == nil {
            failure = HistoryFailure("I12: the replayer never comes to rest")
            network?.hangUp()
        }
        let ids = events.compactMap { event -> UUID? in
            guard case .object(let event) = event else { return nil }
            return event["id"]?.stringValue.flatMap(UUID.init(uuidString:))
        }
        do {
            try model.check(
                batch: ids, unsettled: Array(try opened().view(Outbox.self).entries()))
        } catch {
            // The replayer takes every error for one of the network.
            failure = failure ?? error
            throw error
        }
        return ids
    }

    /// Ships what waits.
    ///
    /// - Parameter again: whether another run is under way, as when an app syncs in the background
    ///   and its user asks for it, too.
    private func sync(again: Bool = false) async throws {
        guard let network else { return }
        lastReport = nil
        let store = try opened()
        tell(again ? "sync, although one is under way" : "sync")
        if again { choices.count("client: two syncs at once") }
        isSyncing = true
        defer { isSyncing = again }
        let name = store.events.incarnation
        do {
            let replayer = Replayer(
                store.events, transport: Ear(history: self, network: network),
                credentials: Tokens(history: self), sleep: { try await self.sleep($0) })
            // A run with an end far away lives through pauses and long waits.
            let end = Timestamp(milliseconds: clock.milliseconds + 1_000_000_000_000)
            let report = try await replayer.run(
                until: isCalm || draw(0...1) == 0 ? .whenNothingMoves : .at(end))
            tell(
                "synced: \(report.applied) applied, \(report.pending) left: \(report.message ?? "-")"
            )
            if death == nil, !again {
                lastReport = report
                model.durable = await store.events.lastDurable
                guard store.view(Outbox.self).through <= model.durable else {
                    throw HistoryFailure("a run has returned, and its records are not on the disk")
                }
            }
        } catch let error where !(error is HistoryFailure) {
            try died(of: error)
        }
        if let failure { throw failure }
        if store.events.incarnation != name { choices.count("client: fork noticed") }
        if death != nil {
            choices.count("client: died while syncing")
        } else {
            try await check(store)
        }
    }

    private func sleep(_ duration: Duration) async throws {
        // Nobody waits so long: it is the end of a run that is set against a request.
        guard duration < .seconds(1_000_000) else { return try await Task.sleep(for: duration) }
        clock.advance(by: duration)
        await step()
        if death != nil || failure != nil { throw CancellationError() }
    }

    // MARK: Dying and coming back

    /// An error is right only where the app was meant to die.
    private func died(of error: any Error) throws {
        guard death != nil else { throw error }
        tell("dead: \(error)")
        network?.hangUp()
    }

    /// The app will die, some operations of the disk from now.
    private func doom() {
        guard death == nil else { return }
        let operations = choices.draw { $0.bool() ? 0 : $0.int(in: 1...12) }
        switch draw(0...4) {
        case 0, 1: death = .kill
        case 2, 3: death = .powerCut
        default: death = .failedSync
        }
        if death == .failedSync {
            files.failSync(from: files.operations + operations)
            choices.count("client: sync failed")
        } else {
            files.cutPower(at: files.operations + operations)
            choices.count(death == .kill ? "client: killed" : "client: power cut")
            if operations == 0 { network?.hangUp() }
        }
        tell("\(death.map { "\($0)" } ?? "") in \(operations) operations")
    }

    private func reopen() async throws {
        network?.hangUp()
        store = nil
        files = remains(death)
        death = nil
        // The server, too, goes on without the client.
        if !isCalm, draw(0...3) == 3, let image {
            choices.count("client: image came back")
            tell("an old image comes back")
            giveUp(for: image)
            if draw(0...1) == 1 {
                choices.count("client: backup came back")
                try copyFolder()
            }
        }
        for _ in 0..<3 where !isCalm && draw(0...5) == 5 {
            files.cutPower(at: files.operations + draw(0...20))
            let death: Death = draw(0...1) == 0 ? .kill : .powerCut
            do {
                _ = try await openStore()
            } catch {
                choices.count("client: died while opening")
                tell("died while opening")
            }
            files = remains(death)
        }
        try await open()
    }

    private func remains(_ death: Death?) -> SimulatedFileSystem {
        death == .powerCut ? choices.draw { files.afterPowerCut(&$0) } : files.afterKill()
    }

    private func giveUp(for image: Image) {
        var model = image.model
        model.abandoned = self.model.abandoned
        for known in Array(self.model.events.values) + self.model.inFlight {
            model.abandoned[known.id] = known
        }
        model.foreign = self.model.foreign
        model.shipsTicks = self.model.shipsTicks
        model.told = self.model.told
        self.model = model
        files = image.files.afterKill()
        folder = image.folder
    }

    /// Restores the log from a copy of its files, as a backup does: all is the same but the inodes.
    private func copyFolder() throws {
        copies += 1
        let target = "/copy-\(copies)"
        try copy(folder, to: target)
        folder = target
    }

    private func copy(_ folder: String, to target: String) throws {
        try files.createDirectory(target)
        for name in try files.list(folder).sorted() {
            if (try? files.list("\(folder)/\(name)")) != nil {
                try copy("\(folder)/\(name)", to: "\(target)/\(name)")
                continue
            }
            let file = try files.open("\(folder)/\(name)", .read)
            let bytes = try file.read(at: 0, count: try file.size())
            let new = try files.open("\(target)/\(name)", .createNew)
            try new.write(bytes, at: 0)
            try new.sync()
        }
        try files.syncDirectory(target)
    }

    private func closeAndOpen() async throws {
        choices.count("client: closed and opened")
        tell("close and open")
        try await opened().close()
        store = nil
        files = files.afterKill()
        try await open()
    }

    /// What an older version of the app has recorded is shipped by the newer one.
    private static let tickRule = EventRule(type: HistoryModel.tickType, action: "TICK") { _ in }

    private func openStore() async throws -> OfflineStore {
        lives += 1
        if !model.shipsTicks, draw(0...7) == 7 {
            model.shipsTicks = true
            choices.count("client: upgraded")
            tell("the app is upgraded")
        }
        return try await OfflineStore.open(
            at: URL(filePath: folder, directoryHint: .isDirectory),
            rules: model.shipsTicks ? [Self.tickRule] : [], compaction: nil,
            environment: clock.environment(
                fileSystem: files, seed: seed &+ UInt64(lives) << 32))
    }

    private func open() async throws {
        let store = try await openStore()
        self.store = store
        tell("opened at \(store.events.log.next)")
        let reader = LogReader(folder, fileSystem: files)
        var lines: [Event] = []
        try reader.forEachEvent(catalogue: store.events.catalogue) {
            lines.append($0)
            return true
        }
        try model.reopen(
            lines, next: store.events.log.next, compacted: try reader.compactedThrough())
        var folded = Outbox()
        for event in lines { folded.fold(event) }
        guard folded.entries().elementsEqual(store.view(Outbox.self).entries()) else {
            throw HistoryFailure("I9: the outbox is not what follows from the log")
        }
        network?.reconnect()
        try await check(store)
        if image == nil { takeImage() }
    }

    /// Somebody copies the disk, to put it back some day.
    private func takeImage() {
        image = Image(files: files.afterKill(), folder: folder, model: model)
    }

    // MARK: Checks

    private func check(_ store: OfflineStore) async throws {
        for line in try await server.newLines() {
            let draft = try LineDecoder.decode(line.span.bytes).draft
            let new = HistoryModel.Held(order: held.count, draft: draft)
            guard held.updateValue(new, forKey: draft.id) == nil else {
                throw HistoryFailure("I10: the server holds \(draft.id) twice")
            }
        }
        var unsettled: [Position: OutboxEntry] = [:]
        for entry in store.view(Outbox.self).entries() { unsettled[entry.position] = entry }
        choices.count("events charged", by: unsettled.values.count { $0.retryCount > 0 })
        try model.check(held, unsettled: unsettled)
    }

    // MARK: The rest of the world

    /// Something happens, or nothing.
    private func step() async {
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

    private func append(_ store: OfflineStore) async throws {
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

    private func draft() throws -> EventDraft {
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
                extensions: base.map { [.init(name: "baseid", string: $0.text)] } ?? [])
        default:
            return EventDraft(id: id, type: HistoryModel.tickType, data: .json(Array("{}".utf8)))
        }
    }

    private func lastEvent(of lane: String) -> UUID? {
        model.events.filter { $0.value.lane == lane }.max { $0.key < $1.key }?.value.id
    }

    /// Checkpoint, or compaction with all that comes before it.
    private func tidy(_ store: OfflineStore) async throws {
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
    private func otherDevice() async throws {
        tell("another device")
        let id = UUID(integer: ids.randomUUID())
        let draft = try EventDraft(
            NoteAdded(noteId: "\(draw(0...2))", cityId: "c", content: "theirs", createdBy: "v"),
            id: id)
        try await send(draft, sequence: UInt64(model.foreign.count + 1))
    }

    /// Another device has used an id that ours is about to use for something else.
    private func reuse(_ draft: EventDraft) async throws {
        isReusing = false
        tell("another device takes \(draft.id)")
        try await send(
            try EventDraft(
                CitySaved(userId: "v", cityId: "theirs"), id: draft.id),
            sequence: UInt64(model.foreign.count + 1))
    }

    private func send(_ draft: EventDraft, sequence: UInt64) async throws {
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
