// Records events in a companion's spool: checked as the owner checks them, durable on return, with the spool's lock
// held for one commit. Spec/format/companions.md, COMP-2 to COMP-5.

import Foundation
import LogFormat
import LogStorage

extension CompanionStore {
    /// The events and the bytes of lines from which a spool gets no further commit: each append reads it.
    private static let spoolEventsMax = 1_024
    private static let spoolBytesMax = 256 * 1024
    /// The most spools that an append tries. Each failure means that another process has just used one.
    private static let attemptsMax = 8

    /// Records a typed event. Durable on return, and in the views.
    ///
    /// - Throws: as `append(contentsOf:)`, and what the payload's encoder throws.
    @discardableResult
    public func append(_ payload: some EventPayload) throws -> SpooledEvent {
        // With a random id, which no log has.
        try append([EventDraft(payload)], areIDsNew: true)[0]
    }

    /// Records an event. Durable on return, and in the views.
    ///
    /// - Throws: as `append(contentsOf:)`.
    @discardableResult
    public func append(_ draft: EventDraft) throws -> SpooledEvent {
        try append([draft], areIDsNew: false)[0]
    }

    /// Records events, all or none, in one commit of a spool. Durable on return, and in the views. An event with the
    /// id and content of one that the companion or the main log has is not recorded again.
    ///
    /// - Returns: for each draft, in order, its id and whether it is new.
    /// - Throws: `EventError` if a draft is refused, as `EventStore.append(contentsOf:durability:)`.
    ///   `CompanionFullError` if more would wait than the limits allow. `LogError`: `noSuchLog` if the log was erased;
    ///   `diskFull`, `readOnly`, `io`; `locked` if other processes used every spool that was tried; with these, nothing
    ///   is recorded. `indeterminate`: append the same draft again.
    /// - Complexity: O(bytes of the newest spool); drafts are looked up in the main log as by `refresh()`.
    @discardableResult
    public func append(contentsOf drafts: [EventDraft]) throws -> [SpooledEvent] {
        try append(drafts, areIDsNew: false)
    }

    private func append(_ drafts: [EventDraft], areIDsNew: Bool) throws -> [SpooledEvent] {
        try folder.requireMain()
        let checked = try check(drafts)
        let known = try knownEvents(checked, areIDsNew: areIDsNew)
        let new = checked.enumerated().filter { !known.contains($0.offset) }.map(\.element)
        if !new.isEmpty { try record(new) }
        return checked.enumerated().map { index, draft in
            SpooledEvent(id: draft.id, isNew: !known.contains(index))
        }
    }

    // MARK: Validate

    private func check(_ drafts: [EventDraft]) throws(EventError) -> [CheckedDraft] {
        var checked: [CheckedDraft] = []
        for (index, draft) in drafts.enumerated() {
            do throws(EventError) {
                try LogRecord.refuse(draft.type)
                let draft = try CheckedDraft(draft, by: catalogue)
                try draft.checkIsNew(catalogue, followed.views, now: now)
                checked.append(draft)
            } catch {
                throw error.ofEvent(index, in: drafts.count)
            }
        }
        return checked
    }

    /// The indexes of the drafts that a spool, the main log or an earlier draft has.
    ///
    /// - Throws: `EventError` (`idReused`); `LogError`.
    private func knownEvents(_ drafts: [CheckedDraft], areIDsNew: Bool) throws -> Set<Int> {
        guard !areIDsNew else { return [] }
        var known: Set<Int> = []
        // Another process with the companion's name may have appended one of them.
        try refresh()
        let found = try lookUp(Set(drafts.map(\.id.integer)))
        var seen: [UUID: EventDraft] = [:]
        for (index, draft) in drafts.enumerated() {
            if let twin = seen[draft.id] ?? spooled.event(draft.id)?.content {
                try require(twin, isSameAs: draft, at: .zero)
                known.insert(index)
            } else if let place = found[draft.id.integer] {
                try require(place, isSameAs: draft)
                known.insert(index)
            }
            seen[draft.id] = draft.draft
        }
        if found.values.contains(where: { $0.position > position }) { try refresh() }
        return known
    }

    private func require(
        _ recorded: EventDraft, isSameAs draft: CheckedDraft, at position: Position
    ) throws(EventError) {
        var recorded = recorded
        try? catalogue.normalise(&recorded)
        guard recorded.isSameContent(as: draft.draft) else {
            throw EventError.idReused(draft.id, at: position, type: recorded.type)
        }
    }

    private func require(_ known: LogReader.KnownID, isSameAs draft: CheckedDraft) throws {
        switch known {
        case .removed(let removed):
            guard draft.draft.isContent(of: removed.hashes) else {
                throw EventError.idReused(draft.id, at: removed.position)
            }
        case .line(let position):
            let reader = LogReader(directory, fileSystem: environment.fileSystem)
            try reader.forEachEvent(from: position, catalogue: catalogue) { event in
                if event.id == draft.id {
                    try require(event.content, isSameAs: draft, at: position)
                }
                return false
            }
        }
    }

    private func requireSpace(for bytes: Int, _ events: Int) throws {
        func fits() -> Bool {
            spooled.backlog.events + events <= limits.events
                && spooled.backlog.bytes + bytes <= limits.bytes
        }
        if fits() { return }
        // The owner may have absorbed what waited.
        try refresh()
        guard fits() else {
            throw CompanionFullError(companion: name, backlog: spooled.backlog, limits: limits)
        }
    }

    // MARK: Append

    private func record(_ drafts: [CheckedDraft]) throws {
        // Lines have the same length whatever their positions and sources are.
        let batch = try encode(drafts, by: 0, at: Position(1))
        try requireSpace(for: batch.lines.bytes.count, batch.events.count)
        let names = try folder.list().filter { $0.companion == name }
        var counter = names.map(\.counter).filter { $0 < SpoolName.counterMax }.max() ?? 0
        var candidate = names.last.flatMap { acceptsCommit($0) ? $0 : nil }
        for _ in 0..<Self.attemptsMax {
            let isNew = candidate == nil
            if isNew { counter += 1 }
            let spool =
                candidate
                ?? SpoolName(name, counter, tag: UInt64(truncatingIfNeeded: environment.random()))
            candidate = nil
            guard let log = try folder.open(spool, create: isNew) else { continue }
            guard try commit(drafts, to: log, spool, isNew: isNew) else { continue }
            return
        }
        throw LogError(
            .locked, path: folder.path,
            "other processes used every spool that was tried; append again")
    }

    private func encode(
        _ drafts: [CheckedDraft], by source: UInt128, at next: Position
    ) throws(EventError) -> Batch {
        var floor = followed.floor
        for event in spooled.waiting { floor.include(event.time) }
        var encoder = BatchEncoder(catalogue, by: source, at: next, floor)
        for draft in drafts {
            try encoder.assignPosition(to: .new(draft, replacing: nil), now: { now })
        }
        return try encoder.batch()
    }

    private func acceptsCommit(_ spool: SpoolName) -> Bool {
        spooled.count(in: spool) < Self.spoolEventsMax
            && spooled.bytes(in: spool) < Self.spoolBytesMax
    }

    /// Appends events to an open spool and closes it.
    ///
    /// - Returns: false if the spool cannot be used; nothing was recorded.
    private func commit(
        _ drafts: [CheckedDraft], to log: Log, _ spool: SpoolName, isNew: Bool
    ) throws -> Bool {
        // Whatever was recorded is durable before the log is closed.
        defer { try? log.close() }
        guard log.next.rawValue <= UInt64(Self.spoolEventsMax) else { return false }
        let batch = try encode(drafts, by: log.incarnation, at: log.next)
        do { try log.append(batch.lines) } catch {
            // The owner has removed the spool's files: another one gets the events.
            guard error.code == .noSuchLog else { throw error }
            return false
        }
        // Any other error says nothing about the events, which are durable.
        do throws(LogError) { try folder.requireMain() } catch {
            if error.code == .noSuchLog {
                try? log.close()
                // An older spool may have acknowledged events: the erasure deletes it.
                if isNew { folder.discard(spool) }
                throw error
            }
        }
        spooled.append(batch.events, to: spool, of: log.incarnation, in: folder)
        return true
    }
}
