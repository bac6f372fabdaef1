// Work on independent items in parallel: checking, encoding and decoding a batch of events.

import Dispatch

extension Array where Element: Sendable {
    /// Calls `body` with slices of the items in parallel, on all cores; once with all items if they make less
    /// than two slices. Returns when all calls have returned.
    ///
    /// - Parameter share: the items in a slice. With the default and items of an event's size, two slices are
    ///   worth waking a thread.
    /// - Returns: the results, in the order of the items.
    package func parallelShares<Result: Sendable>(
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
