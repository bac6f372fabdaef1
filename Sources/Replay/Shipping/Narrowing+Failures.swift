// What the search for the event on which requests fail does with a failure. N1 to N5 of Spec/protocol/replay.md.

import Foundation

extension Narrowing {
    /// The number of failures of a lone event after which it is set aside.
    private static let failuresMin = 2
    /// The longest wait within a search that a server may ask for, in seconds: a run until nothing moves waits no
    /// longer, and would never find the event.
    private static let delayMax = 5.0

    mutating func handleFailure(_ items: [ReplayItem], _ refusal: Refusal) -> [Effect] {
        let effects = narrow(items, refusal)
        guard case .wait(let seconds) = refusal.consequence, !effects.contains(where: \.isWait)
        else { return effects }
        return effects + [.delay(seconds: min(seconds, Self.delayMax))]
    }

    private mutating func narrow(_ items: [ReplayItem], _ refusal: Refusal) -> [Effect] {
        if items.count == 1, items[0].isAlone { return handleFailureAlone(items[0], refusal) }
        switch search {
        case .halving(_, let part?) where !part.isEmpty:
            guard items.count == 1 else {
                search = .halving(items, part: nil)
                return []
            }
            return suspectEvent(items[0], acceptedBefore: acceptedBeforeSearch, refusal)
        case .comparing(let suspect, _, true):
            return [.clear(suspect), .clear(items[0])] + abandonSearch(refusal)
        default: return handleBatchFailure(items, refusal)
        }
    }

    private mutating func handleBatchFailure(
        _ items: [ReplayItem], _ refusal: Refusal
    ) -> [Effect] {
        let isSearchDue = isProven(items)
        if failures == 0 { searchAt = refusal.isLong ? 1 : 2 }
        failures += 1
        failed = items
        for item in items where histories[item.id] == nil {
            histories[item.id] = History(acceptedBefore: accepted)
        }
        readsFirst = failures > 1 || refusal.isLong
        guard isSearchDue, !isSearching else { return [.wait(refusal)] }
        // A single event needs no search: what was accepted since its first failure decides.
        if items.count == 1, let history = histories[items[0].id] {
            return suspectEvent(items[0], acceptedBefore: history.acceptedBefore, refusal)
        }
        beginSearch()
        return []
    }

    /// N2: what is accepted from now on shows that the endpoint is well.
    mutating func beginSearch() {
        (acceptedBeforeSearch, readsFirst) = (accepted, false)
        search = .halving(failed, part: nil)
    }

    /// N3, N4: a lone event failed. If no other was accepted since, another one decides.
    ///
    /// - Parameter acceptedBefore: the number of accepted batches before its first failure, or before the search.
    private mutating func suspectEvent(
        _ item: ReplayItem, acceptedBefore: Int, _ refusal: Refusal
    ) -> [Effect] {
        let others = failed
        remove([item])
        histories[item.id] = History(failuresAlone: 1, acceptedBefore: acceptedBefore)
        search = .none
        let effects = [Effect.suspect(item, failures: 1)]
        guard accepted == acceptedBefore else { return effects }
        var lanes: Set = [item.laneID]
        // One in the middle: those that were cleared before are at the end.
        let firsts = others.filter { lanes.insert($0.laneID).inserted }
        guard !firsts.isEmpty else { return [.clear(item)] + abandonSearch(refusal) }
        search = .comparing(item, with: firsts[firsts.count / 2], isUnderWay: false)
        return effects
    }

    /// N4: the endpoint is the reason. What was accepted so far shows nothing of it any more.
    private mutating func abandonSearch(_ refusal: Refusal) -> [Effect] {
        (search, readsFirst) = (.none, false)
        for id in histories.keys { histories[id] = History(acceptedBefore: accepted) }
        postponeSearch()
        return [.wait(refusal)]
    }

    /// N4: an outage is not multiplied, and an event is found within minutes after it.
    mutating func postponeSearch() { searchAt = failures + min(failures, 8) }

    /// N5: an event that is sent alone failed.
    private mutating func handleFailureAlone(
        _ item: ReplayItem, _ refusal: Refusal
    ) -> [Effect] {
        guard item.failuresAlone == 0 else { return [.setAside(item, refusal)] }
        var history = histories[item.id] ?? History(acceptedBefore: accepted)
        history.failuresAlone += 1
        histories[item.id] = history
        let effects = [Effect.suspect(item, failures: history.failuresAlone)]
        guard accepted > history.acceptedBefore else { return effects + [.wait(refusal)] }
        guard history.failuresAlone >= Self.failuresMin else { return effects }
        histories[item.id] = nil
        return [.setAside(item, refusal)]
    }
}
