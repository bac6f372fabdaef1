// How a history ships: the real replayer on the virtual clock, with the history at its ear. Between
// History and SimulatedNetwork. Spec/protocol/sync-simulation.md.

import DaybookOffline
import DaybookTestKit
import Foundation

extension History {
    /// The client's end of the line: remembers what it was told.
    struct Ear: Transport {
        let history: History
        let network: SimulatedNetwork

        func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
            guard case .append(let batch) = request else {
                return try await network.send(request, token: token)
            }
            let sent = try await history.check(batch)
            let reply = try await network.send(request, token: token)
            await history.hear(reply, to: sent)
            return reply
        }
    }

    struct Tokens: Credentials {
        let history: History
        func token() async throws -> AccessToken? {
            try await history.token().map { AccessToken($0) }
        }
        func refresh(_ old: AccessToken?) async -> AccessToken? {
            await history.refresh().map { AccessToken($0) }
        }
    }

    func token() throws -> String? {
        if !isCalm, draw(0...19) == 19 { throw CancellationError() }
        return clientToken
    }

    func refresh() -> String? {
        if isCalm || draw(0...3) < 3 { clientToken = server.token }
        return clientToken
    }

    func hear(_ reply: TransportReply, to sent: [UUID]) { model.hear(reply, to: sent) }

    /// Checks what the replayer is about to send.
    ///
    /// - Returns: the ids of the events.
    func check(_ batch: [UInt8]) throws -> [UUID] {
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
                batch: ids, unsettled: Array(try opened().view(Outbox.self).entries))
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
    func sync(again: Bool = false) async throws {
        guard let network else { return }
        lastReport = nil
        let store = try opened()
        tell(again ? "sync, although one is under way" : "sync")
        if again { choices.count("client: two syncs at once") }
        isSyncing = true
        defer { isSyncing = again }
        let name = store.events.incarnation
        do {
            var options = Replayer.Options()
            // One thing after the other, so that a seed has one history. What other devices do is
            // lived through by DeviceHistory.
            options.requestsMax = 1
            options.reads = false
            let replayer = Replayer(
                store.events, transport: Ear(history: self, network: network),
                credentials: Tokens(history: self), options: options,
                sleep: { try await self.sleep($0) })
            // A run with an end far away lives through pauses and long waits.
            let end = Timestamp(milliseconds: clock.milliseconds + 1_000_000_000_000)
            let isPatient = !isCalm && draw(0...1) == 1
            let report = try await replayer.run(until: isPatient ? .at(end) : .whenNothingMoves)
            guard !isPatient || death != nil || again || report.pending == report.held else {
                throw HistoryFailure("I12: a run has ended, and left what nobody holds")
            }
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

    func sleep(_ duration: Duration) async throws {
        // Nobody waits so long: it is the end of a run that is set against a request.
        guard duration < .seconds(1_000_000) else { return try await Task.sleep(for: duration) }
        clock.advance(by: duration)
        await step()
        if death != nil || failure != nil { throw CancellationError() }
    }
}
