// Verification and repair of a log of the model.

import Daybook
import Foundation

extension OfflineStore {
    /// Verifies, repairs and salvages a log that no store has open.
    ///
    /// ```swift
    /// let lost = try await OfflineStore.maintenance(at: url, account: "user-456").salvage(to:
    /// newURL).lostCount ```
    ///
    /// - Parameters: as `LogMaintenance.init`.
    /// - Throws: as `LogMaintenance.init`.
    public static func maintenance(
        at url: URL, account: String?, rules: [EventRule] = [], upcasters: [Upcaster] = [],
        views: [any Projection.Type] = [], environment: LogEnvironment = LogEnvironment()
    ) throws(EventError) -> LogMaintenance {
        try LogMaintenance(
            at: url, account: account, rules: rules, upcasters: upcasters,
            views: OfflineModel.views + views, extending: OfflineModel.catalogue,
            environment: environment)
    }
}
