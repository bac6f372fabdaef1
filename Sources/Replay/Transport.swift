// How a batch reaches the server: the one method that a host app replaces to ship by itself.

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

    /// Creates a reply.
    public init(
        status: Int, body: [UInt8] = [], date: Int64? = nil, retryAfterSeconds: Double? = nil
    ) {
        self.status = status
        self.body = body
        self.date = date
        self.retryAfterSeconds = retryAfterSeconds
    }
}

/// Sends batches.
public protocol Transport: Sendable {
    /// Sends one batch and returns the server's answer, whatever its status.
    ///
    /// - Parameters:
    ///   - batch: a JSON array of events.
    ///   - token: the bearer token, if there is one.
    /// - Throws: any error where no complete answer came.
    func send(_ batch: [UInt8], token: String?) async throws -> TransportReply
}

/// Where tokens come from.
public protocol Credentials: Sendable {
    /// The token to send, or nil to send none.
    func token() async throws -> String?
    /// A new token after the server refused `refused`, or nil if there is none to be had.
    func refresh(refused: String?) async throws -> String?
}

/// No token.
public struct NoCredentials: Credentials {
    /// Creates it.
    public init() {}
    public func token() -> String? { nil }
    public func refresh(refused: String?) -> String? { nil }
}

/// A token that does not change.
public struct BearerToken: Credentials {
    private let value: String
    /// Wraps a token.
    public init(_ value: String) { self.value = value }
    public func token() -> String? { value }
    public func refresh(refused: String?) -> String? { nil }
}
