// Companions of an offline store. Spec/format/companions.md.

import Daybook
import Foundation

extension OfflineStore {
    /// Opens a companion of an offline store's log, with the views and rules of the model: see
    /// `EventStore.openCompanion(at:name:account:rules:upcasters:views:extending:limits:environment:)`.
    ///
    /// - Parameters: as there.
    /// - Throws: as there.
    public static func openCompanion(
        at url: URL, name: String, account: String? = nil, rules: [EventRule] = [],
        upcasters: [Upcaster] = [], views: [any Projection.Type] = [],
        limits: CompanionLimits = CompanionLimits(),
        environment: LogEnvironment = LogEnvironment()
    ) async throws -> CompanionStore {
        try await EventStore.openCompanion(
            at: url, name: name, account: account, rules: rules, upcasters: upcasters,
            views: OfflineModel.views + views, extending: OfflineModel.catalogue, limits: limits,
            environment: environment)
    }
}
