// The transport of requests to the server. An app that ships by itself implements it.
// Spec/protocol/sync-protocol.md.

import EventSourcing
import Foundation
// An app that implements a transport gets its restores and verdicts.
@_exported import SyncWire

/// A request to the server.
public enum TransportRequest: Hashable, Sendable {
    /// Append events: a JSON array of them (SYNC-5 to SYNC-10).
    case append(batch: [UInt8])
    /// Read the page of the account's events after a cursor; nil for the first page (SYNC-30 to
    /// SYNC-35). The cursor is the `next` of an earlier reply.
    case read(after: String?)
}

/// An answer of the server.
public struct TransportReply: Hashable, Sendable {
    /// The HTTP status.
    public var status: Int
    /// The body, at most as long as the transport allows.
    public var body: [UInt8]
    /// The `Date` header in milliseconds since 1970.
    public var date: Int64?
    /// The `Retry-After` header in seconds from now.
    public var retryAfterSeconds: Double?
    /// The cursor of the next page, for a `read` request.
    public var next: String?
    /// The number of the account's events after this page, for a `read` request, if the server says it.
    public var remaining: Int?
    /// The restore of the server: with status 400, for a `read` request whose cursor is older than the restore.
    public var restore: ServerRestore?
    /// The name of the server's database, with the generation of its last restore, if the server says it
    /// (SYNC-50).
    public var server: String?
    /// The token's account, if the server names it (SYNC-48).
    public var account: String?
    /// The events that the verdicts of the body teach, such as an id that the server has made. They are recorded in
    /// one commit with the verdicts.
    public var learned: [EventDraft] = []
    /// False if the transport has answered itself, without a request: the answer shows nothing of the server, neither
    /// that it can be reached nor that it accepts the token. A `retry` of the transport is not charged.
    public var isServers = true
    /// True if the server would apply the events again: the verdicts are durable before the next request is chosen.
    var needsDurableRecord = false
    /// The states that a page of an app's own API shows: in place of the body.
    var states: StatePage?

    /// Creates a reply.
    public init(
        status: Int, body: [UInt8] = [], date: Int64? = nil, retryAfterSeconds: Double? = nil,
        next: String? = nil, remaining: Int? = nil, restore: ServerRestore? = nil,
        server: String? = nil, account: String? = nil
    ) {
        self.status = status
        self.body = body
        self.date = date
        self.retryAfterSeconds = retryAfterSeconds
        self.next = next
        self.remaining = remaining
        self.restore = restore
        self.server = server
        self.account = account
    }

    /// Whether the body is a page in HTML: the answer of a proxy or of another server, not of a sync server.
    var isHTML: Bool {
        body.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "<")
    }
}

/// A transport of requests to the server.
public protocol Transport: Sendable {
    /// Sends one request and returns the server's answer, whatever its status.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - token: the bearer token, if there is one.
    /// - Throws: any error if no complete answer was received.
    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply

    /// Sends one request of an account's log and returns the server's answer.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - token: the bearer token, if there is one.
    ///   - account: the account that owns the log; nil if none does; empty if the log has events of no known
    ///     account. A transport whose server names the token's account throws `TransportError` (`wrongAccount`,
    ///     for an empty one `accountNeeded`) if the two differ.
    /// - Throws: any error if no complete answer was received.
    func send(
        _ request: TransportRequest, token: String?, account: String?
    ) async throws -> TransportReply

    /// Sends events that another server, or this one before a restore, has accepted, and returns the answer to the
    /// batch. The server stores them whatever they are based on (SYNC-52): compaction may have removed their base, and
    /// no other log has decided on them since.
    ///
    /// - Parameters:
    ///   - batch: a JSON array of events, as in `TransportRequest.append`.
    ///   - token: the bearer token, if there is one.
    ///   - account: as in `send(_:token:account:)`.
    /// - Throws: any error if no complete answer was received.
    func offer(_ batch: [UInt8], token: String?, account: String?) async throws -> TransportReply

    /// The host of the server, with its port unless that is the scheme's default. A log distinguishes servers
    /// that send no name by it. Nil if it is unknown.
    var serverAddress: String? { get }

    /// The account for which the server handles requests with a token, as far as the transport knows it without
    /// one; nil otherwise.
    ///
    /// - Parameters:
    ///   - account: the account that owns the log; nil if none does.
    ///   - token: the token of the requests; nil if there is none.
    func knownAccount(ofLog account: String?, token: String?) -> String?

    /// The largest number of events in one request, from 1 to 500.
    var eventsMax: Int { get }

    /// Whether the server has events to read. If not, a run reads only to learn which server it is.
    var hasPages: Bool { get }
}

extension Transport {
    /// 500, the limit of the sync protocol.
    public var eventsMax: Int { WireLimits.events }

    /// True.
    public var hasPages: Bool { true }

    /// Nil: the address is unknown.
    public var serverAddress: String? { nil }

    /// Returns nil: the server is asked.
    public func knownAccount(ofLog account: String?, token: String?) -> String? { nil }

    /// Sends the events as an ordinary batch: the server may find those in conflict whose base it lacks.
    public func offer(
        _ batch: [UInt8], token: String?, account: String?
    ) async throws -> TransportReply {
        try await send(.append(batch: batch), token: token, account: account)
    }

    /// Sends the request without checking the account.
    public func send(
        _ request: TransportRequest, token: String?, account: String?
    ) async throws -> TransportReply {
        try await send(request, token: token)
    }
}
