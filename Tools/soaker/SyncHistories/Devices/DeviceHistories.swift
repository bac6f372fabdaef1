// The way in: histories of several devices of one account. Called by the tests, a bounded number of
// times, and by long runs. Spec/protocol/sync-simulation.md.

import DaybookTestKit
import Foundation

/// Histories of several devices on one server, one after the other.
public final class DeviceHistories: Sendable {
    private let server: HistoryServer

    /// What a row of histories must have counted, or it has proved little.
    public static let labels = DeviceHistory.labels

    /// Creates the server's database in a folder of its own, which goes with this object.
    ///
    /// - Throws: errors of the file system and of the database.
    public init() throws { server = try HistoryServer() }

    /// Lives through one history.
    ///
    /// - Throws: `HistoryFailure` where devices do not come to show the same, or something is lost.
    public func run(_ choices: inout Choices) async throws {
        let shared = SharedChoices(choices)
        defer { choices = shared.choices }
        try await server.beginHistory(shared)
        let history = DeviceHistory(shared, server)
        do {
            try await history.live()
        } catch {
            for line in history.story { shared.note(line) }
            throw error
        }
    }
}
