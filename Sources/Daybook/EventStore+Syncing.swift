// One call that exchanges events with a server. Spec/protocol/sync-protocol.md.

import EventSourcing
import Foundation
import Replay

extension EventStore {
    /// Ships what the server has not settled, then takes in what other devices of the account have
    /// recorded. One call at a time: while another is under way, this one leaves everything to it,
    /// ends at once and says so in its report.
    ///
    /// - Parameters:
    ///   - endpoint: the server's address, an http or https URL, or its `…/v1/events`. A
    ///     token goes to this machine or over https only; other options are `HTTPTransport`'s.
    ///   - credentials: where the token comes from that says for which account they are.
    ///   - http: headers, certificate and proxy of the requests, and how long the server may be
    ///     silent.
    ///   - resolver: decides conflicts; nil leaves them to the app, and they show as CONFLICT.
    ///   - deadline: when to stop at the latest; nil stops when nothing more can be done now, or
    ///     when the server has been silent for `http.timeoutSeconds`.
    ///   - progress: called when something was sent, and after every reply.
    /// - Returns: what was done and what is left.
    /// - Throws: `LogError`; `closed` where the store is closed meanwhile. `EventError` (`refused`) for
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

    /// Ships and reads as `sync(to:)` does, over a transport with options of its own: a time-out,
    /// headers, the server's name for the account.
    ///
    /// - Returns: what was done and what is left.
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

    /// The actions that the server has not settled, and what to do about those that it will not take.
    public nonisolated var outbox: OutboxCommands { OutboxCommands(self) }

    /// How many actions the server has not settled. O(1).
    public nonisolated var outboxCount: ViewQuery<Int> { query(Outbox.self) { $0.count } }
}
