// Work on many items at once, where each is by itself. Used for batches of events, whose data are
// read and whose lines are made on all cores.

import Dispatch

extension Array where Element: Sendable {
    /// Calls `body` with the items a share at a time, on all cores; all at once where they are few.
    /// Returns when all is done.
    ///
    /// - Returns: what came of the shares, in the order of the items.
    func parallelShares<Result: Sendable>(
        _ body: @Sendable (ArraySlice<Element>) -> Result
    ) -> [Result] {
        // Below two shares it is not worth waking another thread.
        let share = 64
        guard count >= 2 * share else { return isEmpty ? [] : [body(self[...])] }
        let shares = (count + share - 1) / share
        return [Result](unsafeUninitializedCapacity: shares) { buffer, initialized in
            // Each index is written once, by one thread.
            nonisolated(unsafe) let results = buffer
            DispatchQueue.concurrentPerform(iterations: shares) { number in
                let start = number * share
                let end = Swift.min(start + share, count)
                results.initializeElement(at: number, to: body(self[start..<end]))
            }
            initialized = shares
        }
    }
}
