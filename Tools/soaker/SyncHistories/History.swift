// One history: an app with a log on a simulated disk, a replayer, a network and the server, on one
// virtual clock and one row of choices. Everything happens in one order: while a request is under way
// or the replayer waits, the rest of the world takes its turn (`step`). The app may be killed and its
// power cut at any operation, in recovery as well. Checks are in HistoryModel. Called by
// SyncHistories. Spec/protocol/sync-simulation.md.

import DaybookOffline
import DaybookTestKit
import Foundation
import SyncServerStorage

/// One history of client, network and server.
actor History {
    static let labels = [
        "client: killed", "client: power cut", "client: sync failed", "client: died while syncing",
        "client: died while opening", "client: image came back", "client: backup came back",
        "client: closed and opened", "client: suspended", "client: two syncs at once",
        "client: upgraded", "client: compacted", "client: checkpoint",
        "client: appended while syncing", "client: fork noticed", "client: fork not noticed",
        "events settled", "events parked", "events in conflict", "events charged",
        "events retried in vain", "histories",
    ]

    struct Image {
        var files: SimulatedFileSystem
        var folder: String
        var model: HistoryModel
    }

    enum Death { case kill, powerCut, failedSync }

    /// What the rest of the world does while the replayer waits.
    enum Deed: CaseIterable {
        case append, flush, doom, tidy, note, reusedID, token, image, lateRequests, secondSync
        case suspend
    }

    let choices: SharedChoices
    let server: HistoryServer
    let clock = VirtualClock()
    /// Where the random numbers of the app, and of each of its lives, begin.
    let seed: UInt64
    let ids: LogEnvironment
    var network: SimulatedNetwork?
    var files = SimulatedFileSystem()
    /// The log's folder.
    var folder = "/log"
    var copies = 0
    var store: OfflineStore?
    var model = HistoryModel()
    /// What the server holds, as far as it has been read.
    var held: [UUID: HistoryModel.Held] = [:]
    var image: Image?
    /// How the app is going to die, or has.
    var death: Death?
    var isSyncing = false
    var isCalm = false
    /// What happens in this history.
    var deeds: [Deed] = []
    var clientToken: String?
    /// The next event gets an id that another device has used.
    var isReusing = false
    var tokens = 0
    var lives = 0
    static let eventsMax = 100
    var requests = 0
    /// What the last run of the replayer reported, if it came to its end.
    var lastReport: SyncReport?
    /// Requests of a history that has gone astray.
    static let requestsMax = 2_000
    /// The first thing that was wrong while nobody could throw.
    var failure: (any Error)?
    /// What happened, for a failure report.
    var story: [String] = []

    init(_ choices: SharedChoices, _ server: HistoryServer) {
        self.choices = choices
        self.server = server
        seed = choices.draw { $0.next(below: 1 << 32) }
        ids = clock.environment(fileSystem: files, seed: seed)
    }

    /// A hash of what went over the network.
    var traceHash: UInt64 { network?.traceHash ?? 0 }

    func draw(_ range: ClosedRange<Int>) -> Int { choices.draw { $0.int(in: range) } }

    func tell(_ line: @autoclosure () -> String) { story.append(line()) }

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
    func end(_ network: SimulatedNetwork) async throws {
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
        try model.checkNothingMoves(Array(outbox.entries))
        guard lastReport?.pending == outbox.count, lastReport?.held == outbox.count else {
            throw HistoryFailure(
                "\(outbox.count) are held; the report says \(lastReport?.held ?? -1)")
        }
        held = [:]
        server.readAgain()
        try await check(try opened())
        let shipped = model.events.values.count { model.isShipped($0) }
        choices.count("events settled", by: shipped - outbox.count)
        for entry in outbox.entries {
            if entry.status == .failed { choices.count("events parked") }
            if entry.status == .conflict { choices.count("events in conflict") }
            if entry.retryCount == 5 { choices.count("events retried in vain") }
        }
        countForks(under: try opened().events.incarnation)
        try await opened().close()
        store = nil
    }

    /// Two lives of a log have written under one name. The client learns of it from a verdict that
    /// comes once: where that reply was lost, it does not know.
    private func countForks(under name: UUID) {
        let sequences = held.values.filter { $0.source == name }.map(\.sequence)
        if Set(sequences).count < sequences.count { choices.count("client: fork not noticed") }
    }

    func opened() throws -> OfflineStore {
        guard let store else { throw HistoryFailure("the store is not open") }
        return store
    }

    // MARK: Checks

    func check(_ store: OfflineStore) async throws {
        for line in try await server.newLines() {
            let line = try LineDecoder.decode(line.span.bytes)
            let new = HistoryModel.Held(
                order: held.count, draft: line.draft,
                source: line.source.flatMap(UUID.init(sourceName:)), sequence: line.sequence)
            guard held.updateValue(new, forKey: line.draft.id) == nil else {
                throw HistoryFailure("I10: the server holds \(line.draft.id) twice")
            }
        }
        var unsettled: [Position: OutboxEntry] = [:]
        for entry in store.view(Outbox.self).entries { unsettled[entry.position] = entry }
        choices.count("events charged", by: unsettled.values.count { $0.retryCount > 0 })
        try model.check(held, unsettled: unsettled)
    }
}
