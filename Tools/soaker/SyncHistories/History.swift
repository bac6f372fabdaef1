// One history: an app with a log on a simulated disk, a replayer, a network and the server, on one virtual
// clock and one row of choices. Everything happens in one order: while a request is in progress or the
// replayer waits, `step` runs other actions. The app may be killed or lose power at any operation, also in
// recovery. HistoryModel has the checks. Spec/protocol/sync-simulation.md.

import DaybookOffline
import DaybookTestKit
import Foundation
import SyncServerStorage

/// A history of one client, a network and the server.
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

    /// A copy of the disk, with the model at that time.
    struct Image {
        var files: SimulatedFileSystem
        var folder: String
        var model: HistoryModel
    }

    enum Death { case kill, powerCut, failedSync }

    /// The actions that run while the replayer waits.
    enum Action: CaseIterable {
        case append, flush, scheduleDeath, checkpointOrCompact, noteOnOtherDevice, reusedID, token
        case image, lateRequests, secondSync, suspend
    }

    let choices: SharedChoices
    let server: HistoryServer
    let clock = VirtualClock()
    /// The seed of the random numbers of the app; each opening gets another one that follows from it.
    let seed: UInt64
    let ids: LogEnvironment
    var network: SimulatedNetwork?
    var files = SimulatedFileSystem()
    /// The log's folder.
    var folder = "/log"
    var copies = 0
    var store: OfflineStore?
    var model = HistoryModel()
    /// The server's events, as far as they have been read.
    var serverEvents: [UUID: HistoryModel.ServerEvent] = [:]
    var image: Image?
    /// The scheduled death of the app; nil if none is scheduled.
    var death: Death?
    var isSyncing = false
    var isCalm = false
    /// The actions of this history.
    var actions: [Action] = []
    var clientToken: String?
    /// Whether the next event gets an id that another device has used.
    var isReusing = false
    var tokens = 0
    var lives = 0
    static let eventsMax = 100
    var requests = 0
    /// The report of the last run of the replayer; nil if it did not complete.
    var lastReport: SyncReport?
    /// The number of requests above which a history fails, because it does not end.
    static let requestsMax = 2_000
    /// The first failure at a point where it could not be thrown.
    var failure: (any Error)?
    /// The actions so far, for a failure report.
    var story: [String] = []

    init(_ choices: SharedChoices, _ server: HistoryServer) {
        self.choices = choices
        self.server = server
        seed = choices.draw { $0.next(below: 1 << 32) }
        ids = clock.environment(fileSystem: files, seed: seed)
    }

    /// A hash of the network's trace.
    var traceHash: UInt64 { network?.traceHash ?? 0 }

    func draw(_ range: ClosedRange<Int>) -> Int { choices.draw { $0.int(in: range) } }

    func appendStory(_ line: @autoclosure () -> String) { story.append(line()) }

    // MARK: Running

    func run() async throws {
        // Swarm testing: every history has another subset of faults and actions.
        let faults = choices.draw { choices in
            let oneIn = choices.element(of: [3, 8, 20, 0] as [UInt64])
            if oneIn == 0 { return [choices.element(of: NetworkFault.allCases)] }
            return NetworkFault.allCases.filter { _ in choices.bool(oneIn: oneIn) }
        }
        actions = choices.draw { choices in
            let oneIn = choices.element(of: [2, 4] as [UInt64])
            return [.append, .append] + Action.allCases.filter { _ in choices.bool(oneIn: oneIn) }
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

    /// Stops the faults, and checks that all events are settled except held ones (I12).
    func end(_ network: SimulatedNetwork) async throws {
        appendStory("faults stop")
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
        let outbox = try requireStore().view(Outbox.self)
        try model.checkAllPendingAreHeld(Array(outbox.entries))
        guard lastReport?.pending == outbox.count, lastReport?.held == outbox.count else {
            throw HistoryFailure(
                "the outbox has \(outbox.count) held events; the report has "
                    + "\(lastReport?.held ?? -1)")
        }
        serverEvents = [:]
        server.resetReading()
        try await check(try requireStore())
        let shipped = model.events.values.count { model.isShipped($0) }
        choices.count("events settled", by: shipped - outbox.count)
        for entry in outbox.entries {
            if entry.status == .failed { choices.count("events parked") }
            if entry.status == .conflict { choices.count("events in conflict") }
            if entry.retryCount == 5 { choices.count("events retried in vain") }
        }
        countForks(under: try requireStore().events.incarnation)
        try await requireStore().close()
        store = nil
    }

    /// Counts a fork that the client has not detected: two instances of a log wrote under one incarnation, and
    /// no event that the client sends again or reads shows it (RPL-11).
    private func countForks(under incarnation: UUID) {
        let sequences = serverEvents.values.filter { $0.source == incarnation }.map(\.sequence)
        if Set(sequences).count < sequences.count { choices.count("client: fork not noticed") }
    }

    func requireStore() throws -> OfflineStore {
        guard let store else { throw HistoryFailure("the store is not open") }
        return store
    }

    // MARK: Checks

    func check(_ store: OfflineStore) async throws {
        for line in try await server.newLines() {
            let line = try LineDecoder.decode(line.span.bytes)
            let event = HistoryModel.ServerEvent(
                order: serverEvents.count, draft: line.draft,
                source: line.source.flatMap(UUID.init(sourceName:)), sequence: line.sequence)
            guard serverEvents.updateValue(event, forKey: line.draft.id) == nil else {
                throw HistoryFailure("I10: the server has the event \(line.draft.id) twice")
            }
        }
        var unsettled: [Position: OutboxEntry] = [:]
        for entry in store.view(Outbox.self).entries { unsettled[entry.position] = entry }
        choices.count("events charged", by: unsettled.values.count { $0.retryCount > 0 })
        try model.checkServer(serverEvents, unsettled: unsettled)
    }
}
