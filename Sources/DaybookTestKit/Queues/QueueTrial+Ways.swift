// The script of each way, and what a user has lost at its end: the user's changes against those that the API
// applied and those that the queue shows.

import Foundation

/// One trial of one queue.
struct TrialRun {
    private let api: ScriptedAPI
    private let queue: any OfflineQueue
    /// The recorded changes that the API must apply once or, if refused, the queue must show.
    private var changes: [TrialChange] = []

    /// Begins a trial of a new queue.
    init(_ api: ScriptedAPI, _ queue: any OfflineQueue) {
        self.api = api
        self.queue = queue
    }

    /// Runs the script of a way.
    ///
    /// - Returns: the losses of the user.
    /// - Throws: what the queue throws; `NotTried`.
    mutating func losses(in trial: QueueTrial) async throws -> [String] {
        switch trial {
        case .memoryOnly:
            try await make(["note-1", "note-2"])
            try await queue.killAndReopen()
        case .unreadableTakenForEmpty: try await makeUnreadable()
        case .strandedInFlight: try await killWhileSending()
        case .sendsOnEdgeOnly: return try await lossesWithoutEdge()
        case .onePageDrained:
            try await make((1...250).map { "note-\($0)" })
            await queue.run(after: .networkReturned)
            return try await losses()
        case .attemptsBurnt: return try await lossesOfOutage()
        case .expiredSession: try await fail(with: .reply(.init(401)), rounds: 20)
        case .timeOutTakenForFinal: try await fail(with: .failed(.timedOut))
        case .proxyTakenForAPI:
            for (entity, status) in [("note-1", 404), ("note-2", 200), ("note-3", 302)] {
                try await fail(with: .reply(.page(status)), [entity])
            }
        case .bookkeepingFailed: try await failBookkeeping()
        case .lostAtLogout: return try await lossesAtLogout()
        case .deadLettersUnseen: return try await lossesOfRefusal(status: 422)
        case .poisonBlocks:
            try await queue.enqueue(TrialChange("poison"))
            try await make(["note-1", "note-2"])
            await settle { change, _ in
                change.entity == "poison" ? .reply(.init(400)) : .applied
            }
            return try await losses()
        case .rejectedUnder200: return try await lossesOfRefusal(status: 200)
        case .replayDoubles: try await fail(with: .answerLost)
        case .orderBroken:
            try await make(["note-1", "note-1", "note-1"])
            api.answer { _, request in request == 1 ? .reply(.init(503)) : .applied }
            await queue.run(after: .networkReturned)
        }
        await settle()
        return try await losses()
    }

    // MARK: Steps

    /// Records the next change of each of these entities.
    private mutating func make(_ entities: [String]) async throws {
        for entity in entities {
            let change = TrialChange(entity, 1 + changes.count { $0.entity == entity })
            try await queue.enqueue(change)
            changes.append(change)
        }
    }

    /// Records a change of each entity, and runs the queue while all requests get one answer.
    private mutating func fail(
        with answer: ScriptedAPI.Answer, _ entities: [String] = ["note-1"], rounds: Int = 1
    ) async throws {
        try await make(entities)
        // An answer is lost once: the API would apply a change without a key at each attempt.
        api.answer { _, request in
            if case .answerLost = answer, request > 1 { .applied } else { answer }
        }
        await pass(rounds)
    }

    /// Passes hours, in each of which the queue runs after every signal.
    private func pass(_ hours: Int) async {
        for _ in 0..<hours {
            api.clock.advance(by: .seconds(3_600))
            for signal in QueueSignal.allCases { await queue.run(after: signal) }
        }
    }

    /// Lets the queue send everything.
    private func settle(_ script: @escaping ScriptedAPI.Script = { _, _ in .applied }) async {
        api.answer(by: script)
        await pass(3)
    }

    // MARK: Ways

    private mutating func makeUnreadable() async throws {
        try await queue.setStorage(.normal)
        try await make(["note-1", "note-2"])
        // Saved by now, whenever the queue saves.
        api.answer { _, _ in .failed(.offline) }
        await queue.run(after: .timePassed)
        try await queue.setStorage(.purged)
        try await queue.killAndReopen()
        try await queue.setStorage(.unreadable)
        // Each of these may fail: then the user sees it.
        try? await queue.killAndReopen()
        try? await make(["note-3"])
        await queue.run(after: .launched)
        try await queue.setStorage(.normal)
        try await queue.killAndReopen()
    }

    private mutating func killWhileSending() async throws {
        try await make(["note-1", "note-2"])
        let (signals, signal) = AsyncStream.makeStream(of: Void.self)
        api.answer { _, _ in .hung }
        api.onHang { signal.yield() }
        Task { [queue] in
            await queue.run(after: .networkReturned)
            signal.yield()
        }
        for await _ in signals { break }
        try await queue.killAndReopen()
    }

    private mutating func lossesWithoutEdge() async throws -> [String] {
        try await make(["note-1"])
        api.answer { _, request in request == 1 ? .failed(.reset) : .applied }
        await queue.run(after: .networkReturned)
        api.clock.advance(by: .seconds(3_600))
        await queue.run(after: .timePassed)
        try await queue.killAndReopen()
        await queue.run(after: .launched)
        return try await losses()
    }

    private mutating func lossesOfOutage() async throws -> [String] {
        try await fail(with: .failed(.offline), ["note-1", "note-2"], rounds: 24)
        api.answer { _, _ in .reply(.init(503)) }
        await queue.run(after: .networkReturned)
        let attempts = api.attemptsPerSecond
        await settle()
        let flood =
            attempts > 4 ? ["a change is sent \(attempts) times a second to a failing server"] : []
        return try await losses() + flood
    }

    private mutating func failBookkeeping() async throws {
        try await queue.setStorage(.normal)
        try await make(["note-1"])
        api.afterApplying { [queue] in try? await queue.setStorage(.full) }
        await queue.run(after: .networkReturned)
        try await queue.setStorage(.normal)
        try await queue.killAndReopen()
    }

    private mutating func lossesAtLogout() async throws -> [String] {
        try await make(["note-1", "note-2"])
        try await queue.signIn(as: "bob")
        await settle()
        try await queue.signIn(as: "alice")
        await settle()
        let foreign = api.applied.filter { $0.user != "alice" }
        return foreign.map { "\($0.change) of alice is in the account of \($0.user)" }
            + (try await losses())
    }

    private mutating func lossesOfRefusal(status: Int) async throws -> [String] {
        try await make(["note-1"])
        await settle { _, _ in .rejected(status: status) }
        return try await queue.pending().contains(PendingChange(changes[0], isRefused: true))
            ? [] : ["\(changes[0]) was refused, and the user is not told"]
    }

    // MARK: The end

    /// Compares the changes with what the API applied.
    private func losses() async throws -> [String] {
        let pending = Set(try await queue.pending().map(\.change))
        let applied = api.applied.map(\.change)
        let counts = Dictionary(applied.map { ($0, 1) }, uniquingKeysWith: +)
        var losses = changes.compactMap { change -> String? in
            switch counts[change] ?? 0 {
            case 0 where pending.contains(change): "\(change) stays on the device"
            case 0: "\(change) is gone"
            case 1: nil
            case let count: "\(change) is applied \(count) times"
            }
        }
        let changesByEntity = Dictionary(grouping: changes, by: \.entity)
        for (entity, made) in changesByEntity.sorted(by: { $0.key < $1.key }) where made.count > 1 {
            let order = applied.filter { $0.entity == entity }.map(\.number)
            if order != order.sorted() {
                let numbers = order.map(String.init).joined(separator: ", ")
                losses.append("changes of \(entity) are applied in the order \(numbers)")
            }
        }
        return losses
    }
}
