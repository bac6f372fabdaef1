// The store's own thread of work: a sync that waits for the disk must not hold a thread of the
// cooperative pool.

import Dispatch

/// Runs an actor's jobs on a serial queue of its own, so that they may wait for the disk.
public final class StoreExecutor: SerialExecutor {
    /// Creates an executor with its queue.
    public init() {}

    private let queue = DispatchQueue(label: "daybook.store")

    /// Puts a job at the end of the queue.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    /// Stops the program outside the queue.
    public func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }

    /// Whether jobs of this executor and another exclude each other: only those of one and the same.
    public func isSameExclusiveExecutionContext(other: StoreExecutor) -> Bool { self === other }

    /// Runs something as the actor's jobs are run, without a task of its own.
    func schedule(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }
}
