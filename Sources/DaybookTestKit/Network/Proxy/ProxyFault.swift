// What a HostileProxy can do to a connection or a request. Each name is also the label under which it
// counts what really happened. Fault F11 of Spec/testing/testing.md, on real connections.

/// One thing that goes wrong on the wire.
public enum ProxyFault: String, CaseIterable, Sendable {
    /// The connection is reset at once, and for a while nobody listens: later ones are refused.
    case connectionRefused = "proxy: connection refused"
    /// The connection breaks before the server gets anything.
    case cutBeforeRequest = "proxy: cut before request"
    /// The server gets the beginning of the request, and the connection breaks on both sides.
    case cutInRequest = "proxy: cut in request"
    /// The server does its work; the connection breaks before the reply, in its headers, or in its
    /// body.
    case replyCut = "proxy: reply cut"
    /// The reply takes its time.
    case replyDelayed = "proxy: reply delayed"
    /// The reply is complete to look at, its length included, but its body ends too early.
    case replyTruncated = "proxy: reply truncated"
    /// Bytes of the reply's body are zeros, which no JSON has.
    case replyCorrupted = "proxy: reply corrupted"
    /// All goes well, and a copy of the request arrives later.
    case requestDoubled = "proxy: request doubled"
    /// The request waits until a later one has been through.
    case requestOvertaken = "proxy: request overtaken"
    /// Bytes of the request's body are zeros, which no JSON has: the server must refuse it.
    case requestCorrupted = "proxy: request corrupted"
}
