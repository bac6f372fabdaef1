// Bounds on elapsed time that hold on a busy machine.

/// Repeats an attempt until one takes less than a limit, at most ten times.
///
/// For work that takes longer than the limit only while other processes have the processor, and with a defect each
/// time.
///
/// - Parameter attempt: returns its duration, without preparations.
/// - Returns: the shortest duration.
public func shortestDuration(
    below limit: Duration, isolation: isolated (any Actor)? = #isolation,
    _ attempt: () async throws -> Duration
) async throws -> Duration {
    var shortest = try await attempt()
    for _ in 1..<10 where shortest >= limit { shortest = min(shortest, try await attempt()) }
    return shortest
}
