// Shipping in a history: the real replayer on the virtual clock. A transport before SimulatedNetwork checks
// every batch and records the replies. Spec/protocol/sync-simulation.md.

import DaybookOffline
import DaybookTestKit
import Foundation

extension History {
    /// A transport that checks batches and records replies for the model.
    struct RecordingTransport: Transport {
        let history: History
        let network: SimulatedNetwork

        func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
            guard case .append(let batch) = request else {
                return try await network.send(request, token: token)
            }
            return try await record(batch) { try await network.send(request, token: token) }
        }

        func offer(
            _ batch: [UInt8], token: String?, account: String?
        ) async throws -> TransportReply {
            try await record(batch) {
                try await network.offer(batch, token: token, account: account)
            }
        }

        private func record(
            _ batch: [UInt8], _ send: () async throws -> TransportReply
        ) async throws -> TransportReply {
            let sent = try await history.checkBatch(batch)
            do {
                let reply = try await send()
                await history.recordReply(reply, to: sent)
                return reply
            } catch {
                await history.recordFailure(of: sent)
                throw error
            }
        }
    }

    struct HistoryCredentials: Credentials {
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

    func recordReply(_ reply: TransportReply, to sent: [UUID]) {
        model.recordReply(reply, to: sent)
    }

    func recordFailure(of sent: [UUID]) { model.recordFailure(of: sent) }

    /// Checks what the replayer is about to send.
    ///
    /// - Returns: the ids of the events.
    func checkBatch(_ batch: [UInt8]) throws -> [UUID] {
        guard case .array(let events) = try JSONValue(batch.span.bytes) else {
            throw HistoryFailure("a request is not a batch of events")
        }
        requests += 1
        if requests > Self.requestsMax, failure == nil {
            failure = HistoryFailure(
                "I12: the replayer sent more than \(Self.requestsMax) requests")
            network?.hangUp()
        }
        let ids = events.compactMap { event -> UUID? in
            guard case .object(let event) = event else { return nil }
            return event["id"]?.stringValue.flatMap(UUID.init(uuidString:))
        }
        do {
            try model.checkBatch(
                ids, unsettled: Array(try requireStore().view(Outbox.self).entries))
        } catch {
            // Kept here as well, because the replayer treats every error as one of the network.
            failure = failure ?? error
            throw error
        }
        return ids
    }

    /// Ships the pending events.
    ///
    /// - Parameter again: whether another run is in progress, as when the user asks for a sync during one in
    ///   the background.
    func sync(again: Bool = false) async throws {
        guard let network else { return }
        lastReport = nil
        let store = try requireStore()
        appendStory(again ? "sync during another sync" : "sync")
        if again { choices.count("client: two syncs at once") }
        isSyncing = true
        defer { isSyncing = again }
        let incarnation = store.events.incarnation
        do {
            var options = Replayer.Options()
            // One request at a time, so that a seed gives one history. DeviceHistory covers reading.
            options.requestsMax = 1
            options.reads = false
            let replayer = Replayer(
                store.events, transport: RecordingTransport(history: self, network: network),
                credentials: HistoryCredentials(history: self), options: options,
                sleep: { try await self.sleep($0) })
            // A run with an end far in the future continues through pauses and long waits.
            let end = Timestamp(milliseconds: clock.milliseconds + 1_000_000_000_000)
            let isLongRun = !isCalm && draw(0...1) == 1
            let report = try await replayer.run(until: isLongRun ? .at(end) : .whenNothingMoves)
            guard !isLongRun || death != nil || again || report.pending == report.held else {
                throw HistoryFailure(
                    "I12: a run ended with \(report.pending) pending events, but only "
                        + "\(report.held) are held")
            }
            appendStory(
                "synced: \(report.applied) applied, \(report.pending) left: \(report.message ?? "-")"
            )
            if death == nil, !again {
                lastReport = report
                model.durable = await store.events.lastDurable
                guard store.view(Outbox.self).through <= model.durable else {
                    throw HistoryFailure("a run returned before its records were durable")
                }
            }
        } catch let error where !(error is HistoryFailure) {
            try expectDeath(by: error)
        }
        if let failure { throw failure }
        if store.events.incarnation != incarnation { choices.count("client: fork noticed") }
        if death != nil {
            choices.count("client: died while syncing")
        } else {
            try await check(store)
        }
    }

    func sleep(_ duration: Duration) async throws {
        // The end of the run, which races against a request, and not a wait of the replayer.
        guard duration < .seconds(1_000_000) else { return try await Task.sleep(for: duration) }
        clock.advance(by: duration)
        await step()
        if death != nil || failure != nil { throw CancellationError() }
    }
}
