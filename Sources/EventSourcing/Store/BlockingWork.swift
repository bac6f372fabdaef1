// Runs work that waits for the disk outside the cooperative thread pool.

import Dispatch
import Telemetry

/// Blocking work on threads of a dispatch queue.
package enum BlockingWork {
    /// Runs a closure that may block, outside the cooperative thread pool. Cancelling the calling task
    /// does not stop it.
    ///
    /// - Throws: what `body` throws.
    package static func run<Result: Sendable>(
        _ priority: DispatchQoS.QoSClass = .userInitiated,
        _ body: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        // A dispatch queue does not inherit task-local values.
        let span = SpanContext.current
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global(qos: priority).async {
                continuation.resume(with: Swift.Result { try span.run(body) })
            }
        }
    }
}
