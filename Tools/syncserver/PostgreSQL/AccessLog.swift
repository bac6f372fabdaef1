// The accounts whose use this server has recorded today, so that it writes once a day and not with
// every request. Spec/operations/operating.md, OPS-11.

import EventSourcing
import Foundation
import Synchronization

/// The accounts whose use is recorded for today.
final class AccessLog: Sendable {
    /// Bounds the memory: when the set is full, it is emptied, and uses are recorded again.
    private static let countMax = 100_000
    private let recorded = Mutex<(day: Int, accounts: Set<EntityID>)>((0, []))

    /// Whether the use of an account must be recorded now. Counts it as recorded from then on.
    func isDue(_ account: String) -> Bool {
        let day = Int(Date().timeIntervalSince1970 / 86_400)
        return recorded.withLock { recorded in
            if recorded.day != day || recorded.accounts.count >= Self.countMax {
                recorded = (day, [])
            }
            return recorded.accounts.insert(EntityID(account)).inserted
        }
    }
}
