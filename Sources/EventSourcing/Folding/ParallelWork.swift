// Work on many items at once, where each is by itself. Used for batches of events, whose data are
// read and whose lines are made on all cores.

import Dispatch

extension Array where Element: Sendable {
    /// Calls `body` with shares of the items on all cores; once with all where they make less than two shares.
    /// Returns when all is done.
    ///
    /// - Parameter share: items in a share. So few of an event's size that two are worth waking a thread.
    /// - Returns: what came of the shares, in the order of the items.
    func parallelShares<Result: Sendable>(
        of share: Int = 64, _ body: @Sendable (ArraySlice<Element>) -> Result
    ) -> [Result] {
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
