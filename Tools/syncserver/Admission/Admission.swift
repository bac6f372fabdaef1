// Lets requests wait for their part of a capacity and lends it to them. The decisions are
// FairQueue's. Asked by EventRoutes. Spec/operating.md, OPS-21.

import Synchronization

/// A capacity that requests of several accounts share.
package final class Admission: Sendable {
    /// Why a request got nothing.
    package enum Refusal: Error, Hashable {
        /// The account holds its share.
        case beyondShare
        /// All accounts together hold too much.
        case exhausted
        /// The request has waited for as long as a request may.
        case timedOut
    }

    private struct State {
        var queue: FairQueue
        var tickets = 0
        var waiting: [FairQueue.Ticket: CheckedContinuation<Void, any Error>] = [:]
    }

    private let state: Mutex<State>
    private let waitMax: Duration

    /// - Parameters:
    ///   - isDivided: true if there are several accounts.
    ///   - waitMax: how long a request may wait.
    package init(capacity: Int, isDivided: Bool, waitMax: Duration = .seconds(20)) {
        state = Mutex(
            State(queue: FairQueue(FairShares(capacity: capacity, isDivided: isDivided))))
        self.waitMax = waitMax
    }

    /// What is lent in all.
    package var used: Int { state.withLock { $0.queue.used } }

    /// Lends an amount at once or not at all. Not together with `borrow(_:account:)`.
    ///
    /// - Throws: `Refusal.beyondShare` or `.exhausted`.
    package func borrowNow(_ amount: Int, account: String) throws(Refusal) -> Loan {
        switch state.withLock({ $0.queue.take(amount, account: account) }) {
        case .granted: return Loan(amount, of: account, from: self)
        case .beyondShare: throw .beyondShare
        case .exhausted: throw .exhausted
        }
    }

    /// Lends an amount, when it is the account's turn.
    ///
    /// - Throws: `Refusal.timedOut`; `CancellationError`.
    package func borrow(_ amount: Int, account: String) async throws -> Loan {
        let ticket = state.withLock { state in
            state.tickets += 1
            return state.tickets
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                resume { state in
                    state.waiting[ticket] = continuation
                    return state.queue.join(ticket, for: amount, account: account)
                }
                guard !Task.isCancelled else {
                    return abandon(ticket, account, CancellationError())
                }
                guard state.withLock({ $0.waiting[ticket] != nil }) else { return }
                Task { [weak self, waitMax] in
                    try await Task.sleep(for: waitMax)
                    self?.abandon(ticket, account, Refusal.timedOut)
                }
            }
        } onCancel: {
            abandon(ticket, account, CancellationError())
        }
        return Loan(amount, of: account, from: self)
    }

    fileprivate func takeBack(_ amount: Int, _ account: String) {
        guard amount > 0 else { return }
        resume { $0.queue.release(amount, account: account) }
    }

    /// Ends the waiting of a request, if it still waits. The queue forgets it in the same step, so
    /// that nothing is granted to a request that is gone.
    private func abandon(_ ticket: FairQueue.Ticket, _ account: String, _ error: any Error) {
        var abandoned: CheckedContinuation<Void, any Error>?
        resume { state in
            abandoned = state.waiting.removeValue(forKey: ticket)
            return abandoned == nil ? [] : state.queue.leave(ticket, account: account)
        }
        abandoned?.resume(throwing: error)
    }

    /// Changes the queue, then resumes what was granted, outside the lock.
    private func resume(_ change: (inout State) -> [FairQueue.Ticket]) {
        let granted = state.withLock { state in
            change(&state).map { state.waiting.removeValue(forKey: $0) }
        }
        for continuation in granted { continuation?.resume() }
    }
}

/// An amount that a request holds, returned at the latest when the loan is no longer referenced.
package final class Loan: Sendable {
    private let account: String
    private let lender: Admission
    private let amount: Mutex<Int>

    fileprivate init(_ amount: Int, of account: String, from lender: Admission) {
        self.amount = Mutex(amount)
        self.account = account
        self.lender = lender
    }

    deinit { shrink(to: 0) }

    /// Returns all but an amount.
    package func shrink(to rest: Int) {
        let excess = amount.withLock { amount in
            defer { amount = min(amount, rest) }
            return amount - min(amount, rest)
        }
        lender.takeBack(excess, account)
    }

    /// Returns all of it.
    package func release() { shrink(to: 0) }
}
