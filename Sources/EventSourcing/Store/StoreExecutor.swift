// The store's own thread of work: a sync that waits for the disk must not hold a thread of the
// cooperative pool.

import Dispatch

/// Runs an actor's jobs on a serial queue.
package final class StoreExecutor: SerialExecutor {
    package init() {}

    private let queue = DispatchQueue(label: "daybook.store")

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    package func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }

    /// Runs something as the actor's jobs are run, without a task of its own.
    func schedule(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }
}
