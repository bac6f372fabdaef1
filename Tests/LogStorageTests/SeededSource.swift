// Random numbers for a log, the same in every run.

import DaybookTestKit
import Synchronization

/// A shared seeded generator.
final class SeededSource: Sendable {
    private let random: Mutex<SeededRandom>

    init(seed: UInt64) { random = Mutex(SeededRandom(seed: seed)) }

    func next() -> UInt128 {
        random.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) }
    }
}
