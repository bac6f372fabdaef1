// What the requests of all accounts share, each account its fair part: places, memory, turns.
// Borrowed by EventRoutes, in this order, so that none waits for another in a circle.
// Spec/operating.md, OPS-21.

import SyncServerAdmission

/// The capacities that requests share.
struct SharedCapacity: Sendable {
    /// Bytes that one page can need: what SYNC-34 allows, and the commas.
    static let pageBytesMax = (1024 + 256 + 1) * 1024
    /// The least memory of which an account's share holds a whole body.
    static let memoryMin = 8 * 1024 * 1024
    /// Requests that are read into events, stored or looked up at the same time.
    private static let turnsMax = 8

    private let places: Admission
    private let memory: Admission
    private let turns: Admission

    /// - Parameters:
    ///   - connections: that may be open. A tenth of them is kept for those without a place.
    ///   - memory: bytes of bodies and pages that may be held, at least `memoryMin`.
    ///   - hasAccounts: true if there are several accounts.
    init(connections: Int, memory: Int, hasAccounts: Bool) {
        places = Admission(capacity: max(1, connections * 9 / 10), isDivided: hasAccounts)
        self.memory = Admission(capacity: memory, isDivided: hasAccounts)
        turns = Admission(capacity: Self.turnsMax, isDivided: hasAccounts)
    }

    /// Bytes of bodies and pages that are held or about to be.
    var memoryUsed: Int { memory.used }

    /// A place among the requests under way.
    ///
    /// - Throws: `RequestError` with 429 if the account has its share, with 503 if there is none.
    func place(_ account: String) throws(RequestError) -> Loan {
        do { return try places.borrowNow(1, account: account) } catch {
            throw RequestError(error)
        }
    }

    /// Memory for a body or a page.
    ///
    /// - Throws: `RequestError` with 503 if the account's turn does not come.
    func memory(_ bytes: Int, _ account: String) async throws -> Loan {
        try await wait { try await memory.borrow(bytes, account: account) }
    }

    /// The turn to work.
    ///
    /// - Throws: `RequestError` with 503 if the account's turn does not come.
    func turn(_ account: String) async throws -> Loan {
        try await wait { try await turns.borrow(1, account: account) }
    }

    private func wait(_ borrow: () async throws -> Loan) async throws -> Loan {
        do { return try await borrow() } catch let refusal as Admission.Refusal {
            throw RequestError(refusal)
        }
    }
}

extension RequestError {
    fileprivate init(_ refusal: Admission.Refusal) {
        switch refusal {
        case .beyondShare:
            self.init(
                .tooManyRequests, "too_many_requests",
                "more requests under way than this account may have", headers: [.retryAfter: "1"])
        case .exhausted, .timedOut:
            self.init(
                .serviceUnavailable, "unavailable", "the server has too much to do now",
                headers: [.retryAfter: "5"])
        }
    }
}
