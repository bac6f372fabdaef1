// The entry point: simulated histories of a client, a network and the server. The tests run a fixed number,
// `Tools/soak sync` runs them for a time. History is one history, HistoryModel its checks, HistoryServer the
// server. Spec/protocol/sync-simulation.md.

import DaybookTestKit
import Foundation

/// Histories of a client with random faults of its disk, the network and the server.
///
/// An object runs one history at a time. To use several cores, create several objects.
public final class SyncHistories: Sendable {
    private let server: HistoryServer

    /// The labels that a series of histories must have counted.
    public static let labels: [String] =
        NetworkFault.allCases.map(\.rawValue) + HistoryServer.labels + History.labels

    /// The labels that a few hundred histories may miss.
    public static let rareLabels: Set<String> = [
        "client: backup came back", "client: fork noticed", "client: fork not noticed",
        "events retried in vain", "server: started again",
    ]

    /// Creates the server's database in a temporary folder, which is removed with this object.
    ///
    /// - Throws: errors of the file system and of the database.
    public init() throws { server = try HistoryServer() }

    /// Runs one history.
    ///
    /// - Returns: a hash of the network's trace. The same choices give the same hash.
    /// - Throws: `HistoryFailure` if an invariant does not hold.
    @discardableResult
    public func run(_ choices: inout Choices) async throws -> UInt64 {
        let shared = SharedChoices(choices)
        defer { choices = shared.choices }
        try await server.beginHistory(shared)
        let history = History(shared, server)
        do {
            try await history.run()
        } catch {
            for line in await history.story { shared.note(line) }
            throw error
        }
        return await history.traceHash
    }
}

/// An invariant that did not hold.
public struct HistoryFailure: Error, CustomStringConvertible {
    /// The number of the invariant, if it has one, and the violation.
    public let description: String

    init(_ description: String) { self.description = description }
}
