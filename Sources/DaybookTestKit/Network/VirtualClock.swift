// Time that passes only when a test moves it: nothing in a simulation really waits. Stores get it as the
// clock of their environment, replayers as their `sleep`.

import Daybook
import Foundation
import Synchronization

/// A clock that a test moves.
public final class VirtualClock: Sendable {
    private struct State {
        var milliseconds: Int64
        /// Readings that still get the old time, and the milliseconds that pass then.
        var leap: (readings: Int, milliseconds: Int64)?
    }

    private let state: Mutex<State>

    /// Creates a clock that shows a time, in milliseconds since 1970.
    public init(milliseconds: Int64 = 1_772_000_000_000) {
        state = Mutex(State(milliseconds: milliseconds))
    }

    /// The time that the clock shows, in milliseconds since 1970.
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

    /// The time that the clock shows.
    public var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1_000) }

    /// Moves the clock forward, or back by a negative duration, in whole milliseconds.
    public func advance(by duration: Duration) {
        state.withLock { $0.milliseconds += Self.milliseconds(duration) }
    }

    /// Moves the clock once between two readings: the next `readings` still return the present time.
    public func advance(by duration: Duration, afterReadings readings: Int) {
        state.withLock { $0.leap = (readings, Self.milliseconds(duration)) }
    }

    /// An environment on this clock.
    ///
    /// Its timers never go off, so that a run has one order of events: a simulation calls
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

    private static func milliseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }
}
