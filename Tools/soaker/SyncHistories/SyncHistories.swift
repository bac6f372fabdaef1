// The way in: histories of client, network and server, simulated together. Called by the tests, a
// bounded number of times, and by long runs. One history is History.swift; what it knows and checks
// is HistoryModel.swift; the server is HistoryServer.swift. Spec/protocol/sync-simulation.md.

import DaybookTestKit
import Foundation

/// Histories in which everything between a log and its server goes wrong, on one server.
///
/// One history at a time; whoever wants to use several cores makes several of these.
public final class SyncHistories: Sendable {
    private let server: HistoryServer

    /// What a row of histories must have counted, or it has proved little.
    public static let labels: [String] =
        NetworkFault.allCases.map(\.rawValue) + HistoryServer.labels + History.labels

    /// Those of them that a few hundred histories may miss.
    public static let rareLabels: Set<String> = [
        "client: backup came back", "client: fork noticed", "client: fork not noticed",
        "events retried in vain", "server: started again",
    ]

    /// Creates the server's database in a folder of its own, which goes with this object.
    ///
    /// - Throws: errors of the file system and of the database.
    public init() throws { server = try HistoryServer() }

    /// Lives through one history.
    ///
    /// - Returns: a hash of what went over the network: the same choices give the same one.
    /// - Throws: `HistoryFailure` where an invariant does not hold.
    @discardableResult
    public func run(_ choices: inout Choices) async throws -> UInt64 {
        let shared = SharedChoices(choices)
        defer { choices = shared.choices }
        try await server.beginHistory(shared)
        let history = History(shared, server)
        do {
            try await history.live()
        } catch {
            for line in await history.story { shared.note(line) }
            throw error
        }
        return await history.traceHash
    }
}

/// An invariant that did not hold.
public struct HistoryFailure: Error, CustomStringConvertible {
    /// Which, and where, in words.
    public let description: String

    init(_ description: String) { self.description = description }
}
