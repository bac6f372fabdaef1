// What the requests of all accounts share, each account its fair part: places, memory for bodies,
// memory for replies, turns. Borrowed by EventRoutes, in this order, so that none waits for another in
// a circle.
// Spec/operations/operating.md, OPS-21.

import SyncServerAdmission

/// The capacities that requests share.
struct SharedCapacity: Sendable {
    /// Bytes that one reply can need: a page with all that SYNC-34 allows and its commas. Verdicts
    /// need less: the heads of conflicts have 1 MiB (SYNC-29), and each of 500 verdicts 526 bytes
    /// beside.
    static let replyBytesMax = (1024 + 256 + 1) * 1024
    /// The least memory of whose half an account's share holds a whole body or reply.
    static let memoryMin = 8 * 1024 * 1024
    /// Batches that are read into events and stored at the same time; the same for pages that are
    /// looked up.
    private static let turnsMax = 8

    private let places: Admission
    /// Two halves, since a request holds its body while it waits for the memory of its reply: of one
    /// whole, bodies could hold all, and wait for each other.
    private let bodies: Admission
    private let replies: Admission
    /// Apart from the turns to read, since a process that erases an account holds up all that write.
    private let turnsToWrite: Admission
    private let turnsToRead: Admission

    /// - Parameters:
    ///   - connections: that may be open. A tenth of them is kept for those without a place.
    ///   - memory: bytes of bodies and replies that may be held, at least `memoryMin`.
    ///   - hasAccounts: true if there are several accounts.
    init(connections: Int, memory: Int, hasAccounts: Bool) {
        places = Admission(capacity: max(1, connections * 9 / 10), isDivided: hasAccounts)
        bodies = Admission(capacity: memory / 2, isDivided: hasAccounts)
        replies = Admission(capacity: memory / 2, isDivided: hasAccounts)
        turnsToWrite = Admission(capacity: Self.turnsMax, isDivided: hasAccounts)
        turnsToRead = Admission(capacity: Self.turnsMax, isDivided: hasAccounts)
    }

    /// Bytes of bodies and replies that are held or about to be.
    var memoryUsed: Int { bodies.used + replies.used }

    /// A place among the requests under way.
    ///
    /// - Throws: `RequestError` with 429 if the account has its share, with 503 if there is none.
    func place(_ account: String) throws(RequestError) -> Loan {
        do { return try places.borrowNow(1, account: account) } catch {
            throw RequestError(error)
        }
    }

    /// Memory for a body.
    ///
    /// - Throws: `RequestError` with 503 if the account's turn does not come.
    func bodyMemory(_ bytes: Int, _ account: String) async throws -> Loan {
        try await wait { try await bodies.borrow(bytes, account: account) }
    }

    /// Memory for a reply of `replyBytesMax`.
    ///
    /// - Throws: `RequestError` with 503 if the account's turn does not come.
    func replyMemory(_ account: String) async throws -> Loan {
        try await wait { try await replies.borrow(Self.replyBytesMax, account: account) }
    }

    /// The turn to store a batch.
    ///
    /// - Throws: `RequestError` with 503 if the account's turn does not come.
    func turnToWrite(_ account: String) async throws -> Loan {
        try await wait { try await turnsToWrite.borrow(1, account: account) }
    }

    /// The turn to look up a page.
    ///
    /// - Throws: `RequestError` with 503 if the account's turn does not come.
    func turnToRead(_ account: String) async throws -> Loan {
        try await wait { try await turnsToRead.borrow(1, account: account) }
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
