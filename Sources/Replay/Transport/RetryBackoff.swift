// The time between two attempts: of batches, of downloads. Spec/protocol/replay.md, RPL-4;
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

    /// The usual times: half a second, a minute, an hour.
    public init() {}

    /// The wait after failures in a row.
    ///
    /// - Parameters:
    ///   - failures: their number, the last one included; from 1.
    ///   - random: a random number between 0 and 1.
    public func delay(afterFailures failures: Int, random: Double) -> Duration {
        min(longest, first * (1 << min(max(failures - 1, 0), 20))) * random
    }

    /// The wait that a server asks for, within bounds: a server may write any number.
    ///
    /// - Parameter seconds: the number that the server wrote; nil if it asks for none.
    public func delay(asked seconds: Double?) -> Duration {
        guard let seconds, seconds > 0 else { return .zero }
        return .seconds(min(seconds, longestAsked / .seconds(1)))
    }
}
