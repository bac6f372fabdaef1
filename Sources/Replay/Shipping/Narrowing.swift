// The machine that tells a failing event from a failing endpoint: it narrows a batch that fails again and again down
// to the event that is the reason. N1 to N6 of Spec/protocol/replay.md.

import Foundation

/// The search for the event on which requests fail.
///
/// | state | next | by |
/// |---|---|---|
/// | none | halving | a batch failed twice, and another request was answered well since (N2) |
/// | none | none | the same for a batch of one event: it is sent alone from then on (N3) |
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
        /// W3: the pipeline pauses, since no batch is accepted. Reads may be answered.
        case paused
    }

    enum Effect {
        /// Send an event alone, and after a wait if it has failed alone before.
        case suspect(ReplayItem, failures: Int)
        /// The endpoint is the likelier reason: send the event with others, after them.
        case clear(ReplayItem)
        /// The event is the reason.
        case setAside(ReplayItem, Refusal)
        /// An event that had failed is accepted: the events that are set aside are sent again.
        case releaseSetAside
        /// The endpoint may be the reason.
        case wait(Refusal)
        /// The server asks to wait, whatever the reason.
        case delay(seconds: Double)

        var isWait: Bool { if case .wait = self { true } else { false } }
    }

    enum Search {
        case none
        /// One of the events is a reason. `part`: those of them that are under way.
        case halving([ReplayItem], part: [ReplayItem]?)
        /// No event was accepted yet: the other one is sent alone.
        case comparing(ReplayItem, with: ReplayItem, isUnderWay: Bool)
    }

    /// What is known of an event that failed and was not accepted since.
    struct History {
        /// The number of its failures alone, after it was found.
        var failuresAlone = 0
        /// The number of accepted batches before its first failure, or before the search that has found it: only
        /// what is accepted later shows that the endpoint is well.
        var acceptedBefore: Int
    }

    var search = Search.none
    /// The number of batches that failed since one with the same events was accepted.
    var failures = 0
    /// The events of the last of them that are not accepted since.
    var failed: [ReplayItem] = []
    /// The number of failures at which the next search may begin.
    var searchAt = 0
    /// The number of accepted batches, and the number when the last search began.
    var accepted = 0
    var acceptedBeforeSearch = 0
    var histories: [UUID: History] = [:]
    /// Whether a read goes before the next batch, if one is due.
    var readsFirst = false

    /// Whether the parts of a failed batch are sent: one request at a time is under way then.
    var isSearching: Bool { if case .none = search { false } else { true } }

    /// Whether a read is sent for its answer alone: it shows whether the endpoint is well.
    var wantsProbe: Bool { readsFirst && failed.count > 1 && failures >= searchAt }

    /// Whether a failure of these events says more of them than of the endpoint: one of them has failed before, and
    /// another batch was accepted since. The next search may begin.
    func isProven(_ items: [ReplayItem]) -> Bool {
        guard failures > 0, failures + 1 >= max(2, searchAt) else { return false }
        return items.contains { histories[$0.id].map { $0.acceptedBefore < accepted } ?? false }
    }

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
            let isSmall = items.count < 8 && accepted == acceptedBeforeSearch
            let part = Array(items.prefix(isSmall ? 1 : max(1, items.count / 2)))
            search = .halving(items, part: part)
            return part
        case .comparing(let suspect, let other, _):
            search = .comparing(suspect, with: other, isUnderWay: true)
            return [other]
        }
    }

    /// N1: a read is sent before the events that failed wait for another run. False if none is due, and it would show
    /// nothing.
    mutating func probeNow(isReadDue: Bool) -> Bool {
        guard failures > 0, isReadDue || failed.count > 1, !isSearching else { return false }
        (readsFirst, searchAt) = (true, min(searchAt, failures))
        return true
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
        for item in failed { histories[item.id] = nil }
        (failures, failed, readsFirst) = (0, [], false)
    }

    mutating func handle(_ input: Input) -> [Effect] {
        switch input {
        case .failed(let items, let refusal): return handleFailure(items, refusal)
        case .accepted(let items): return handleSuccess(items)
        case .pageRead:
            if !isSearching, wantsProbe { beginSearch() }
        case .readFailed:
            if wantsProbe { postponeSearch() }
            readsFirst = false
        case .aborted: if isPartUnderWay { search = .none }
        case .paused:
            // A read that is due goes. One for its answer alone would end the pause at once, again and again.
            if failures > 0, failures >= searchAt { postponeSearch() }
            readsFirst = true
        }
        return []
    }

    // MARK: Successes

    private mutating func handleSuccess(_ items: [ReplayItem]) -> [Effect] {
        accepted += 1
        if !histories.isEmpty { for item in items { histories[item.id] = nil } }
        var effects: [Effect] = items.first?.isAlone == true ? [.releaseSetAside] : []
        if case .halving(let bad, let part?) = search {
            let ids = Set(part.map(\.id))
            let remaining = bad.filter { !ids.contains($0.id) }
            remove(part)
            search = remaining.count > 1 ? .halving(remaining, part: nil) : .none
            if remaining.count == 1 {
                remove(remaining)
                histories[remaining[0].id] = History(acceptedBefore: acceptedBeforeSearch)
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
    mutating func remove(_ items: [ReplayItem]) -> Bool {
        guard failures > 0 else { return false }
        let ids = Set(items.map(\.id))
        let count = failed.count
        failed.removeAll { ids.contains($0.id) }
        return failed.count < count
    }
}
