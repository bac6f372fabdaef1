// Divides something scarce (connections, bytes, turns) among accounts so that no number of requests
// of one account exhausts it. Used by FairQueue. Spec/operations/operating.md, OPS-21.

import EventSourcing

/// The amounts that accounts hold of one capacity.
///
/// An account that holds nothing gets what is free. One that holds something gets more as long as it
/// then holds at most half of what stays free. So one busy account ends at a third of the capacity,
/// the next at a third of what is left, and a part stays free for accounts that come later.
package struct FairShares: Sendable {
    /// The answer to an account that asks for an amount.
    package enum Answer: Hashable, Sendable {
        /// The amount is the account's until it is released.
        case granted
        /// The account holds its share already.
        case beyondShare
        /// All accounts together hold too much.
        case exhausted
    }

    /// What can be held in all.
    package let capacity: Int
    /// True if several accounts divide the capacity. A single one may hold all of it.
    private let isDivided: Bool
    /// What is held in all.
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

    /// Returns a granted amount, or a part of it.
    package mutating func release(_ amount: Int, of account: EntityID) {
        let left = (held[account] ?? 0) - amount
        precondition(left >= 0, "released more than was granted")
        held[account] = left == 0 ? nil : left
        used -= amount
    }
}
