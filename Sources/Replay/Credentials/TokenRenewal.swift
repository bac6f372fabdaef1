// The time at which a token is renewed before it expires. Spec/protocol/replay.md, TOK-2.

/// The schedule of token renewals.
public enum TokenRenewal {
    /// The time between a renewal and the token's expiry, in milliseconds.
    private static let leadMilliseconds: Int64 = 60_000
    /// The wait after a renewal that failed, while the old token is still valid, in milliseconds.
    public static let retryMilliseconds: Int64 = 10_000

    /// The time of the renewal: a minute before the token expires, or after half of its lifetime if that is
    /// less than two minutes.
    ///
    /// - Parameters:
    ///   - end: the token's expiry, in milliseconds since 1970 by the server's clock.
    ///   - received: the time at which the token was received, by the server's clock.
    /// - Returns: nil for a token that seems to be expired on receipt: a clock may be wrong, so the server
    ///   decides.
    public static func time(ofTokenUntil end: Int64, received: Int64) -> Int64? {
        let lifetime = end - received
        return lifetime > 0 ? end - min(leadMilliseconds, lifetime / 2) : nil
    }
}
