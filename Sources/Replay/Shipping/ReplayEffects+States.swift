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
    /// What a read was answered 401 for.
    private(set) var refusal = Refusal.none

    /// The refusal of a token for reading.
    enum Refusal: Hashable {
        case none
        /// The token is being renewed.
        case renewing
        /// Its renewal has brought no better one.
        case refused(String?)
    }
    /// True if an element of this read is missing: then the state that has won a conflict may be missing, too.
    var isPartial = false
    /// Why a source could not be read.
    var message: String?
    /// The number of reads in a row that have failed.
    var failures = 0
    /// The time before which the API wants no read.
    var notBefore = Int64.min

    /// READ-7: an API that refuses only reads must not pause the run.
    ///
    /// - Parameter token: the token of the requests.
    /// - Returns: true if the token is of no use for reading.
    mutating func vet(
        _ answer: inout ReplayState.Answer, isRead: Bool, with token: String?
    ) -> Bool {
        guard isRead, case .reply(var reply) = answer else { return false }
        guard reply.status == 401 else {
            if reply.states != nil { refusal = .none }
            return false
        }
        guard refusal == .renewing || refusal == .refused(token) else {
            refusal = .renewing
            return false
        }
        refusal = .refused(token)
        reply.status = 200
        reply.body = Array("[]".utf8)
        reply.isServers = false
        reply.states = .failed("the API does not accept the token for reading")
        answer = .reply(reply)
        return true
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
        if source.form.isSinceNumber, next == nil, states.unusable + states.notReady > 0 {
            statesRead.message =
                "\(source.type): the list cannot be continued after a page without a greater number, of which elements are unusable or not ready"
        }
        var drafts = states.states
        if source.form == .everything {
            if cursor.page == nil { statesRead.listing = StatesRead.Listing(through: through) }
            drafts += absences(states, source, cursor, isLast: next == nil)
        }
        let isWaiting = cursor.isHeld == true || states.notReady > 0
        let recorded = recordable(
            cursor.recording(
                source.cursor(
                    after: states, cursor, isComplete: statesRead.listing?.isComplete ?? false,
                    store.view(Outbox.self).lastRecord), of: source), after: cursor, source)
        // The tag of a list of which something is missing would hide that.
        let isTagged = source.form == .everything
        let held = isTagged ? cursor.recording(nil, of: source) : cursor
        let (after, ifWaiting) = (recorded.recorded.text, isTagged ? held.recorded.text : nil)
        let result = try await records.record(
            drafts, through: through,
            cursors: StateCursors(
                after: isWaiting ? ifWaiting : after, ifWaiting: ifWaiting,
                ifUnusable: isTagged || isWaiting ? ifWaiting : after),
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
        if result.conflicts > 0, replayer.options.ships { state.reload(store.view(Outbox.self)) }
        let current = isHeld || isTagged && result.unusable > 0 ? held : recorded
        guard let next else {
            let isAgain = statesRead.missing != nil && cursor.isSecond == nil
            return isAgain ? current.again(isHeld: isHeld) : current.nextSource(of: sources)
        }
        return current.continuing(at: next, isHeld: isHeld)
    }

    /// The cursor after a page, or the one before it if that cannot be recorded.
    private mutating func recordable(
        _ cursor: PullCursor, after earlier: PullCursor, _ source: PullSource
    ) -> PullCursor {
        let text = cursor.recorded.text ?? ""
        let size = text.utf8.count
        guard size <= SyncPulled.cursorBytesMax, !sentTokens.isFound(inCursor: text) else {
            let reason =
                size > SyncPulled.cursorBytesMax
                ? "the cursors of all lists have \(size) bytes, more than \(SyncPulled.cursorBytesMax)"
                : "the cursor has the token in it"
            statesRead.message =
                "\(source.type): \(reason); the list is read from the same place again"
            return earlier
        }
        return cursor
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

    private static let longestWaitSeconds = 86_400.0

    /// The time to which a read is put off because the API asks to wait; nil if it may be sent.
    var readsWaitUntil: Int64? {
        let now = store.deviceNow
        let time = min(statesRead.notBefore, now + Int64(Self.longestWaitSeconds) * 1_000)
        return time > now ? time : nil
    }

    /// Plans the next read of a run without end, after one that has failed.
    private mutating func planRead(afterSeconds seconds: Double?) {
        statesRead.failures += 1
        let backoff = min(60 << min(statesRead.failures, 6), 3_600)
        let delay = max(1, min(seconds ?? Double(backoff), Self.longestWaitSeconds))
        let time = store.deviceNow + Int64(delay * 1_000)
        if seconds != nil { statesRead.notBefore = time }
        guard isLive else { return }
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
