// Work on many items at once, where each is by itself. Used for batches of events, whose data are
// read and whose lines are made on all cores.

import LogFormat

/// When work is done on all cores.
enum ParallelWork {
    /// Items below which it is not worth waking another thread.
    static let itemsMin = 128
    /// Items that a thread takes at once.
    fileprivate static let share = 64
}

extension Array where Element: Sendable {
    /// Calls `body` with the items a share at a time, on all cores; all at once where they are few.
    /// Returns when all is done.
    ///
    /// - Returns: what came of the shares, in the order of the items.
    func parallelShares<Result: Sendable>(
        _ body: @Sendable (ArraySlice<Element>) -> Result
    ) -> [Result] {
        guard count >= ParallelWork.itemsMin else { return isEmpty ? [] : [body(self[...])] }
        let shares = (count + ParallelWork.share - 1) / ParallelWork.share
        return concurrentMap(shares) {
            let start = $0 * ParallelWork.share
            return body(self[start..<Swift.min(start + ParallelWork.share, count)])
        }
    }
}
