// Work that waits for the disk, off the cooperative thread pool.

import Dispatch
import Telemetry

/// Runs blocking work on a thread that may wait.
package enum BlockingWork {
    /// Runs a closure that may block, outside the pool of cooperative threads. It is not cancelled with
    /// the calling task.
    ///
    /// - Throws: what `body` throws.
    package static func run<Result: Sendable>(
        _ priority: DispatchQoS.QoSClass = .userInitiated,
        _ body: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        // The queue does not inherit the task's local values.
        let span = SpanContext.current
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global(qos: priority).async {
                continuation.resume(with: Swift.Result { try span.run(body) })
            }
        }
    }
}
