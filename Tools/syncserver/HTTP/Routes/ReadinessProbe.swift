// Answers all probes of one second with one check of the storage: /readyz needs no token, and a check
// may write a page and sync it. Spec/operations/operating.md, OPS-7.

import SyncServerStorage

/// The readiness of a storage, checked at most once a second.
actor ReadinessProbe {
    private let storage: any EventStorage
    /// How long a result is reused, also a failure.
    private let interval: Duration
    /// The longest wait of a probe for a check, which may wait for a lock.
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

    /// Checks that the storage answers and can store a batch, or returns the result of a check that is
    /// under way or ended less than `interval` ago.
    ///
    /// - Throws: `StorageError`, also if the check has not ended within `timeout`. It continues, and
    ///   no second one is started meanwhile.
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
            timeOut(probe)
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
        // The interval counts from the end of the check, which takes seconds if it waits for a lock.
        last = (result, .now)
        isChecking = false
        for probe in waiting.values { probe.resume(with: result) }
        waiting = [:]
    }

    private func timeOut(_ probe: Int) {
        waiting.removeValue(forKey: probe)?.resume(
            throwing: StorageError(.failed, "the database has not answered for \(timeout)"))
    }
}
