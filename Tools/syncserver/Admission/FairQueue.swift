// Decides whose turn it is when requests of several accounts wait for one capacity: round robin by
// account, within an account in the order of arrival. A value without clock or threads; Admission
// carries its decisions out. Spec/operations/operating.md, OPS-21.

import DequeModule
import EventSourcing

/// Requests that wait for an amount of a capacity.
package struct FairQueue: Sendable {
    /// Names a waiting request.
    package typealias Ticket = Int

    private struct Waiter {
        let ticket: Ticket
        let amount: Int
        /// What was granted to others, whose turn comes later, while this did not fit.
        var passed = 0
    }

    private var shares: FairShares
    private var lines: [EntityID: Deque<Waiter>] = [:]
    /// The accounts that wait, in the order of their turns.
    private var turns: Deque<EntityID> = []

    package init(_ shares: FairShares) { self.shares = shares }

    /// What is held in all.
    package var used: Int { shares.used }

    /// Lets a request wait behind the others of its account.
    ///
    /// - Parameter amount: at most the capacity.
    /// - Returns: the tickets that are granted now, the new one among them if it need not wait.
    package mutating func join(
        _ ticket: Ticket, for amount: Int, account: EntityID
    ) -> [Ticket] {
        precondition(amount <= shares.capacity, "more than the capacity is never granted")
        if lines[account] == nil { turns.append(account) }
        lines[account, default: []].append(Waiter(ticket: ticket, amount: amount))
        return grantTurns()
    }

    /// Grants an amount at once or not at all. Only for a capacity for which nothing waits.
    package mutating func grantNow(
        _ amount: Int, to account: EntityID
    ) -> FairShares.Answer {
        shares.grant(amount, to: account)
    }

    /// Returns an amount, or a part of it.
    ///
    /// - Returns: the tickets that are granted now.
    package mutating func release(_ amount: Int, account: EntityID) -> [Ticket] {
        shares.release(amount, of: account)
        return grantTurns()
    }

    /// Removes a request that no longer waits.
    ///
    /// - Returns: the tickets that are granted now: the removed one may have held up others.
    package mutating func leave(_ ticket: Ticket, account: EntityID) -> [Ticket] {
        lines[account]?.removeAll { $0.ticket == ticket }
        if lines[account]?.isEmpty == true {
            lines[account] = nil
            turns.removeAll { $0 == account }
        }
        return grantTurns()
    }

    /// Accounts beyond their share are passed over. One whose amount is not free is passed by smaller
    /// amounts, of together no more than its own: it waits for at most twice what it would without
    /// them, and a small request does not wait for a large one.
    private mutating func grantTurns() -> [Ticket] {
        var granted: [Ticket] = []
        var passed: [EntityID] = []
        var passable = Int.max
        var index = 0
        while index < turns.count, passable > 0, shares.used < shares.capacity {
            let account = turns[index]
            guard let first = lines[account]?.first else { preconditionFailure("none waits") }
            switch first.amount <= passable ? shares.grant(first.amount, to: account) : .exhausted {
            case .beyondShare: index += 1
            case .exhausted:
                passed.append(account)
                passable = min(passable, first.amount - first.passed)
                index += 1
            case .granted:
                granted.append(first.ticket)
                for account in passed { lines[account]?[0].passed += first.amount }
                if !passed.isEmpty { passable -= first.amount }
                lines[account]?.removeFirst()
                turns.remove(at: index)
                if lines[account]?.isEmpty == true {
                    lines[account] = nil
                } else {
                    turns.append(account)
                }
            }
        }
        return granted
    }
}
