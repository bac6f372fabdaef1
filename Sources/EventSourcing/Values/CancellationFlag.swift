// Stops work that runs outside a task, such as a compaction or a checkpoint.

import Synchronization

/// A flag that is set once, and that the work reads from time to time.
final class CancellationFlag: Sendable {
    /// The flag of the work that runs on this thread, for code below an interface that has no place for it.
    @TaskLocal static var current: CancellationFlag?

    private let flag = Atomic(false)

    var isSet: Bool { flag.load(ordering: .relaxed) }
    func set() { flag.store(true, ordering: .relaxed) }
}
