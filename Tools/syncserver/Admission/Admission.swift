// Lends parts of a capacity to requests, which wait for their turn. FairQueue decides.
// Spec/operations/operating.md, OPS-21.

import EventSourcing
import Synchronization

/// A capacity that requests of several accounts share.
package final class Admission: Sendable {
    /// The reason for refusing a loan.
    package enum Refusal: Error, Hashable {
        /// The account would exceed its share.
        case beyondShare
        /// The amount is not free.
        case exhausted
        /// The request has waited for `waitMax`.
        case timedOut
    }

    private struct Waiter {
        let continuation: CheckedContinuation<Void, any Error>
        /// Ends the wait after `waitMax`. Cancelled when the wait ends, or each request would leave a
        /// sleeping task behind.
        var timeout: Task<Void, any Error>?
    }

    private struct State {
        var queue: FairQueue
        var tickets = 0
        var waiting: [FairQueue.Ticket: Waiter] = [:]
    }

    private let state: Mutex<State>
    private let waitMax: Duration
    private let sleep: @Sendable (Duration) async throws -> Void

    /// - Parameters:
    ///   - isDivided: true if there are several accounts.
    ///   - waitMax: the longest wait of a request.
    ///   - sleep: sleeps for a duration; tests count the calls that have not ended.
    package init(
        capacity: Int, isDivided: Bool, waitMax: Duration = .seconds(20),
        sleep: @escaping @Sendable (Duration) async throws -> Void = {
            try await Task.sleep(for: $0)
        }
    ) {
        state = Mutex(
            State(queue: FairQueue(FairShares(capacity: capacity, isDivided: isDivided))))
        self.waitMax = waitMax
        self.sleep = sleep
    }

    /// The amount that is lent.
    package var used: Int { state.withLock { $0.queue.used } }

    /// Lends an amount at once or not at all. Must not be mixed with `borrow(_:account:)`.
    ///
    /// - Throws: `Refusal.beyondShare` or `.exhausted`.
    package func borrowNow(_ amount: Int, account: String) throws(Refusal) -> Loan {
        switch state.withLock({ $0.queue.grantNow(amount, to: EntityID(account)) }) {
        case .granted: return Loan(amount, of: EntityID(account), from: self)
        case .beyondShare: throw .beyondShare
        case .exhausted: throw .exhausted
        }
    }

    /// Waits for the account's turn and lends an amount.
    ///
    /// - Throws: `Refusal.timedOut`; `CancellationError`.
    package func borrow(_ amount: Int, account: String) async throws -> Loan {
        let account = EntityID(account)
        let ticket = state.withLock { state in
            state.tickets += 1
            return state.tickets
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                resume { state in
                    state.waiting[ticket] = Waiter(continuation: continuation)
                    return state.queue.join(ticket, for: amount, account: account)
                }
                guard !Task.isCancelled else {
                    return abandon(ticket, account, CancellationError())
                }
                state.withLock { state in
                    guard state.waiting[ticket] != nil else { return }
                    state.waiting[ticket]?.timeout = Task { [weak self, waitMax, sleep] in
                        try await sleep(waitMax)
                        self?.abandon(ticket, account, Refusal.timedOut)
                    }
                }
            }
        } onCancel: {
            abandon(ticket, account, CancellationError())
        }
        return Loan(amount, of: account, from: self)
    }

    fileprivate func returnLoan(_ amount: Int, of account: EntityID) {
        guard amount > 0 else { return }
        resume { $0.queue.release(amount, account: account) }
    }

    /// Ends the wait of a request, if it still waits. The same critical section removes it from the
    /// queue, so that no amount is granted to a request that has ended.
    private func abandon(_ ticket: FairQueue.Ticket, _ account: EntityID, _ error: any Error) {
        var abandoned: Waiter?
        resume { state in
            abandoned = state.waiting.removeValue(forKey: ticket)
            return abandoned == nil ? [] : state.queue.leave(ticket, account: account)
        }
        abandoned?.timeout?.cancel()
        abandoned?.continuation.resume(throwing: error)
    }

    /// Changes the queue, then resumes the granted requests outside the lock.
    private func resume(_ change: (inout State) -> [FairQueue.Ticket]) {
        let granted = state.withLock { state in
            change(&state).map { state.waiting.removeValue(forKey: $0) }
        }
        for waiter in granted {
            waiter?.timeout?.cancel()
            waiter?.continuation.resume()
        }
    }
}

/// An amount that a request holds. Released at the latest when the loan is no longer referenced.
package final class Loan: Sendable {
    private let account: EntityID
    private let lender: Admission
    private let amount: Mutex<Int>

    fileprivate init(_ amount: Int, of account: EntityID, from lender: Admission) {
        self.amount = Mutex(amount)
        self.account = account
        self.lender = lender
    }

    deinit { shrink(to: 0) }

    /// Releases all but an amount.
    package func shrink(to remaining: Int) {
        let excess = amount.withLock { amount in
            defer { amount = min(amount, remaining) }
            return amount - min(amount, remaining)
        }
        lender.returnLoan(excess, of: account)
    }

    /// Releases the whole amount.
    package func release() { shrink(to: 0) }
}
