// Answers every probe of a second with one look at the storage: /readyz needs no token, and a look may
// write a page and sync it. Asked by OperationRoutes. Spec/operating.md, OPS-7.

import SyncServerStorage

/// The readiness of a storage, looked up once a second at most.
actor ReadinessProbe {
    private let storage: any EventStorage
    /// How long a result counts, a failure included.
    private let interval: Duration
    private var last: (check: Task<Void, any Error>, ended: ContinuousClock.Instant?)?

    init(_ storage: any EventStorage, interval: Duration = .seconds(1)) {
        self.storage = storage
        self.interval = interval
    }

    /// Checks that the storage answers and can store a batch, or repeats the result of a check that
    /// is under way or ended less than the interval ago.
    ///
    /// - Throws: `StorageError`.
    func check() async throws {
        try await current().value
    }

    private func current() -> Task<Void, any Error> {
        if let last, last.ended.map({ ContinuousClock.now - $0 < interval }) ?? true {
            return last.check
        }
        let check = Task {
            // The end of the check, not its start: a check that waits for a lock takes seconds.
            defer { last?.ended = .now }
            try await storage.checkReadiness()
        }
        last = (check, nil)
        return check
    }
}
