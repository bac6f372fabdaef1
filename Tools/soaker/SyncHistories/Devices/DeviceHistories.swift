// The entry point: simulated histories of several devices of one account. The tests run a fixed number,
// `Tools/soak devices` runs them for a time. Spec/protocol/sync-simulation.md.

import DaybookTestKit
import Foundation

/// Histories of several devices on one server, one after the other.
public final class DeviceHistories: Sendable {
    private let server: HistoryServer

    /// The labels that a series of histories must have counted.
    public static let labels = DeviceHistory.labels

    /// Creates the server's database in a temporary folder, which is removed with this object.
    ///
    /// - Throws: errors of the file system and of the database.
    public init() throws { server = try HistoryServer() }

    /// Runs one history.
    ///
    /// - Throws: `HistoryFailure` if devices do not show the same in the end, or an event is lost.
    public func run(_ choices: inout Choices) async throws {
        let shared = SharedChoices(choices)
        defer { choices = shared.choices }
        try await server.beginHistory(shared)
        let history = DeviceHistory(shared, server)
        do {
            try await history.run()
        } catch {
            for line in history.story { shared.note(line) }
            throw error
        }
    }
}
