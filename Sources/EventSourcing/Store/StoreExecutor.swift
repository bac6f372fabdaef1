// The store's own queue: a sync that waits for the disk must not block a thread of the cooperative pool.

import Dispatch

/// An executor with its own serial queue, on which an actor's jobs may wait for the disk.
public final class StoreExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "daybook.store")
    private let willEnqueue: @Sendable () -> Void

    /// Creates an executor with its queue.
    public convenience init() { self.init(willEnqueue: {}) }

    /// Creates an executor with its queue.
    ///
    /// - Parameter willEnqueue: called before each job of the actor is put into the queue.
    init(willEnqueue: @escaping @Sendable () -> Void) { self.willEnqueue = willEnqueue }

    /// Puts a job at the end of the queue.
    public func enqueue(_ job: consuming ExecutorJob) {
        willEnqueue()
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    /// Traps if the caller is not on the queue.
    public func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }

    /// True if both are the same executor: only its jobs exclude each other.
    public func isSameExclusiveExecutionContext(other: StoreExecutor) -> Bool { self === other }

    /// Runs a closure on the queue, without a task.
    func schedule(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }
}
