// The disk of a history's store: a file system in memory, or one whose power can be cut. Used by
// StoreHistory.

import DaybookOffline
import DaybookTestKit
import Synchronization

/// Where a log is.
struct Disk: Sendable {
    /// Can be full, and copy folders.
    private(set) var memory: InMemoryFileSystem?
    /// Can lose what was not synced.
    private(set) var simulated: SimulatedFileSystem?

    init(isSimulated: Bool) {
        if isSimulated { simulated = SimulatedFileSystem() } else { memory = InMemoryFileSystem() }
    }

    var system: any FileSystem {
        if let simulated { return simulated }
        return memory ?? InMemoryFileSystem()
    }

    /// No timer goes off: the steps say when relaxed events are written.
    func environment(_ clock: VirtualClock, seed: UInt64) -> LogEnvironment {
        let random = SeededBits(seed)
        return LogEnvironment(
            fileSystem: system, now: { clock.milliseconds }, random: { random.next() },
            sleep: { _ in throw CancellationError() })
    }

    /// The disk as a process finds it that starts after another was killed.
    func afterKill() -> Disk {
        var disk = self
        disk.memory = memory?.snapshot()
        disk.simulated = simulated?.afterKill()
        return disk
    }

    /// The disk after the power came back.
    func afterPowerCut(_ choices: inout Choices) -> Disk {
        var disk = self
        disk.simulated = simulated?.afterPowerCut(&choices)
        return disk
    }
}

/// Random bits that are the same in every run.
private final class SeededBits: Sendable {
    private let random: Mutex<SeededRandom>

    init(_ seed: UInt64) { random = Mutex(SeededRandom(seed: seed)) }

    func next() -> UInt128 {
        random.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) }
    }
}
