// What can happen to one request. Each name is also the label under which SimulatedNetwork counts
// what really happened, so that a property can prove that it was tried. Fault F11 of Spec/testing/testing.md.

/// One thing that goes wrong between a client and a server.
public enum NetworkFault: String, CaseIterable, Sendable {
    /// The request never arrives; the client waits in vain.
    case requestLost = "network: request lost"
    /// The server does its work; the client waits in vain.
    case replyLost = "network: reply lost"
    /// The request arrives twice at once, maybe at two replicas; the client gets one of the replies.
    case requestDoubled = "network: request doubled"
    /// The client waits in vain; the request arrives later, behind newer ones.
    case requestLate = "network: request late"
    /// All goes well, and a copy of the request arrives later, behind newer ones.
    case copyLate = "network: copy late"
    /// The client waits in vain; the reply comes as the answer to a later request.
    case replyMixedUp = "network: reply mixed up"
    /// The reply takes its time.
    case slow = "network: slow"
    /// Something between them answers with HTML, as a captive portal does.
    case captivePortal = "network: captive portal"
    /// 3xx.
    case redirect = "network: 3xx"
    /// 400 or 422.
    case malformedRequest = "network: 400 or 422"
    /// 401.
    case unauthorized = "network: 401"
    /// 403, 404, 405, 409, 410, 415: the endpoint is wrong.
    case wrongEndpoint = "network: other 4xx"
    /// 413.
    case tooLarge = "network: 413"
    /// 429 or 503, with or without `Retry-After`, sensible or not.
    case overloaded = "network: 429 or 503"
    /// 500, 502, 504, or a status that nobody has heard of; the server may have done its work.
    case serverError = "network: 5xx"
    /// The reply is cut off somewhere.
    case replyTruncated = "network: reply truncated"
    /// Bytes of the reply are other ones.
    case replyGarbled = "network: reply garbled"
    /// The reply is JSON, but no verdicts.
    case replyMalformed = "network: reply malformed"
    /// Verdicts are missing.
    case verdictsMissing = "network: verdicts missing"
    /// Verdicts are in another order, some twice, and some are about events nobody asked for.
    case verdictsShuffled = "network: verdicts shuffled"
    /// Some verdicts say `unprocessed`, or a word that no client knows.
    case verdictsUnprocessed = "network: verdicts unprocessed"
    /// Some verdicts say `retry`.
    case verdictsRetry = "network: verdicts retry"
    /// The reply's date is wrong.
    case wrongDate = "network: wrong date"
}
