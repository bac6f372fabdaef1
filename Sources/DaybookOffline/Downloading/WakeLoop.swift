// The run loop of a download manager. Its signals are commits, network changes, a timer and calls of
// wake(). Each manager has one while it runs and decides what the signals mean.

import Daybook
import Synchronization

/// The run loop of an actor that works after each signal, and sleeps without a timer if no work will
/// become due.
///
/// Signals that arrive during the work are merged into one.
final class WakeLoop<Due: Equatable & Sendable>: Sendable {
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation
    private let sleep: @Sendable (Duration) async throws -> Void
    private let timer = Mutex<(task: Task<Void, Never>, due: Due)?>(nil)

    /// - Parameter sleep: waits for the timer; tests replace it.
    init(sleep: @escaping @Sendable (Duration) async throws -> Void) {
        (signals, signal) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.sleep = sleep
    }

    /// Signals the loop to work once more.
    func wake() { signal.yield() }

    /// Replaces the timer: the loop works at `due`, which is `wait` from now. Nil removes the timer. The
    /// same `due` again changes nothing.
    func setTimer(_ due: Due?, after wait: Duration = .zero) {
        timer.withLock { timer in
            guard due != timer?.due else { return }
            timer?.task.cancel()
            timer = due.map { due in
                let task = Task { [sleep] in
                    do { try await sleep(wait) } catch { return }
                    self.fire(due)
                }
                return (task, due)
            }
        }
    }

    private func fire(_ due: Due) {
        timer.withLock { timer in
            // Another timer may have replaced this one.
            guard timer?.due == due else { return }
            timer = nil
            wake()
        }
    }

    /// Works at each signal until the work returns false, the calling task is cancelled or the store
    /// is closed. Removes the timer at the end.
    ///
    /// - Parameters:
    ///   - commits: the store's commits, subscribed to before its state was read.
    ///   - onPathChange: called with each reported network path, before the loop works.
    ///   - work: returns false to end the loop.
    /// - Throws: what `work` throws, except that a closed store and a cancellation end the loop.
    func run(
        _ commits: AsyncStream<Void>, _ reachability: any Reachability,
        isolation: isolated (any Actor) = #isolation,
        onPathChange: @escaping @Sendable (NetworkPath) async -> Void,
        work: () async throws -> Bool
    ) async throws {
        let listeners = [
            Task {
                for await _ in commits { wake() }
                signal.finish()
            },
            Task {
                for await path in reachability.paths {
                    await onPathChange(path)
                    wake()
                }
            },
        ]
        defer {
            for listener in listeners { listener.cancel() }
            setTimer(nil)
        }
        do {
            for await _ in signals {
                guard !Task.isCancelled, try await work() else { return }
            }
        } catch let error as LogError where error.code == .closed {
        } catch is CancellationError {
        }
    }
}
