// What the search for the event on which requests fail does with a failure. N1 to N5 of Spec/protocol/replay.md.

import Foundation

extension Narrowing {
    /// The number of failures of a lone event after which it is set aside.
    private static let failuresMin = 2

    mutating func handleFailure(_ items: [ReplayItem], _ refusal: Refusal) -> [Effect] {
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
        readsFirst = failures > 1 || refusal.isLong
        guard isSearchDue, !isSearching else { return [.wait(refusal)] }
        guard items.count > 1 else { return found(items[0], refusal) }
        begin()
        return []
    }

    /// N2: what is accepted from now on shows that the endpoint is well.
    mutating func begin() {
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
    mutating func postponeSearch() { searchAt = failures + min(failures, 8) }

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
}
