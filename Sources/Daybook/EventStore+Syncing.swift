// Exchanges events with a server in one call. Spec/protocol/sync-protocol.md.

import EventSourcing
import Foundation
import Replay

extension EventStore {
    /// Ships the outbox, then reads the events of the account's other devices. One call at a time: while
    /// another run is under way, this one ends at once, and its report has `isElsewhere`.
    ///
    /// - Parameters:
    ///   - endpoint: the server's address, an http or https URL, or its `…/v1/events`. A token is sent
    ///     to this machine or over https only, unless `http` allows it.
    ///   - credentials: the source of the token, which determines the account.
    ///   - http: headers, certificate, proxy and timeout of the requests.
    ///   - resolver: decides conflicts; nil leaves them to the app, and they are shown as CONFLICT.
    ///   - deadline: the latest time to stop; nil stops when nothing more can be done now, or after a
    ///     request has timed out.
    ///   - progress: called after a batch was sent, and after every reply.
    /// - Returns: the report.
    /// - Throws: `LogError`; `closed` if the store is closed meanwhile. `EventError` (`refused`) for
    ///   the store that all accounts share. `TransportError` for an endpoint or options that cannot be
    ///   used (`badEndpoint`, `tokenInClear`, …), before anything is sent; a certificate that cannot be
    ///   opened is in the report on Linux. Failures of the network are no errors; they are in the report.
    @discardableResult
    public nonisolated func sync(
        to endpoint: URL, credentials: any Credentials = NoCredentials(),
        http: HTTPOptions = HTTPOptions(), resolver: (any ConflictResolver)? = nil,
        until deadline: Date? = nil, progress: (@Sendable (SyncReport) -> Void)? = nil
    ) async throws -> SyncReport {
        try await sync(
            over: HTTPTransport(endpoint: endpoint, http: http), credentials: credentials,
            resolver: resolver, until: deadline, progress: progress)
    }

    /// Ships and reads as `sync(to:)` does, with the app's transport.
    ///
    /// - Returns: the report.
    /// - Throws: as `sync(to:)`.
    @discardableResult
    public nonisolated func sync(
        over transport: any Transport, credentials: any Credentials = NoCredentials(),
        resolver: (any ConflictResolver)? = nil, until deadline: Date? = nil,
        progress: (@Sendable (SyncReport) -> Void)? = nil
    ) async throws -> SyncReport {
        var options = Replayer.Options()
        options.resolver = resolver
        let replayer = Replayer(
            self, transport: transport, credentials: credentials, options: options)
        return try await replayer.run(
            until: deadline.map { .at(Timestamp($0)) } ?? .whenNothingMoves, progress: progress)
    }

    /// The unsettled actions, and the decisions on those that are parked or in conflict.
    public nonisolated var outbox: OutboxCommands { OutboxCommands(self) }

    /// The number of unsettled actions. O(1).
    public nonisolated var outboxCount: ViewQuery<Int> { query(Outbox.self) { $0.count } }
}
