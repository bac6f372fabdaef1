// Divides a limited capacity (places, bytes, turns) among accounts so that no number of requests of
// one account exhausts it. Spec/operations/operating.md, OPS-21.

import EventSourcing

/// The amounts that accounts hold of one capacity.
///
/// An account that holds nothing may get all that is free. An account that holds some gets more as long
/// as it then holds at most half of what stays free. So one busy account ends at a third of the
/// capacity, the next at a third of the remainder, and a part stays free for further accounts.
package struct FairShares: Sendable {
    /// The answer to a request for an amount.
    package enum Answer: Hashable, Sendable {
        /// The amount is the account's until it is released.
        case granted
        /// The account would exceed its share.
        case beyondShare
        /// The amount is not free.
        case exhausted
    }

    /// The total amount.
    package let capacity: Int
    /// True if several accounts share the capacity. A single account may hold all of it.
    private let isDivided: Bool
    /// The amount that all accounts hold.
    package private(set) var used = 0
    private var held: [EntityID: Int] = [:]

    package init(capacity: Int, isDivided: Bool) {
        self.capacity = capacity
        self.isDivided = isDivided
    }

    /// Grants an amount if it is within the account's share.
    ///
    /// - Parameter amount: at most `capacity`.
    package mutating func grant(_ amount: Int, to account: EntityID) -> Answer {
        let own = held[account] ?? 0
        let free = capacity - used - amount
        if isDivided, own > 0, 2 * (own + amount) > free { return .beyondShare }
        guard free >= 0 else { return .exhausted }
        held[account] = own + amount
        used += amount
        return .granted
    }

    /// Releases a granted amount, or a part of it.
    package mutating func release(_ amount: Int, of account: EntityID) {
        let remaining = (held[account] ?? 0) - amount
        precondition(remaining >= 0, "released more than was granted")
        held[account] = remaining == 0 ? nil : remaining
        used -= amount
    }
}
