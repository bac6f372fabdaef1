// The machine that tells a failing event from a failing endpoint: it narrows a batch that fails again and again down
// to the event that is the reason. N1 to N6 of Spec/protocol/replay.md.

import Foundation

/// The search for the event on which requests fail.
///
/// | state | next | by |
/// |---|---|---|
/// | none | halving | a batch failed twice, and another request was answered well since (N2) |
/// | halving | halving | a part fails: it has the reason; it is accepted: the rest has it |
/// | halving | none | one event is left, and another batch was accepted (N3) |
/// | halving | comparing | one event is left, and no batch was accepted |
/// | comparing | none | the other event is accepted, or fails: the endpoint is the reason (N4) |
struct Narrowing: Sendable {
    enum Input {
        /// A batch failed.
        case failed([ReplayItem], Refusal)
        /// The answer to a batch counts.
        case accepted([ReplayItem])
        /// A page was read.
        case pageRead
        /// A read failed.
        case readFailed
        /// W2, W3: the answer is about the form of the batch.
        case aborted
    }

    enum Effect {
        /// Send an event alone, and after a wait if it has failed alone before.
        case suspect(ReplayItem, failures: Int)
        /// The endpoint is the likelier reason: send the event with others, after them.
        case clear(ReplayItem)
        /// The event is the reason.
        case setAside(ReplayItem, Refusal)
        /// The way is well again for an event that failed.
        case releaseSetAside
        /// The endpoint may be the reason.
        case wait(Refusal)
    }

    private enum Search {
        case none
        /// One of the events is a reason. `part`: those of them that are under way.
        case halving([ReplayItem], part: [ReplayItem]?)
        /// No event was accepted yet: the other one is sent alone.
        case comparing(ReplayItem, with: ReplayItem, isUnderWay: Bool)
    }

    private struct Suspect {
        /// The number of its failures alone.
        var failures: Int
        /// The number of accepted batches before the first failure of a batch with the event.
        var acceptedBefore: Int
    }

    private var search = Search.none
    /// The number of batches that failed since one with the same events was accepted.
    private var failures = 0
    /// The events of the last of them that are not accepted since.
    private(set) var failed: [ReplayItem] = []
    /// The number of failures at which the next search may begin.
    private var searchAt = 0
    /// The number of accepted batches, and the number when the failures, or the last search, began.
    private var accepted = 0
    private var acceptedBefore = 0
    private var suspects: [UUID: Suspect] = [:]
    /// Whether a read goes before the next batch, if one is due.
    private(set) var readsFirst = false

    /// The number of failures of a lone event after which it is set aside.
    private static let failuresMin = 2

    /// Whether the parts of a failed batch are sent: one request at a time is under way then.
    var isSearching: Bool { if case .none = search { false } else { true } }

    /// Whether a read is sent for its answer alone: it shows whether the endpoint is well.
    var wantsProbe: Bool { readsFirst && failed.count > 1 && failures >= searchAt }

    /// Whether the next failure of a batch begins a search.
    private var isProven: Bool {
        accepted > acceptedBefore && failures > 0 && failures + 1 >= max(2, searchAt)
    }

    /// Whether batches were accepted in the last search, and others of the events that failed are left.
    var hasSearched: Bool { isProven && failures > 1 }

    /// Whether the request under way is a part.
    var isPartUnderWay: Bool {
        switch search {
        case .none: false
        case .halving(_, let part): part != nil
        case .comparing(_, _, let isUnderWay): isUnderWay
        }
    }

    /// The next part to send; nil if there is none.
    mutating func nextPart() -> [ReplayItem]? {
        switch search {
        case .none: return nil
        case .halving(let items, _):
            // A few at once, as long as no event was accepted: N4 has the number of requests.
            let isSmall = items.count < 8 && accepted == acceptedBefore
            let part = Array(items.prefix(isSmall ? 1 : max(1, items.count / 2)))
            search = .halving(items, part: part)
            return part
        case .comparing(let suspect, let other, _):
            search = .comparing(suspect, with: other, isUnderWay: true)
            return [other]
        }
    }

    /// The events of the part are settled, held or under way by now.
    mutating func partSkipped() {
        switch search {
        case .none, .comparing: search = .none
        case .halving(let items, let part):
            let remaining = Array(items.dropFirst(part?.count ?? 0))
            search = remaining.isEmpty ? .none : .halving(remaining, part: nil)
        }
    }

    /// The part was answered.
    mutating func partEnded() {
        switch search {
        case .none: break
        case .halving(let items, _): search = .halving(items, part: nil)
        case .comparing(let suspect, let other, _):
            search = .comparing(suspect, with: other, isUnderWay: false)
        }
    }

    /// The events that failed have left the queue without an accepted batch: a page has settled them, or a decision
    /// has removed them. Otherwise the next failure, of other events, would count as one of theirs.
    mutating func forgetFailures() {
        guard !isSearching, !failed.isEmpty else { return }
        (failures, failed, readsFirst) = (0, [], false)
    }

    mutating func handle(_ input: Input) -> [Effect] {
        switch input {
        case .failed(let items, let refusal): return handleFailure(items, refusal)
        case .accepted(let items): return handleSuccess(items)
        case .pageRead:
            if !isSearching, wantsProbe { begin() }
        case .readFailed:
            if wantsProbe { postponeSearch() }
            readsFirst = false
        case .aborted: if isPartUnderWay { search = .none }
        }
        return []
    }

    // MARK: Failures

    private mutating func handleFailure(_ items: [ReplayItem], _ refusal: Refusal) -> [Effect] {
        if items.count == 1, items[0].isAlone { return failedAlone(items[0], refusal) }
        switch search {
        case .halving(_, let part?) where !part.isEmpty:
            guard items.count == 1 else {
                search = .halving(items, part: nil)
                return []
            }
            return found(items[0], refusal)
        case .comparing(let suspect, _, true):
            return [.clear(suspect), .clear(items[0])] + searchedInVain(refusal)
        default: return batchFailed(items, refusal)
        }
    }

    private mutating func batchFailed(_ items: [ReplayItem], _ refusal: Refusal) -> [Effect] {
        let isSearchDue = isProven
        if failures == 0 { (acceptedBefore, searchAt) = (accepted, refusal.isLong ? 1 : 2) }
        failures += 1
        failed = items
        readsFirst = failures > 1 || (refusal.isLong && items.count > 1)
        guard isSearchDue, !isSearching else { return [.wait(refusal)] }
        guard items.count > 1 else { return found(items[0], refusal) }
        begin()
        return []
    }

    /// N2: what is accepted from now on shows that the endpoint is well.
    private mutating func begin() {
        (acceptedBefore, readsFirst) = (accepted, false)
        search = .halving(failed, part: nil)
    }

    /// N3, N4: a lone event failed. If no other was accepted since the failures began, another one decides.
    private mutating func found(_ item: ReplayItem, _ refusal: Refusal) -> [Effect] {
        let others = failed
        remove([item])
        suspects[item.id] = Suspect(failures: 1, acceptedBefore: acceptedBefore)
        search = .none
        let effects = [Effect.suspect(item, failures: 1)]
        guard accepted == acceptedBefore else { return effects }
        var lanes: Set = [item.laneID]
        // One in the middle: those that were cleared before are at the end.
        let firsts = others.filter { lanes.insert($0.laneID).inserted }
        guard !firsts.isEmpty else {
            suspects[item.id] = nil
            return [.clear(item)] + searchedInVain(refusal)
        }
        search = .comparing(item, with: firsts[firsts.count / 2], isUnderWay: false)
        return effects
    }

    private mutating func searchedInVain(_ refusal: Refusal) -> [Effect] {
        if case .comparing(let suspect, _, _) = search { suspects[suspect.id] = nil }
        search = .none
        (acceptedBefore, readsFirst) = (accepted, false)
        postponeSearch()
        return [.wait(refusal)]
    }

    /// N4: an outage is not multiplied, and an event is found within minutes after it.
    private mutating func postponeSearch() { searchAt = failures + min(failures, 8) }

    /// N5: an event that is sent alone failed.
    private mutating func failedAlone(_ item: ReplayItem, _ refusal: Refusal) -> [Effect] {
        guard item.failuresAlone == 0 else { return [.setAside(item, refusal)] }
        var suspect = suspects[item.id] ?? Suspect(failures: 0, acceptedBefore: accepted)
        suspect.failures += 1
        suspects[item.id] = suspect
        let effects = [Effect.suspect(item, failures: suspect.failures)]
        guard accepted > suspect.acceptedBefore else { return effects + [.wait(refusal)] }
        guard suspect.failures >= Self.failuresMin else { return effects }
        suspects[item.id] = nil
        return [.setAside(item, refusal)]
    }

    // MARK: Successes

    private mutating func handleSuccess(_ items: [ReplayItem]) -> [Effect] {
        accepted += 1
        for item in items where item.isAlone { suspects[item.id] = nil }
        var effects: [Effect] = items.first?.isAlone == true ? [.releaseSetAside] : []
        if case .halving(let bad, let part?) = search {
            let ids = Set(part.map(\.id))
            let remaining = bad.filter { !ids.contains($0.id) }
            remove(part)
            search = remaining.count > 1 ? .halving(remaining, part: nil) : .none
            if remaining.count == 1 {
                remove(remaining)
                suspects[remaining[0].id] = Suspect(failures: 0, acceptedBefore: acceptedBefore)
                effects.append(.suspect(remaining[0], failures: 0))
            }
        } else if case .comparing(_, _, true) = search {
            search = .none
            remove(items)
        } else if remove(items) {
            failed = []
            effects.append(.releaseSetAside)
        }
        if failed.isEmpty { (failures, readsFirst) = (0, false) }
        return effects
    }

    /// Removes events from those that failed. False if there is none of them.
    @discardableResult
    private mutating func remove(_ items: [ReplayItem]) -> Bool {
        guard failures > 0 else { return false }
        let ids = Set(items.map(\.id))
        let count = failed.count
        failed.removeAll { ids.contains($0.id) }
        return failed.count < count
    }
}
