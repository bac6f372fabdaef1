// The disk of a StoreHistory: a file system in memory, or one whose power can be cut.

import DaybookOffline
import DaybookTestKit
import Synchronization

/// The file system of a log.
struct Disk: Sendable {
    /// A file system that can be full and can copy folders.
    private(set) var memory: InMemoryFileSystem?
    /// A file system that can lose unsynced writes.
    private(set) var simulated: SimulatedFileSystem?

    init(isSimulated: Bool) {
        if isSimulated { simulated = SimulatedFileSystem() } else { memory = InMemoryFileSystem() }
    }

    var system: any FileSystem {
        if let simulated { return simulated }
        return memory ?? InMemoryFileSystem()
    }

    /// An environment whose timers never fire: relaxed events are written only by commands.
    func environment(_ clock: VirtualClock, seed: UInt64) -> LogEnvironment {
        let random = SeededBits(seed)
        return LogEnvironment(
            fileSystem: system, now: { clock.milliseconds }, random: { random.next() },
            sleep: { _ in throw CancellationError() })
    }

    /// The disk after the process was killed.
    func afterKill() -> Disk {
        var disk = self
        disk.memory = memory?.snapshot()
        disk.simulated = simulated?.afterKill()
        return disk
    }

    /// The disk after a power cut.
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
