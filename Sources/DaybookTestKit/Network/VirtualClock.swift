// A clock that only a test moves, so that no simulation waits in real time. Stores get it as the clock of
// their environment, replayers as their `sleep`.

import Daybook
import Foundation
import Synchronization

/// A clock that advances only when a test moves it.
public final class VirtualClock: Sendable {
    private struct State {
        var milliseconds: Int64
        /// The number of readings that still return the old time, and the milliseconds that pass after them.
        var leap: (readings: Int, milliseconds: Int64)?
    }

    private let state: Mutex<State>

    /// Creates a clock with a time, in milliseconds since 1970.
    public init(milliseconds: Int64 = 1_772_000_000_000) {
        state = Mutex(State(milliseconds: milliseconds))
    }

    /// The clock's time, in milliseconds since 1970.
    public var milliseconds: Int64 {
        get {
            state.withLock { state in
                guard let leap = state.leap else { return state.milliseconds }
                if leap.readings == 0 {
                    state.milliseconds += leap.milliseconds
                    state.leap = nil
                } else {
                    state.leap?.readings -= 1
                }
                return state.milliseconds
            }
        }
        set { state.withLock { $0.milliseconds = newValue } }
    }

    /// The clock's time.
    public var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1_000) }

    /// Moves the clock forward, or back by a negative duration, in whole milliseconds.
    public func advance(by duration: Duration) {
        state.withLock { $0.milliseconds += Self.milliseconds(duration) }
    }

    /// Moves the clock once, after the next `readings` readings have returned the present time.
    public func advance(by duration: Duration, afterReadings readings: Int) {
        state.withLock { $0.leap = (readings, Self.milliseconds(duration)) }
    }

    /// An environment on this clock.
    ///
    /// Its timers never fire, so that every run has the same order of events. A simulation calls
    /// `EventStore.flush()` once relaxed events have waited long enough.
    ///
    /// - Parameters:
    ///   - fileSystem: the file system of the environment.
    ///   - seed: the seed of its random numbers.
    public func environment(fileSystem: any FileSystem, seed: UInt64) -> LogEnvironment {
        let random = Mutex(SeededRandom(seed: seed))
        return LogEnvironment(
            fileSystem: fileSystem, now: { self.milliseconds },
            random: { random.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) } },
            sleep: { _ in throw CancellationError() })
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }
}
