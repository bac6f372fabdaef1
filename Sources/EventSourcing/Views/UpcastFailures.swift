// Events that an upcaster could not convert: counted, so that an app can tell its developers.

import Synchronization

/// A count of failed conversions by event type.
final class UpcastFailures: Sendable {
    private let counts = Mutex<[String: Int]>([:])

    /// How many events of each type.
    var byType: [String: Int] { counts.withLock { $0 } }

    func add(_ type: String) { counts.withLock { $0[type, default: 0] += 1 } }
}
