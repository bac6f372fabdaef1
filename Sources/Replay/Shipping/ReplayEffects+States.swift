// Reads the lists of an app's own API, source by source. Part of ReplayEffects. Spec/protocol/reading.md, READ-2 to
// READ-7.

import EventSourcing
import Foundation
import LogFormat

/// What a run knows of its read of an app's own API.
struct StatesRead {
    /// A list of all entities, as far as it was read.
    struct Listing {
        /// The last position that the log had before the first page.
        var through: Position
        var entities: Set<EntityID> = []
        /// False if an element is missing or could not be read: then no entity is known to be deleted.
        var isComplete = true
    }

    var listing: Listing?
    /// The entities that a list of several pages lacked: they are deleted if it lacks them a second time.
    var missing: Set<EntityID>?
    /// True if an element waits for the answer to a change, or a conflict for the state that has won.
    var isAgain = false
    /// True if a read was answered 401: a second time it is no reason to renew the token.
    private var wasUnauthorized = false
    /// True if an element of this read is missing: then the state that has won a conflict may be missing, too.
    var isPartial = false
    /// Why a source could not be read.
    var message: String?
    /// The number of reads in a row that have failed.
    var failures = 0

    /// READ-7: an API that refuses only reads must not pause the run.
    mutating func vet(_ answer: inout ReplayState.Answer, isRead: Bool) {
        guard isRead, case .reply(var reply) = answer else { return }
        guard reply.status == 401 else {
            if reply.states != nil { wasUnauthorized = false }
            return
        }
        guard wasUnauthorized else { return wasUnauthorized = true }
        reply.status = 200
        reply.body = Array("[]".utf8)
        reply.isServers = false
        reply.states = .failed("the API does not accept the token for reading")
        answer = .reply(reply)
    }
}

extension ReplayEffects {
    /// Handles a page of an app's own API.
    ///
    /// - Parameter through: the last position that the log had when the page was asked for.
    mutating func record(
        _ states: StatePage, _ page: ReplayState.Page, through: Position
    ) async throws {
        guard let transport = replayer.transport as? RequestTransport else { return }
        let cursor = transport.cursor(page.after)
        guard replayer.options.reads, transport.sources.indices.contains(cursor.source) else {
            return try await recordPage(page)
        }
        let source = transport.sources[cursor.source]
        if cursor.source == 0, cursor.page == nil, cursor.isSecond == nil {
            (statesRead.isPartial, statesRead.message) = (false, nil)
        }
        var hasNew = false
        let next: PullCursor?
        switch states.kind {
        case .notModified: next = cursor.nextSource(of: transport.sources.count)
        case .failed where states.refusesCursor && cursor.canBeginAgain(source):
            statesRead.isPartial = true
            next = cursor.recording(nil, of: source)
        case .failed(let reason, let seconds, let isUnreachable):
            statesRead.isPartial = true
            statesRead.message = "\(source.type) cannot be read: \(sentTokens.masked(reason))"
            planRead(afterSeconds: seconds)
            next =
                isUnreachable || seconds != nil
                ? nil : cursor.nextSource(of: transport.sources.count)
        case .page:
            let received = progress.report.received
            next = try await record(
                states, source, cursor, through, sources: transport.sources.count)
            hasNew = progress.report.received > received
        }
        if next?.source != cursor.source { (statesRead.listing, statesRead.missing) = (nil, nil) }
        if let next {
            let page = ReplayState.Page(body: [], after: page.after, next: next.text)
            if let reason = state.pageRecorded(page, isLast: false, hasNew: hasNew) {
                (statesRead.isPartial, statesRead.message) = (true, reason)
            }
            if state.reading.isReading { return }
        }
        try await endRead()
    }

    /// Records a page of a source.
    ///
    /// - Returns: the cursor of the next page; nil after the last.
    private mutating func record(
        _ states: StatePage, _ source: PullSource, _ cursor: PullCursor, _ through: Position,
        sources: Int
    ) async throws -> PullCursor? {
        statesRead.failures = 0
        let asked = source.position(cursor).text
        let next = source.next(after: states, asked)
        if source.form.isSinceNumber, next == nil, states.unusable > 0 {
            statesRead.message =
                "\(source.type): the list cannot be continued after a page without a greater number, of which elements are unusable"
        }
        var drafts = states.states
        if source.form == .everything {
            if cursor.page == nil { statesRead.listing = StatesRead.Listing(through: through) }
            drafts += absences(states, source, cursor, isLast: next == nil)
        }
        let isWaiting = cursor.isHeld == true || states.notReady > 0
        let recorded = cursor.recording(
            source.cursor(
                after: states, cursor, isComplete: statesRead.listing?.isComplete ?? false,
                store.view(Outbox.self).lastRecord), of: source)
        // The tag of a list of which something is missing would hide that.
        let held =
            source.form == .everything ? cursor.recording(nil, of: source).recorded.text : nil
        let result = try await records.record(
            drafts, through: through,
            cursors: StateCursors(after: recorded.recorded.text, ifWaiting: held).of(
                isLast: true, isWaiting: isWaiting),
            without: sentTokens, &peer)
        let waiting = result.waiting + states.notReady
        let isHeld = isWaiting || waiting > 0
        fold([
            .read(new: result.new, waiting: waiting),
            .unusable(result.unusable + states.unusable),
            .settled(applied: 0, duplicate: 0, rejected: 0, conflict: result.conflicts),
        ])
        if let fault = states.firstFault {
            replayer.logger.debug(
                "an element of \(source.type) is unusable: \(sentTokens.masked(fault))")
        }
        if result.waiting > 0 { statesRead.isAgain = true }
        if waiting + result.unusable + states.unusable > 0 { statesRead.isPartial = true }
        if result.conflicts > 0 { state.reload(store.view(Outbox.self)) }
        let current = isHeld ? cursor : recorded
        guard let next else {
            let isAgain = statesRead.missing != nil && cursor.isSecond == nil
            return isAgain ? current.again(isHeld: isHeld) : current.nextSource(of: sources)
        }
        return current.continuing(at: next, isHeld: isHeld)
    }

    /// READ-5: adds a page to the list of all entities.
    ///
    /// - Returns: the states of deleted entities, after the last page of a complete list.
    private mutating func absences(
        _ states: StatePage, _ source: PullSource, _ cursor: PullCursor, isLast: Bool
    ) -> [EventDraft] {
        guard var listing = statesRead.listing else { return [] }
        listing.entities.formUnion(states.states.compactMap { $0.lane.map(EntityID.init) })
        if states.unusable + states.notReady > 0 || !states.isWhole { listing.isComplete = false }
        // A page without elements, or with its own cursor, may not be the last one.
        if isLast, states.next != nil { listing.isComplete = false }
        statesRead.listing = listing
        guard isLast, listing.isComplete, let deletion = source.deletion else { return [] }
        var absent = store.view(APIStates.self).entities(of: source.type).filter { entity, seen in
            seen.position <= listing.through.rawValue
                && !listing.entities.contains(EntityID(entity))
        }
        // A list by offset skips an entity if another one before it is deleted between two pages.
        if cursor.page != nil, cursor.isSecond == nil, !absent.isEmpty {
            statesRead.missing = Set(absent.map { EntityID($0.entity) })
            return []
        }
        if cursor.isSecond == true {
            let missing = statesRead.missing ?? []
            absent.removeAll { !missing.contains(EntityID($0.entity)) }
        }
        return absent.compactMap { entity, _ in
            // Its version is of no list: any state that the API shows later is new.
            return try? EventDraft(state: deletion(entity), version: .tag("absent"))
        }
    }

    /// Ends the read of all sources, and asks the resolver about the conflicts: the states that have won are known now.
    private mutating func endRead() async throws {
        state.pageRefused()
        state.reading.caughtUp()
        try await recordCursor()
        progress.fold(.statesRead(failure: statesRead.message))
        guard replayer.options.ships, replayer.options.resolver != nil else { return }
        var lanes: Set<EntityID> = []
        for entry in store.view(Outbox.self).entries
        where entry.status == .conflict && (entry.conflictsWith != nil || !statesRead.isPartial) {
            lanes.insert(EntityID(entry.lane))
        }
        for lane in lanes.sorted() {
            let isAllowed = state.mayResolve(lane)
            guard let fact = try await records.resolve(lane: lane.string, isAllowed: isAllowed)
            else { continue }
            if case .resolved = fact { state.conflictResolved(lane) }
            progress.fold(fact)
        }
    }

    /// Reads again once the changes that are ready are answered.
    mutating func readStatesAgain() {
        statesRead.isAgain = false
        guard replayer.options.reads else { return }
        startReading()
    }

    /// Plans the next read of a run without end, after one that has failed.
    private mutating func planRead(afterSeconds seconds: Double?) {
        statesRead.failures += 1
        guard isLive else { return }
        let backoff = min(60 << min(statesRead.failures, 6), 3_600)
        let delay = max(1, min(seconds ?? Double(backoff), 86_400))
        let time = store.deviceNow + Int64(delay * 1_000)
        // No sooner than the API asks for.
        let planned = seconds == nil ? state.reading.nextRead : nil
        state.reading.plan(at: min(time, planned ?? time), now: store.deviceNow)
    }
}

extension PullSource {
    /// The position of the page after another one; nil after the last.
    fileprivate func next(after page: StatePage, _ asked: String?) -> String? {
        guard page.count > 0 else { return nil }
        switch form {
        case .since:
            guard let newest = page.newest, newest > asked.flatMap({ Int64($0) }) ?? .min else {
                return nil
            }
            return "\(newest)"
        case .cursor, .everything: return page.next == asked ? nil : page.next
        }
    }

    /// The cursor of the source after a page; nil for none.
    ///
    /// - Parameter answered: the position of the last record of answers.
    fileprivate func cursor(
        after page: StatePage, _ cursor: PullCursor, isComplete: Bool, _ answered: Position
    ) -> String? {
        let recorded = cursor.sources[name]
        switch form {
        case .since:
            // Never back: the page may be an old one.
            let number = recorded.flatMap { Int64($0) }
            return [page.newest, number].compactMap(\.self).max().map { "\($0)" }
        case .cursor: return page.next ?? recorded
        case .everything:
            guard isComplete, cursor.page == nil, page.next == nil, let tag = page.tag else {
                return nil
            }
            return "\(answered) \(tag)"
        }
    }

    /// The tag of the whole list, if no change of this device was answered since it was read: an answered change that
    /// another device has undone would have brought the tag back, and the list must be read.
    func tag(_ cursor: PullCursor, _ answered: Position) -> String? {
        guard form == .everything, cursor.page == nil else { return nil }
        let parts = cursor.sources[name]?.split(separator: " ", maxSplits: 1) ?? []
        guard parts.count == 2, parts[0] == "\(answered)" else { return nil }
        return String(parts[1])
    }
}
