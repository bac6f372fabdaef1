// The time at which a token is renewed before it expires. Spec/protocol/replay.md, TOK-2.

import EventSourcing
import LogFormat

/// The schedule of token renewals.
public enum TokenRenewal {
    /// The time between a renewal and the token's expiry, in milliseconds.
    private static let leadMilliseconds: Int64 = 60_000
    /// The wait after a renewal that failed, while the old token is still valid, in milliseconds.
    public static let retryMilliseconds: Int64 = 10_000

    /// The time of the renewal: a minute before the token expires, or after half of its lifetime if that is
    /// less than two minutes. For a token that has expired on receipt it is the expiry, so the renewal is
    /// due at once.
    ///
    /// - Parameters:
    ///   - end: the token's expiry, in milliseconds since 1970 by the server's clock.
    ///   - received: the time at which the token was received, by the server's clock.
    ///   - isRenewed: true if the token was renewed before, or a renewal has returned it.
    /// - Returns: nil for such a token that seems to be expired on receipt: a clock may be wrong, so the
    ///   server decides. Otherwise each call would renew the token again.
    public static func time(
        ofTokenUntil end: Int64, received: Int64, isRenewed: Bool
    ) -> Int64? {
        let lifetime = end - received
        guard lifetime > 0 else { return isRenewed ? nil : end }
        return end - min(leadMilliseconds, lifetime / 2)
    }
}

/// The tokens that were renewed while a store is open, and those that the renewals have returned. Shipping
/// and downloads share them, so that neither renews the other's token again. Holds hashes; no token is kept.
public struct RenewedTokens: Sendable {
    private enum Table: TransientState {
        typealias Key = UInt64
        typealias Value = Int
    }

    /// The hash of each token, with the number of its renewal.
    private let table: TransientTable<UInt64, Int>
    /// The largest number of remembered tokens.
    private static let countMax = 16

    /// The renewed tokens of a store. O(1).
    public init(_ store: EventStore) { table = store.transient(Table.self) }

    /// Whether the token was renewed, or a renewal has returned it. O(bytes).
    public func contains(_ token: AccessToken) -> Bool { table[Self.hash(token)] != nil }

    /// Remembers a token that was renewed and the one that the renewal has returned. Drops the oldest ones
    /// beyond `countMax`. O(bytes).
    public func insert(_ old: AccessToken?, _ new: AccessToken?) {
        for token in [old, new].compactMap(\.self) {
            let values = table.values
            let last = values.values.max() ?? 0
            table.update(Self.hash(token)) { _ in last + 1 }
            let dropped = values.filter { $0.value <= last + 1 - Self.countMax }
            if !dropped.isEmpty { table.update(dropped.keys) { _ in nil } }
        }
    }

    private static func hash(_ token: AccessToken) -> UInt64 {
        XXH64.hash(Array(token.value.utf8).span.bytes)
    }
}
