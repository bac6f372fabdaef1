// Where tokens come from. The replayer asks for one, has it renewed before it ends by the server's
// clock, and has it renewed when the server refuses it. Spec/protocol/replay.md, TOK.

import EventSourcing

/// A bearer token, and how long the server takes it.
public struct AccessToken: Hashable, Sendable {
    /// What goes into `Authorization: Bearer …`.
    public var value: String
    /// When it ends by the server's clock; nil if that is not known.
    public var expiresAt: Timestamp?

    /// Creates a token.
    public init(_ value: String, expiresAt: Timestamp? = nil) {
        self.value = value
        self.expiresAt = expiresAt
    }
}

extension AccessToken: CustomStringConvertible, CustomReflectable {
    /// Says that there is a token, and not which: a token must not get into a log by mistake.
    public var description: String { "AccessToken(hidden)" }
    /// Shows nothing of the value, so that `dump` does not either.
    public var customMirror: Mirror { Mirror(self, children: ["expiresAt": expiresAt as Any]) }
}

/// Where tokens come from.
public protocol Credentials: Sendable {
    /// The token to send, or nil to send none.
    ///
    /// - Throws: any error where it cannot be had just now; it is asked for again later.
    func token() async throws -> AccessToken?

    /// A new token for one that the server refused, or that is about to end.
    ///
    /// - Parameter old: the token that is not to be used any more.
    /// - Returns: the new one; nil if whoever issues tokens refuses, so that the user must sign in
    ///   again. Shipping then pauses.
    /// - Throws: any error where the issuer could not be reached. It is tried again later.
    func refresh(_ old: AccessToken?) async throws -> AccessToken?
}

/// No token.
public struct NoCredentials: Credentials {
    /// Creates it.
    public init() {}
    public func token() -> AccessToken? { nil }
    public func refresh(_ old: AccessToken?) -> AccessToken? { nil }
}

/// A token that does not change.
public struct BearerToken: Credentials {
    private let value: AccessToken
    /// Wraps a token.
    public init(_ value: String) { self.value = AccessToken(value) }
    public func token() -> AccessToken? { value }
    public func refresh(_ old: AccessToken?) -> AccessToken? { nil }
}
