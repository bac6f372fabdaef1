// The wait between two attempts to send a batch or to download a file. Spec/protocol/replay.md, RPL-4;
// Spec/model/downloads.md, DL-18.

/// Exponential backoff with full jitter: a random time below a limit that doubles with every failure in a
/// row.
public struct RetryBackoff: Hashable, Sendable {
    /// The limit after the first failure.
    public var first = Duration.milliseconds(500)
    /// The greatest limit.
    public var longest = Duration.seconds(60)
    /// The longest wait that a server may ask for.
    public var longestAsked = Duration.seconds(3_600)

    /// Creates a backoff with the default limits: half a second, a minute, an hour.
    public init() {}

    /// The wait after failures in a row.
    ///
    /// - Parameters:
    ///   - failures: the number of failures in a row, from 1.
    ///   - random: a random number between 0 and 1.
    public func delay(afterFailures failures: Int, random: Double) -> Duration {
        min(longest, first * (1 << min(max(failures - 1, 0), 20))) * random
    }

    /// The wait that a server asks for, at most `longestAsked`.
    ///
    /// - Parameter seconds: the number that the server sent; nil if it asks for none.
    public func delay(asked seconds: Double?) -> Duration {
        guard let seconds, seconds > 0 else { return .zero }
        return .seconds(min(seconds, longestAsked / .seconds(1)))
    }
}
