// Cancels work while it is in progress.

import Dispatch
import Synchronization
import Testing

/// Cancels work during its first report of progress, and expects that it throws `CancellationError`.
///
/// - Parameter work: the work. It must call its argument for each report of progress; the first call blocks
///   until the task is cancelled.
public func expectCancellation(
    of work: @escaping @Sendable (_ report: @escaping @Sendable () -> Void) async throws -> Void
) async {
    let (began, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let isFirst = Atomic(true)
    let task = Task {
        try await work {
            guard isFirst.exchange(false, ordering: .relaxed) else { return }
            began.signal()
            goOn.wait()
        }
    }
    await withCheckedContinuation { done in
        DispatchQueue.global().async {
            began.wait()
            task.cancel()
            goOn.signal()
            done.resume()
        }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
}
