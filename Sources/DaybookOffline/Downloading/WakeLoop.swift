// What a download manager sleeps on: commits, the network, a time, and a call. Each manager keeps one
// while it runs, and decides by itself what the network and the times mean.

import Daybook
import Synchronization

/// The loop of an actor that works whenever something may have changed, and sleeps without a timer
/// where nothing is due.
///
/// Signals that come during the work become one.
final class WakeLoop<Due: Equatable & Sendable>: Sendable {
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation
    private let sleep: @Sendable (Duration) async throws -> Void
    private let timer = Mutex<(task: Task<Void, Never>, due: Due)?>(nil)

    /// - Parameter sleep: Waits for the timer; tests have a clock of their own.
    init(sleep: @escaping @Sendable (Duration) async throws -> Void) {
        (signals, signal) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.sleep = sleep
    }

    /// Has the loop work once more.
    func wake() { signal.yield() }

    /// Has the loop work at `due`, which is `wait` from now, instead of the time set before; nil
    /// removes the timer. The same `due` again changes nothing.
    func setTimer(_ due: Due?, after wait: Duration = .zero) {
        timer.withLock { timer in
            guard due != timer?.due else { return }
            timer?.task.cancel()
            timer = due.map { due in
                let task = Task { [sleep] in
                    do { try await sleep(wait) } catch { return }
                    self.ring(due)
                }
                return (task, due)
            }
        }
    }

    private func ring(_ due: Due) {
        timer.withLock { timer in
            // Another one may have taken its place.
            guard timer?.due == due else { return }
            timer = nil
            wake()
        }
    }

    /// Works at each signal until the work returns false, the calling task is cancelled or the store
    /// is closed. Removes the timer at the end.
    ///
    /// - Parameters:
    ///   - commits: The store's, from before its state was looked at.
    ///   - learn: Takes in each network that is told. The loop works after it.
    ///   - work: Returns false to end the loop.
    /// - Throws: What the work throws, but for the closing of the store and a cancellation.
    func run(
        _ commits: AsyncStream<Void>, _ reachability: any Reachability,
        isolation: isolated (any Actor) = #isolation,
        learn: @escaping @Sendable (NetworkPath) async -> Void,
        work: () async throws -> Bool
    ) async throws {
        let listeners = [
            Task {
                for await _ in commits { wake() }
                signal.finish()
            },
            Task {
                for await path in reachability.paths {
                    await learn(path)
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
