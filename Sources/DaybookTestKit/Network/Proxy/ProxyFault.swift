// The faults of a HostileProxy. Each raw value is also the label under which the proxy counts the fault's
// effects. Fault F11 of Spec/testing/testing.md, on real connections.

/// A fault of a connection or a request.
public enum ProxyFault: String, CaseIterable, Sendable {
    /// The connection is reset at once, and later ones are refused for a time.
    case connectionRefused = "proxy: connection refused"
    /// The connection breaks before the server gets a byte.
    case cutBeforeRequest = "proxy: cut before request"
    /// The server gets the beginning of the request, and the connection breaks on both sides.
    case cutInRequest = "proxy: cut in request"
    /// The server processes the request; the connection breaks before the reply, in its headers, or in its
    /// body.
    case replyCut = "proxy: reply cut"
    /// The reply is delayed.
    case replyDelayed = "proxy: reply delayed"
    /// The body of the reply is truncated, and its `Content-Length` is changed to match.
    case replyTruncated = "proxy: reply truncated"
    /// Bytes of the reply's body are zero, which no JSON contains.
    case replyCorrupted = "proxy: reply corrupted"
    /// The request succeeds, and a copy of it arrives later.
    case requestDoubled = "proxy: request doubled"
    /// The request waits until a later one has reached the server.
    case requestOvertaken = "proxy: request overtaken"
    /// Bytes of the request's body are zero, which no JSON contains: the server must refuse it.
    case requestCorrupted = "proxy: request corrupted"
}
