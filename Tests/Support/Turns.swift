// Proofs that something does not happen, without a wait in real time.

/// Repeats an operation that changes executors until all work that is ready has had its turns.
///
/// Executors serve their jobs in order, so work that can go on goes on between these operations, however slow the
/// machine is. Work that waits for a timer or for another process does not.
///
/// - Parameter hop: an operation on the executor of the work, for example a reading of the store.
public func takeTurns(
    isolation: isolated (any Actor)? = #isolation, _ hop: () async throws -> Void
) async rethrows {
    for _ in 0..<200 {
        try await hop()
        await Task.yield()
    }
}
