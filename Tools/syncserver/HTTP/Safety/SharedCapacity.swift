// The capacities that all accounts share: places, memory for bodies, memory for replies, turns. A
// request borrows them in this order, so that requests cannot deadlock.
// Spec/operations/operating.md, OPS-21.

import SyncServerAdmission

/// The capacities that requests share.
struct SharedCapacity: Sendable {
    /// The most bytes of a reply: the largest page of SYNC-34 with its commas. Verdicts need less: the
    /// heads of conflicts have at most 1 MiB (SYNC-29), and each of 500 verdicts at most 526 bytes
    /// more.
    static let replyBytesMax = (1024 + 256 + 1) * 1024
    /// The least `memory`: a quarter then fits the largest reply.
    static let memoryMin = 8 * 1024 * 1024
    /// The most batches that are parsed and stored at once, and the most pages that are read at once.
    private static let turnsMax = 8

    private let places: Admission
    /// Separate from `places`: a stream lasts as long as its client, and requests must find places.
    private let streams: Admission
    /// Separate from the memory for replies: a request holds its body while it waits for the memory of its reply, so
    /// bodies could take a common memory completely and deadlock.
    private let bodies: Admission
    private let pages: Admission
    /// Separate from `pages`, which clients that do not read hold for long: batches must not wait for them.
    private let verdicts: Admission
    /// Separate from `turnsToRead`, since a process that erases an account blocks all writers.
    private let turnsToWrite: Admission
    private let turnsToRead: Admission

    /// - Parameters:
    ///   - connections: the most open connections. A tenth is kept for requests without a place.
    ///   - streams: the most open streams of events.
    ///   - memory: the most bytes for bodies and replies, at least `memoryMin`.
    ///   - hasAccounts: true if there are several accounts.
    init(connections: Int, streams: Int, memory: Int, hasAccounts: Bool) {
        places = Admission(capacity: max(1, connections * 9 / 10), isDivided: hasAccounts)
        self.streams = Admission(capacity: streams, isDivided: hasAccounts)
        bodies = Admission(capacity: memory / 2, isDivided: hasAccounts)
        pages = Admission(capacity: memory / 4, isDivided: hasAccounts)
        verdicts = Admission(capacity: memory / 4, isDivided: hasAccounts)
        turnsToWrite = Admission(capacity: Self.turnsMax, isDivided: hasAccounts)
        turnsToRead = Admission(capacity: Self.turnsMax, isDivided: hasAccounts)
    }

    /// The bytes that are lent to bodies and replies.
    var memoryUsed: Int { bodies.used + pages.used + verdicts.used }

    /// Borrows a place among the requests under way.
    ///
    /// - Throws: `RequestError` with 429 if the account has its share, with 503 if no place is free.
    func place(_ account: String) throws(RequestError) -> Loan {
        do { return try places.borrowNow(1, account: account) } catch {
            throw RequestError(error)
        }
    }

    /// Borrows a place among the streams of events.
    ///
    /// - Throws: as `place`.
    func stream(_ account: String) throws(RequestError) -> Loan {
        do { return try streams.borrowNow(1, account: account) } catch {
            throw RequestError(error)
        }
    }

    /// Borrows memory for a body.
    ///
    /// - Throws: `RequestError` with 503 if the account's turn does not come.
    func bodyMemory(_ bytes: Int, _ account: String) async throws -> Loan {
        try await wait { try await bodies.borrow(bytes, account: account) }
    }

    /// Borrows memory of `replyBytesMax` for a page.
    ///
    /// - Throws: `RequestError` with 503 if the account's turn does not come.
    func pageMemory(_ account: String) async throws -> Loan {
        try await wait { try await pages.borrow(Self.replyBytesMax, account: account) }
    }

    /// Borrows memory of `replyBytesMax` for verdicts.
    ///
    /// - Throws: `RequestError` with 503 if the account's turn does not come.
    func verdictMemory(_ account: String) async throws -> Loan {
        try await wait { try await verdicts.borrow(Self.replyBytesMax, account: account) }
    }

    /// Borrows a turn to store a batch.
    ///
    /// - Throws: `RequestError` with 503 if the account's turn does not come.
    func turnToWrite(_ account: String) async throws -> Loan {
        try await wait { try await turnsToWrite.borrow(1, account: account) }
    }

    /// Borrows a turn to read a page.
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
                "this account has too many requests under way", headers: [.retryAfter: "1"])
        case .exhausted, .timedOut:
            self.init(
                .serviceUnavailable, "unavailable", "the server is overloaded",
                headers: [.retryAfter: "5"])
        }
    }
}
