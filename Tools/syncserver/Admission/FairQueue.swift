// Decides which request gets a part of a capacity next: round robin by account, first come, first
// served within an account. A value without clock or threads; Admission carries its decisions out.
// Spec/operations/operating.md, OPS-21.

import DequeModule
import EventSourcing

/// The requests that wait for an amount of a capacity.
package struct FairQueue: Sendable {
    /// The number of a waiting request.
    package typealias Ticket = Int

    private struct Waiter {
        let ticket: Ticket
        let amount: Int
        /// The amount granted to requests with later turns while this one did not fit.
        var passed = 0
    }

    private var shares: FairShares
    private var queues: [EntityID: Deque<Waiter>] = [:]
    /// The accounts with waiting requests, in the order of their turns.
    private var turns: Deque<EntityID> = []

    package init(_ shares: FairShares) { self.shares = shares }

    /// The amount that all accounts hold.
    package var used: Int { shares.used }

    /// Appends a request to those of its account.
    ///
    /// - Parameter amount: at most the capacity.
    /// - Returns: the tickets that are granted now, the new one among them if it need not wait.
    package mutating func join(
        _ ticket: Ticket, for amount: Int, account: EntityID
    ) -> [Ticket] {
        precondition(amount <= shares.capacity, "more than the capacity is never granted")
        if queues[account] == nil { turns.append(account) }
        queues[account, default: []].append(Waiter(ticket: ticket, amount: amount))
        return grantTurns()
    }

    /// Grants an amount at once or not at all. Only for a capacity without waiting requests.
    package mutating func grantNow(
        _ amount: Int, to account: EntityID
    ) -> FairShares.Answer {
        shares.grant(amount, to: account)
    }

    /// Releases an amount, or a part of it.
    ///
    /// - Returns: the tickets that are granted now.
    package mutating func release(_ amount: Int, account: EntityID) -> [Ticket] {
        shares.release(amount, of: account)
        return grantTurns()
    }

    /// Removes a request that no longer waits.
    ///
    /// - Returns: the tickets that are granted now: the removed one may have blocked others.
    package mutating func leave(_ ticket: Ticket, account: EntityID) -> [Ticket] {
        queues[account]?.removeAll { $0.ticket == ticket }
        if queues[account]?.isEmpty == true {
            queues[account] = nil
            turns.removeAll { $0 == account }
        }
        return grantTurns()
    }

    /// Grants in the order of turns. Skips accounts that would exceed their share. A request whose
    /// amount is not free may be overtaken by smaller ones, up to its own amount in total: it waits at
    /// most twice as long as without them, and a small request does not wait for a large one.
    private mutating func grantTurns() -> [Ticket] {
        var granted: [Ticket] = []
        var passed: [EntityID] = []
        var passable = Int.max
        var index = 0
        while index < turns.count, passable > 0, shares.used < shares.capacity {
            let account = turns[index]
            guard let first = queues[account]?.first else { preconditionFailure("none waits") }
            switch first.amount <= passable ? shares.grant(first.amount, to: account) : .exhausted {
            case .beyondShare: index += 1
            case .exhausted:
                passed.append(account)
                passable = min(passable, first.amount - first.passed)
                index += 1
            case .granted:
                granted.append(first.ticket)
                for account in passed { queues[account]?[0].passed += first.amount }
                if !passed.isEmpty { passable -= first.amount }
                queues[account]?.removeFirst()
                turns.remove(at: index)
                if queues[account]?.isEmpty == true {
                    queues[account] = nil
                } else {
                    turns.append(account)
                }
            }
        }
        return granted
    }
}
