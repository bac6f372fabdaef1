// Answers every probe of a second with one look at the storage: /readyz needs no token, and a look may
// write a page and sync it. Asked by OperationRoutes. Spec/operations/operating.md, OPS-7.

import SyncServerStorage

/// The readiness of a storage, looked up once a second at most.
actor ReadinessProbe {
    private let storage: any EventStorage
    /// How long a result counts, a failure included.
    private let interval: Duration
    /// How long a probe waits for a check, which may wait for a lock.
    private let timeout: Duration
    private var last: (result: Result<Void, any Error>, ended: ContinuousClock.Instant)?
    private var isChecking = false
    private var waiting: [Int: CheckedContinuation<Void, any Error>] = [:]
    private var probes = 0

    init(
        _ storage: any EventStorage, interval: Duration = .seconds(1),
        timeout: Duration = .seconds(5)
    ) {
        self.storage = storage
        self.interval = interval
        self.timeout = timeout
    }

    /// Checks that the storage answers and can store a batch, or repeats the result of a check that
    /// is under way or ended less than the interval ago.
    ///
    /// - Throws: `StorageError`, also if a check has not ended within the timeout. It goes on, and no
    ///   other one is begun beside it.
    func check() async throws {
        if let last, ContinuousClock.now - last.ended < interval { return try last.result.get() }
        if !isChecking {
            isChecking = true
            Task { await run() }
        }
        probes += 1
        let probe = probes
        let timer = Task { [timeout] in
            try await Task.sleep(for: timeout)
            giveUp(probe)
        }
        defer { timer.cancel() }
        try await withCheckedThrowingContinuation { waiting[probe] = $0 }
    }

    private func run() async {
        let result: Result<Void, any Error>
        do {
            try await storage.checkReadiness()
            result = .success(())
        } catch { result = .failure(error) }
        // The end of the check, not its start: a check that waits for a lock takes seconds.
        last = (result, .now)
        isChecking = false
        for probe in waiting.values { probe.resume(with: result) }
        waiting = [:]
    }

    private func giveUp(_ probe: Int) {
        waiting.removeValue(forKey: probe)?.resume(
            throwing: StorageError(.failed, "the database has not answered for \(timeout)"))
    }
}
