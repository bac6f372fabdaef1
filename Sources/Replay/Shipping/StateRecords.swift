// Writes the states of an app's own API into the log, beside the changes that the user has not sent. Part of
// ExchangeRecords. Spec/protocol/reading.md, READ-3 to READ-6.

import EventSourcing
import Foundation
import LogFormat

/// What became of states.
struct RecordedStates: Sendable {
    var new = 0
    var waiting = 0
    var unusable = 0
    /// The number of changes that are in conflict now and were not before.
    var conflicts = 0

    static func += (one: inout RecordedStates, other: RecordedStates) {
        one.new += other.new
        one.waiting += other.waiting
        one.unusable += other.unusable
        one.conflicts += other.conflicts
    }
}

/// The cursors that a page may leave on record; nil for the one that is there.
struct StateCursors: Sendable {
    /// The cursor after the page.
    var after: String?
    /// The cursor if a state of the page waits.
    var ifWaiting: String?

    /// The cursors of a part of the page.
    func of(isLast: Bool, isWaiting: Bool) -> StateCursors {
        let after = isWaiting ? ifWaiting : after
        return StateCursors(after: isLast ? after : ifWaiting, ifWaiting: ifWaiting)
    }
}

/// The states of a commit.
private struct StateCommit {
    private let outbox: Outbox
    private let known: APIStates
    private let lanes: [EntityID: [OutboxEntry]]
    private let name: String
    private let incarnation: UUID
    /// The lanes of the events whose answers teach.
    private let settledLanes: Set<EntityID>
    /// The last marks that this commit sets.
    private var marks: [String: StateMark] = [:]
    /// The conflicts by lane.
    private var conflicts: [EntityID: SyncSettled.Entry] = [:]
    private(set) var result = RecordedStates()

    /// - Parameters:
    ///   - name: the names of the API and the account: the same state of another one has another id.
    ///   - drafts: the states.
    ///   - settledLanes: the lanes of the events whose answers teach the states.
    init(
        _ transaction: EventStore.Transaction, _ name: String, _ drafts: ArraySlice<EventDraft>,
        settledLanes: Set<EntityID> = []
    ) {
        outbox = transaction.view(Outbox.self)
        known = transaction.view(APIStates.self)
        self.name = name
        incarnation = transaction.incarnation
        self.settledLanes = settledLanes
        let wanted = Set(drafts.compactMap { $0.lane.map(EntityID.init) })
        lanes = Dictionary(
            grouping: outbox.entries.filter { wanted.contains(EntityID($0.lane)) }
        ) { EntityID($0.lane) }
    }

    /// READ-3, READ-4 and READ-5: appends a state that was read, unless it is known, older, or waits.
    ///
    /// - Parameter through: the last position that the log had when the page was asked for.
    mutating func read(
        _ draft: EventDraft, through: Position, to transaction: inout EventStore.Transaction
    ) {
        guard let mark = draft.stateMark, let entity = draft.lane else { return }
        let lane = EntityID(entity)
        let last = last(draft.type, entity)
        let entries = lanes[lane] ?? []
        // A change of this device may have replaced the state: a version that comes back shows it again.
        let isChanged =
            entries.isEmpty && marks[APIStates.key(draft.type, entity)] == nil
            && known.isChanged(draft.type, entity)
        if let last {
            guard !mark.isOlder(than: last) else { return }
            guard isChanged || !mark.isSameState(as: last) else { return }
            guard isChanged || !mark.isDeleted || !last.isDeleted else { return }
        } else if mark.isDeleted, known.lane(entity) == nil {
            return
        }
        let isEcho = last.map { $0.isTaught && $0.version == mark.version } ?? false
        guard
            entries.allSatisfy({ $0.position <= through && !outbox.mayBeApplied($0, incarnation) }),
            entries.isEmpty || !isEcho
        else {
            result.waiting += 1
            return
        }
        let id = append(draft, mark, after: last, to: &transaction)
        result.new += 1
        guard let first = entries.first else { return }
        if first.status != .conflict { result.conflicts += conflicts[lane] == nil ? 1 : 0 }
        conflicts[lane] = SyncSettled.Entry(
            position: first.position.rawValue, id: first.id, outcome: .conflict,
            retryCount: first.retryCount, code: first.code ?? FailureCode.newerState,
            detail: "the API has another state than the one that was changed", current: id)
    }

    /// READ-6: appends a state that an answer has taught. If the lane has later changes, which the state would hide, only
    /// its version is recorded.
    ///
    /// - Returns: the version to record.
    mutating func teach(
        _ draft: EventDraft, to transaction: inout EventStore.Transaction
    ) -> SyncPulled.Taught? {
        guard var mark = draft.stateMark, let entity = draft.lane else { return nil }
        let last = last(draft.type, entity)
        if let last, mark.isOlder(than: last) { return nil }
        guard lanes[EntityID(entity)] != nil else {
            append(draft, mark, after: last, to: &transaction)
            return nil
        }
        // The changes of another lane are based on an older state: a read shows the conflict.
        guard settledLanes.contains(EntityID(entity)) else { return nil }
        mark.turn = (last?.turn ?? 0) + 1
        mark.isVersionOnly = true
        return SyncPulled.Taught(type: draft.type, entity: entity, mark: mark.text)
    }

    /// The record of the conflicts; nil if there are none.
    func settled(by incarnation: UUID) -> SyncSettled? {
        guard !conflicts.isEmpty else { return nil }
        var record = SyncSettled(by: incarnation)
        record.entries = conflicts.values.sorted { $0.position < $1.position }
        return record
    }

    private func last(_ type: String, _ entity: String) -> StateMark? {
        marks[APIStates.key(type, entity)] ?? known.mark(type, entity)
    }

    /// Appends the event of a state: later than all changes of its lane, whatever clock those had.
    @discardableResult
    private mutating func append(
        _ draft: EventDraft, _ mark: StateMark, after last: StateMark?,
        to transaction: inout EventStore.Transaction
    ) -> UUID {
        var (draft, mark) = (draft, mark)
        let entity = draft.lane ?? ""
        mark.turn = (last?.turn ?? 0) + 1
        draft.stateMark = mark
        let identity = [
            name, draft.type, entity, mark.version.text, "\(mark.hash)", "\(mark.turn)",
        ]
        draft.id = EventDraft.derivedID(from: "daybook-state:" + identity.joined(separator: "\0"))
        marks[APIStates.key(draft.type, entity)] = mark
        transaction.append(draft, replacing: known.lane(entity)?.newest)
        return draft.id
    }
}

extension Outbox {
    /// The lanes of answered changes. O(changes).
    fileprivate func lanes(of settled: SyncSettled) -> Set<EntityID> {
        let positions =
            (settled.applied + settled.duplicate).joined() + settled.entries.map(\.position)
        return Set(positions.compactMap { entry(at: Position($0))?.lane }.map { EntityID($0) })
    }

    /// True if the API may have applied a change whose answer is not known: it was sent, or is parked for a reason that
    /// says nothing of that.
    ///
    /// - Parameter incarnation: that of the log. After a restore from a backup the log has another one: changes of the
    ///   earlier one may have been sent since the backup.
    func mayBeApplied(_ entry: OutboxEntry, _ incarnation: UUID) -> Bool {
        guard hasRequest(at: entry.position) || entry.source != incarnation else { return false }
        switch entry.status {
        case .pending: return true
        case .conflict: return false
        case .failed:
            let codes = [FailureCode.keyExpired, FailureCode.unusableAnswer]
            return entry.parking != .rejected || codes.contains(entry.code ?? "")
        }
    }
}

extension ExchangeRecords {
    /// The largest size in bytes of the data of states that are recorded in one commit.
    private static let commitBytesMax = 1024 * 1024

    /// Records the states of a page, with the cursor after it, in one commit; a large page in several, the cursor with the
    /// last. Durable on return.
    ///
    /// - Parameters:
    ///   - through: the last position that the log had when the page was asked for.
    ///   - cursors: the cursor after the page, and the one if a state waits.
    func record(
        _ drafts: [EventDraft], through: Position, cursors: StateCursors,
        without tokens: SentTokens, _ peer: inout PeerCheck
    ) async throws -> RecordedStates {
        let usable = drafts.filter { !tokens.isFound(in: $0) }
        var result = RecordedStates()
        result.unusable = drafts.count - usable.count
        let parts = Self.commits(of: usable)
        for (index, part) in parts.enumerated() {
            let cursors = cursors.of(
                isLast: index == parts.count - 1, isWaiting: result.waiting > 0)
            result += try await record(part, through: through, cursors, tokens, peer.current)
        }
        let isRecorded = outbox.peer == peer.current
        if isRecorded { peer.didRecord(peer.current) }
        return result
    }

    private func record(
        _ drafts: ArraySlice<EventDraft>, through: Position, _ cursors: StateCursors,
        _ tokens: SentTokens, _ peer: SyncPeer
    ) async throws -> RecordedStates {
        do {
            return try await commit(drafts, through: through, cursors, tokens, peer)
        } catch let error as EventError {
            guard drafts.count > 1 else {
                replayer.logger.debug("a state cannot be recorded: \(error.detail)")
                var result = RecordedStates()
                result.unusable = drafts.count
                return result
            }
        }
        var result = RecordedStates()
        for index in drafts.indices {
            let cursors = cursors.of(
                isLast: index == drafts.endIndex - 1, isWaiting: result.waiting > 0)
            result += try await record(
                drafts[index...index], through: through, cursors, tokens, peer)
        }
        return result
    }

    private func commit(
        _ drafts: ArraySlice<EventDraft>, through: Position, _ cursors: StateCursors,
        _ tokens: SentTokens, _ peer: SyncPeer
    ) async throws -> RecordedStates {
        let (name, store) = (stateName, store)
        return try await store.write { transaction in
            var commit = StateCommit(transaction, name, drafts)
            for draft in drafts { commit.read(draft, through: through, to: &transaction) }
            if let record = commit.settled(by: transaction.incarnation) {
                transaction.append(record: try EventDraft(record, id: store.newID()))
            }
            let cursor = commit.result.waiting == 0 ? cursors.after : cursors.ifWaiting
            if let cursor, transaction.view(Outbox.self).cursor != cursor,
                cursor.utf8.count <= SyncPulled.cursorBytesMax, !tokens.isFound(inCursor: cursor)
            {
                let record = SyncPulled(by: transaction.incarnation, next: cursor, peer: peer)
                transaction.append(record: try EventDraft(record, id: store.newID()))
            }
            return commit.result
        }
    }

    /// Records outcomes and the events that an answer teaches, states among them, in one commit.
    func record(_ settled: SyncSettled, teaching drafts: [EventDraft]) async throws {
        let (name, store) = (stateName, store)
        try await store.write(drawingOnReserve: true) { transaction in
            let settledLanes =
                drafts.isEmpty ? [] : transaction.view(Outbox.self).lanes(of: settled)
            if !settled.isEmpty {
                transaction.append(record: try EventDraft(settled, id: store.newID()))
            }
            var commit = StateCommit(transaction, name, drafts[...], settledLanes: settledLanes)
            var taught: [SyncPulled.Taught] = []
            for draft in drafts {
                if draft.stateMark == nil {
                    transaction.append(draft)
                } else if let version = commit.teach(draft, to: &transaction) {
                    taught.append(version)
                }
            }
            guard !taught.isEmpty else { return }
            let outbox = transaction.view(Outbox.self)
            var record = SyncPulled(
                by: transaction.incarnation, next: outbox.cursor, peer: outbox.peer)
            record.taught = taught
            transaction.append(record: try EventDraft(record, id: store.newID()))
        }
    }

    /// The names of the API and the account.
    private var stateName: String {
        let transport = replayer.transport as? RequestTransport
        return "\(transport?.api ?? "")\0\(transport?.account ?? "")"
    }

    private static func commits(of drafts: [EventDraft]) -> [ArraySlice<EventDraft>] {
        var parts: [ArraySlice<EventDraft>] = []
        var (start, bytes) = (0, 0)
        for (index, draft) in drafts.enumerated() {
            let size = draft.json?.count ?? 0
            if index > start, bytes + size > commitBytesMax {
                parts.append(drafts[start..<index])
                (start, bytes) = (index, 0)
            }
            bytes += size
        }
        return parts + [drafts[start...]]
    }
}
