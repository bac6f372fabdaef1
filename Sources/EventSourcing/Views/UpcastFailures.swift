// Counts events that an upcaster could not convert, for an app's diagnostics.

import Synchronization

/// The number of failed conversions by event type.
final class UpcastFailures: Sendable {
    private let counts = Mutex<[String: Int]>([:])

    /// The number of events of each type.
    var byType: [String: Int] { counts.withLock { $0 } }

    func countFailure(of type: String) { counts.withLock { $0[type, default: 0] += 1 } }
}
