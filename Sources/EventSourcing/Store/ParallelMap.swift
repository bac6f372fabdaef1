// Work on many items at once, where each is by itself. Used for batches of events, whose data are
// read and whose lines are checked on all cores.

import Dispatch

/// When work is done on all cores.
enum ParallelWork {
    /// Items below which it is not worth waking another thread.
    static let itemsMin = 128
    /// Items that a thread takes at once.
    fileprivate static let share = 32
}

extension Array where Element: Sendable {

    /// As `map`, on all cores. Returns when all is done.
    func parallelMap<Result: Sendable>(_ body: @Sendable (Element) -> Result) -> [Result] {
        guard count >= ParallelWork.itemsMin else { return map(body) }
        return [Result](unsafeUninitializedCapacity: count) { buffer, initialized in
            // Each index is written once, by one thread.
            nonisolated(unsafe) let results = buffer
            DispatchQueue.concurrentPerform(
                iterations: (count + ParallelWork.share - 1) / ParallelWork.share
            ) {
                let start = $0 * ParallelWork.share
                for index in start..<Swift.min(start + ParallelWork.share, count) {
                    results.initializeElement(at: index, to: body(self[index]))
                }
            }
            initialized = count
        }
    }
}
