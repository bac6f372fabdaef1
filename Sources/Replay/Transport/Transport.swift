// How a request reaches the server: the one method that a host app replaces to ship by itself.
// Spec/protocol/sync-protocol.md.

/// A request to the server.
public enum TransportRequest: Hashable, Sendable {
    /// Take these events in: a JSON array of them (SYNC-5 to SYNC-10).
    case append(batch: [UInt8])
    /// Give the page of the account's events after a cursor; nil for the first page (SYNC-30 to
    /// SYNC-35). The cursor is what a reply's `next` said.
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
    /// The cursor of the page after this one, for a request to read.
    public var next: String?

    /// Creates a reply.
    public init(
        status: Int, body: [UInt8] = [], date: Int64? = nil, retryAfterSeconds: Double? = nil,
        next: String? = nil
    ) {
        self.status = status
        self.body = body
        self.date = date
        self.retryAfterSeconds = retryAfterSeconds
        self.next = next
    }
}

/// Carries requests to the server.
public protocol Transport: Sendable {
    /// Carries one request and returns the server's answer, whatever its status.
    ///
    /// - Parameters:
    ///   - request: what is asked.
    ///   - token: the bearer token, if there is one.
    /// - Throws: any error where no complete answer came.
    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply

    /// Carries one request of an account's log and returns the server's answer.
    ///
    /// - Parameters:
    ///   - request: what is asked.
    ///   - token: the bearer token, if there is one.
    ///   - account: the account to which the log belongs; nil if to none. A transport whose server
    ///     names the account of a token refuses to mix the two (`TransportError`, `wrongAccount`).
    /// - Throws: any error where no complete answer came.
    func send(
        _ request: TransportRequest, token: String?, account: String?
    ) async throws -> TransportReply
}

extension Transport {
    /// Carries the request without checking the account.
    public func send(
        _ request: TransportRequest, token: String?, account: String?
    ) async throws -> TransportReply {
        try await send(request, token: token)
    }
}
