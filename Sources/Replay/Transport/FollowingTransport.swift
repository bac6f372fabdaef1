// The seam between a run that follows its account and a transport whose server pushes events.
// Spec/protocol/push.md.

/// A transport whose server pushes new events. A run without end, and so `SyncService`, prefers its stream to
/// reading pages at intervals.
public protocol FollowingTransport: Transport {
    /// Opens a stream of the account's events and passes each on. Returns when the stream has ended.
    /// Cancelling the calling task ends it at once.
    ///
    /// - Parameters:
    ///   - cursor: the cursor after which the stream begins, as in `TransportRequest.read`; nil for the first
    ///     event.
    ///   - token: the bearer token, if there is one.
    ///   - account: the account that owns the log; nil if none does.
    ///   - receive: called with one signal after the other, on a thread that may block. Returns false to end
    ///     the stream.
    /// - Throws: any error if there was no connection, or if it broke.
    func follow(
        after cursor: String?, token: String?, account: String?,
        receive: @escaping @Sendable (StreamSignal) -> Bool
    ) async throws -> StreamEnd
}

/// A signal of a stream of events.
public enum StreamSignal: Hashable, Sendable {
    /// The first bytes have arrived: nothing on the way withholds the stream.
    case opened
    /// An event as a JSON object, and the cursor after it.
    case event([UInt8], next: String)
}

/// The end of a stream of events.
public enum StreamEnd: Hashable, Sendable {
    /// The server has ended the stream, or `receive` has.
    case ended
    /// The server's answer is no stream.
    case refused(status: Int, retryAfterSeconds: Double?)
}
