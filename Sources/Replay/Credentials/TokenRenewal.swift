// When a token is renewed before it ends. Used by the replayer. Spec/protocol/replay.md, TOK-2.

/// The moment at which a token is to be renewed.
public enum TokenRenewal {
    /// How long before its end a token is renewed, in milliseconds.
    private static let leadMilliseconds: Int64 = 60_000
    /// After a renewal that failed, the time to the next try while the old token still serves.
    public static let retryMilliseconds: Int64 = 10_000

    /// A minute before the token's end, or at half-time for one that lives less than two.
    ///
    /// - Parameters:
    ///   - end: when the token ends, in milliseconds since 1970.
    ///   - received: when it came. Both by the server's clock.
    /// - Returns: nil for a token that seems to have ended when it came: a clock may be wrong, so that
    ///   is left to the server.
    public static func time(ofTokenUntil end: Int64, received: Int64) -> Int64? {
        let rest = end - received
        return rest > 0 ? end - min(leadMilliseconds, rest / 2) : nil
    }
}
