// Time that passes only where somebody says so: nothing in a simulation really waits. Stores get it
// as the clock of their environment, replayers as their `sleep`. Used by SimulatedNetwork.

import Daybook
import Synchronization

/// A clock that is moved by hand.
public final class VirtualClock: Sendable {
    private let time: Mutex<Int64>

    /// Creates a clock that shows a time, in milliseconds since 1970.
    public init(milliseconds: Int64 = 1_772_000_000_000) { time = Mutex(milliseconds) }

    /// What it shows, in milliseconds since 1970.
    public var milliseconds: Int64 { time.withLock { $0 } }

    /// Moves it on.
    public func advance(by duration: Duration) {
        let (seconds, attoseconds) = duration.components
        time.withLock { $0 += seconds * 1_000 + attoseconds / 1_000_000_000_000_000 }
    }

    /// An environment on this clock.
    ///
    /// Its timers never go off, so that a run has one order of things: whoever simulates calls
    /// `EventStore.flush()` where relaxed events have waited long enough.
    ///
    /// - Parameters:
    ///   - fileSystem: where files live.
    ///   - seed: where its random numbers begin.
    public func environment(fileSystem: any FileSystem, seed: UInt64) -> LogEnvironment {
        let random = Mutex(SeededRandom(seed: seed))
        return LogEnvironment(
            fileSystem: fileSystem, now: { self.milliseconds },
            random: { random.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) } },
            sleep: { _ in throw CancellationError() })
    }
}
