// Which accounts this server has noted as used today, so that it does so once a day and not with
// every request. Used by PostgreSQLEventStorage. Spec/operations/operating.md, OPS-11.

import EventSourcing
import Foundation
import Synchronization

/// The accounts that were noted today.
final class UseNotes: Sendable {
    /// More are forgotten, and noted again.
    private static let countMax = 100_000
    private let noted = Mutex<(day: Int, accounts: Set<EntityID>)>((0, []))

    /// Whether an account is to be noted now. Counts as noted from then on.
    func isDue(_ account: String) -> Bool {
        let day = Int(Date().timeIntervalSince1970 / 86_400)
        return noted.withLock { noted in
            if noted.day != day || noted.accounts.count >= Self.countMax { noted = (day, []) }
            return noted.accounts.insert(EntityID(account)).inserted
        }
    }
}
