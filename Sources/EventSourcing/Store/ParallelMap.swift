// Work on many items at once, where each is by itself. Used for batches of events, whose data are
// read and whose lines are checked on all cores.

import Dispatch

extension Array where Element: Sendable {
    /// Items below which it is not worth waking another thread.
    private static var parallelMin: Int { 128 }
    /// Items that a thread takes at once.
    private static var share: Int { 32 }

    /// As `map`, on all cores. Returns when all is done.
    func parallelMap<Result: Sendable>(_ body: @Sendable (Element) -> Result) -> [Result] {
        guard count >= Self.parallelMin else { return map(body) }
        return [Result](unsafeUninitializedCapacity: count) { buffer, initialized in
            // Each index is written once, by one thread.
            nonisolated(unsafe) let results = buffer
            DispatchQueue.concurrentPerform(iterations: (count + Self.share - 1) / Self.share) {
                let start = $0 * Self.share
                for index in start..<Swift.min(start + Self.share, count) {
                    results.initializeElement(at: index, to: body(self[index]))
                }
            }
            initialized = count
        }
    }
}
