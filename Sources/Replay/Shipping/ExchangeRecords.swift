// Writes what was exchanged into the log: outcomes, pages, the cursor, decisions of the resolver. Between
// ReplaySession and the store. Spec/protocol/sync-records.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

/// The records of a run. Each function returns what happened, to be folded into the report.
struct ExchangeRecords {
    typealias Fact = SyncProgress.Fact

    let replayer: Replayer
    var store: EventStore { replayer.store }
    var outbox: Outbox { store.view(Outbox.self) }

    init(_ replayer: Replayer) { self.replayer = replayer }

    // MARK: Outcomes

    /// Records the outcomes of a request, with what is new of the server's clock, and the events that the answer
    /// teaches, in one commit. If one of these cannot be recorded, the settled events are parked instead (REQ-8): then
    /// the outbox still has them.
    ///
    /// - Parameter tokens: an event that contains one of them is not recorded.
    func record(
        _ settlement: ReplayState.Settlement, clock: ServerClock?, learned: [EventDraft] = [],
        without tokens: SentTokens
    ) async throws -> [Fact] {
        let (record, fact) = settledRecord(of: settlement, clock: clock)
        var facts = [fact]
        do {
            for draft in learned { try check(draft, without: tokens) }
            if learned.contains(where: { $0.stateMark != nil }) {
                try await self.record(record, teaching: learned)
            } else if !record.isEmpty || !learned.isEmpty {
                try await store.record(record, with: learned)
            }
        } catch let error as EventError where !learned.isEmpty {
            return try await self.record(
                parked(settlement, because: tokens.masked(error.detail)), clock: clock,
                without: tokens)
        }
        if settlement.forked.contains(store.incarnation) {
            facts.append(try await renewIncarnation())
        }
        return facts
    }

    /// Checks an event that an answer teaches: a server could send a token back, or a record of the log.
    ///
    /// - Throws: `EventError` (`refused`).
    private func check(_ draft: EventDraft, without tokens: SentTokens) throws(EventError) {
        guard !LogRecord.isType(draft.type) else {
            throw EventError(.refused, "\(draft.type) is a record of the store's own")
        }
        guard !tokens.isFound(in: draft) else {
            throw EventError(.refused, "an event of the type \(draft.type) has a token in it")
        }
    }

    /// The outcomes with all settled events parked: the server has applied them, and what it teaches of them is lost.
    private func parked(
        _ settlement: ReplayState.Settlement, because reason: String
    ) -> ReplayState.Settlement {
        let outbox = outbox
        var parked = settlement
        (parked.applied, parked.duplicate) = ([], [])
        parked.entries += (settlement.applied + settlement.duplicate).compactMap { position in
            outbox.entry(at: position).map {
                SyncSettled.Entry(
                    position: position.rawValue, id: $0.id, outcome: .parked,
                    retryCount: $0.retryCount, code: FailureCode.unusableAnswer,
                    detail: "the server has applied it, and its answer cannot be used: \(reason)",
                    isFinal: $0.retryCount == Retries.max)
            }
        }
        return parked
    }

    /// The record of outcomes. On return no snapshot of the outbox is referenced: otherwise the store would copy
    /// the whole outbox to fold the record.
    private func settledRecord(
        of settlement: ReplayState.Settlement, clock: ServerClock?
    ) -> (SyncSettled, Fact) {
        var settled = SyncSettled(by: store.incarnation)
        let outbox = outbox
        // A page that was read meanwhile may have settled some of the events.
        let applied = outbox.unsettledPositions(among: settlement.applied)
        let duplicate = outbox.unsettledPositions(among: settlement.duplicate)
        settled.applied = outbox.ranges(of: applied)
        settled.duplicate = outbox.ranges(of: duplicate)
        func status(of entry: SyncSettled.Entry) -> OutboxEntry.Status? {
            outbox.entry(at: Position(entry.position))?.status
        }
        // A conflict that is still unresolved is recorded already.
        settled.entries = settlement.entries.filter {
            $0.outcome != .conflict || status(of: $0) != .conflict
        }
        clock?.write(to: &settled, known: outbox)
        return (
            settled,
            .settled(
                applied: applied.count, duplicate: duplicate.count,
                // An exhausted event that was tried again has been counted before.
                rejected: settlement.entries.count {
                    $0.outcome == .parked && status(of: $0) != .failed
                },
                conflict: settlement.entries.count { $0.outcome == .conflict })
        )
    }

    /// Gives the log a new incarnation, because another log writes with the same one.
    private func renewIncarnation() async throws -> Fact {
        try await store.mintIncarnation()
        replayer.logger.debug(
            "another log writes with the same incarnation; this log has a new one now")
        return .tookNewName
    }

    /// Stores the attempt with each event of a request without verdicts, in memory (OUT-10).
    func noteAttempt(with items: [ReplayItem], _ message: String?, at received: Int64) async {
        let attempt = SyncAttempt(
            at: Timestamp(milliseconds: received + (await store.clockOffset)), message: message)
        store.transient(SyncAttempts.self).update(items.lazy.map(\.position)) { _ in attempt }
    }

    /// Drops the attempts with events that have left the outbox.
    func dropSettledAttempts() {
        let attempts = store.transient(SyncAttempts.self)
        guard !attempts.isEmpty else { return }
        let outbox = outbox
        let settled = attempts.values.keys.filter { outbox.entry(at: $0) == nil }
        attempts.update(settled) { _ in nil }
    }

    // MARK: Conflicts

    /// Records the server's event of a conflict: the resolver, or the user later, needs it to decide.
    func record(current: JSONValue?) async throws -> [Fact] {
        guard let event = EventStore.event(current) else { return [] }
        let (received, unusable, _) = try await receive([event][...], recordingIfNew: [])
        var facts: [Fact] = [.received(received), .unusable(unusable)]
        if received.isForked { facts.append(try await renewIncarnation()) }
        return facts
    }

    /// Asks the resolver, if there is one, and records its decision.
    func resolve(lane: String, isAllowed: Bool) async throws -> Fact? {
        guard let resolver = replayer.options.resolver,
            let conflict = try await store.conflict(in: lane)
        else { return nil }
        guard isAllowed else {
            return .message(
                "the server answers every resolution with a new conflict; the next run tries again",
                .unresolved)
        }
        do {
            let resolution = try await resolver.resolve(conflict)
            return try await store.resolve(conflict, resolution) ? .resolved : nil
        } catch let error as LogError {
            throw error
        } catch {
            return .resolverFailed("a conflict could not be resolved: \(error)")
        }
    }

    // MARK: Pages

    /// The events of a page that was recorded.
    struct ReceivedPage {
        /// The number of its elements.
        let count: Int
        let next: String?
        /// Whether it had an event that the log did not have.
        var hasNew = false
        /// Whether own events of the outbox were settled by it.
        var hasSettled = false
        var facts: [Fact] = []
    }

    /// Records the events of a page. The cursor is recorded in one commit with the last events before it, if they
    /// are new: then the reading has none that is not recorded.
    ///
    /// - Returns: nil if it is no page of events.
    func record(
        _ page: ReplayState.Page, without tokens: SentTokens, _ reading: inout Reading,
        _ peer: inout PeerCheck
    ) async throws -> ReceivedPage? {
        let hasTokenInCursor = page.next.map(tokens.isFound(inCursor:)) ?? false
        guard !hasTokenInCursor, let content = EventPage(page.body, without: tokens) else {
            return nil
        }
        let next = page.next.flatMap { next in
            !next.isEmpty && next.utf8.count <= SyncPulled.cursorBytesMax ? next : nil
        }
        if !content.isEmpty, let next { reading.advance(to: next) }
        var result = ReceivedPage(count: content.events.count + content.unusable, next: next)
        result.facts.append(.unusable(content.unusable))
        let parts = content.commits
        for (index, part) in parts.enumerated() {
            var drafts: [EventDraft] = []
            if index == parts.count - 1, let cursor = reading.unrecordedCursor {
                let record = SyncPulled(
                    by: store.incarnation, next: cursor, peer: peer.current)
                drafts = [try EventDraft(record, id: store.newID())]
            }
            let (received, unusable, isRecorded) = try await receive(part, recordingIfNew: drafts)
            result.facts += [.received(received), .unusable(unusable)]
            if isRecorded {
                reading.cursorRecorded()
                peer.didRecord(peer.current)
            }
            if let fact = try await settle(received.known) {
                result.facts.append(fact)
                result.hasSettled = true
            }
            if !received.new.isEmpty { result.hasNew = true }
            if received.isForked { result.facts.append(try await renewIncarnation()) }
        }
        return result
    }

    /// Records events in one commit, or one by one if one of them cannot be recorded.
    ///
    /// - Returns: what was received, and whether the drafts were recorded: with the last event, if it is new.
    private func receive(
        _ events: ArraySlice<ForeignEvent>, recordingIfNew drafts: [EventDraft]
    ) async throws -> (Received, unusable: Int, isRecorded: Bool) {
        do {
            let received = try await store.receive(Array(events), recordingIfNew: drafts)
            return (received, 0, !drafts.isEmpty && !received.new.isEmpty)
        } catch is EventError {
            var (received, unusable, isRecorded) = (Received(), 0, false)
            for (index, event) in events.enumerated() {
                let own = index == events.count - 1 ? drafts : []
                do {
                    let part = try await store.receive([event], recordingIfNew: own)
                    isRecorded = !own.isEmpty && !part.new.isEmpty
                    received += part
                } catch is EventError { unusable += 1 }
            }
            return (received, unusable, isRecorded)
        }
    }

    /// G5: settles own events that the server has sent: it has them, whatever it answered before.
    private func settle(_ known: [Position]) async throws -> Fact? {
        let waiting: [Position]
        var settled = SyncSettled(by: store.incarnation)
        do {
            let outbox = outbox
            waiting = outbox.unsettledPositions(among: known)
            settled.duplicate = outbox.ranges(of: waiting)
        }
        guard !waiting.isEmpty else { return nil }
        try await store.record(settled)
        return .settled(applied: 0, duplicate: waiting.count, rejected: 0, conflict: 0)
    }

    /// Records the cursor after pages without a new event, and the peer that a reply has shown.
    func recordCursor(_ reading: inout Reading, _ peer: inout PeerCheck) async throws {
        let recorded = outbox.cursor
        let next = reading.unrecordedCursor ?? recorded
        reading.cursorRecorded()
        guard next != recorded || peer.news != nil else { return }
        try await record(peer.current, next: next, &peer)
    }

    /// Records the peer and its cursor.
    func record(_ current: SyncPeer, next: String?, _ peer: inout PeerCheck) async throws {
        try await store.record(SyncPulled(by: store.incarnation, next: next, peer: current))
        peer.didRecord(current)
    }
}

extension Received {
    fileprivate static func += (received: inout Received, part: Received) {
        received.new += part.new
        received.known += part.known
        received.clashing += part.clashing
        received.refused += part.refused
        received.isForked = received.isForked || part.isForked
    }
}
