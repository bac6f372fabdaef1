// The source of tokens. The replayer asks for a token, and renews it before it expires by the server's clock
// and when the server refuses it. Spec/protocol/replay.md, TOK.

import EventSourcing

/// A bearer token with its expiry time.
public struct AccessToken: Hashable, Sendable {
    /// The token in `Authorization: Bearer …`.
    public var value: String
    /// The time at which it expires, by the server's clock; nil if unknown.
    public var expiresAt: Timestamp?

    /// Creates a token.
    public init(_ value: String, expiresAt: Timestamp? = nil) {
        self.value = value
        self.expiresAt = expiresAt
    }
}

extension AccessToken: CustomStringConvertible, CustomReflectable {
    /// The type's name without the value: a token must not get into a log by mistake.
    public var description: String { "AccessToken(hidden)" }
    /// A mirror without the value, so that `dump` does not show it.
    public var customMirror: Mirror { Mirror(self, children: ["expiresAt": expiresAt as Any]) }
}

/// A source of tokens.
public protocol Credentials: Sendable {
    /// The token to send, or nil to send none.
    ///
    /// - Throws: any error if the token is not available now; the replayer asks again later.
    func token() async throws -> AccessToken?

    /// Returns a new token for one that the server refused, or that is about to expire.
    ///
    /// - Parameter old: the token that is not to be used any more.
    /// - Returns: the new token; nil if the issuer refuses, so that the user must sign in again. Syncing
    ///   then pauses.
    /// - Throws: any error if the issuer could not be reached. The replayer tries again later.
    func refresh(_ old: AccessToken?) async throws -> AccessToken?
}

/// Credentials without a token.
public struct NoCredentials: Credentials {
    /// Creates credentials without a token.
    public init() {}
    public func token() -> AccessToken? { nil }
    public func refresh(_ old: AccessToken?) -> AccessToken? { nil }
}

/// Credentials with a token that does not change.
public struct BearerToken: Credentials {
    private let value: AccessToken
    /// Creates credentials from a token.
    public init(_ value: String) { self.value = AccessToken(value) }
    public func token() -> AccessToken? { value }
    public func refresh(_ old: AccessToken?) -> AccessToken? { nil }
}
