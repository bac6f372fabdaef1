// Work on all cores, where each piece is by itself.

import Dispatch

/// Calls `body` with each number from 0 up to, but not, `count`, on all cores. Returns when all is
/// done.
///
/// - Returns: what came of each, in order.
package func concurrentMap<Result: Sendable>(
    _ count: Int, _ body: @Sendable (Int) -> Result
) -> [Result] {
    [Result](unsafeUninitializedCapacity: count) { buffer, initialized in
        // Each index is written once, by one thread.
        nonisolated(unsafe) let results = buffer
        DispatchQueue.concurrentPerform(iterations: count) {
            results.initializeElement(at: $0, to: body($0))
        }
        initialized = count
    }
}
